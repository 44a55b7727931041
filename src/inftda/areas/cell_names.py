"""Names for cells that nobody has given a name: short, and nested as the cells are."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def letters(number: int) -> str:
    """A, B, ..., Z, AA, AB, ... as in a spreadsheet.

    >>> letters(0), letters(25), letters(26)
    ('A', 'Z', 'AA')
    """
    text = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, len(_LETTERS))
        text = _LETTERS[letter] + text
    return text


def nested_names(
    codes: Sequence[Sequence[str]], at: Sequence[NDArray[np.float64]]
) -> list[list[str]]:
    """A name for the cell of each row, at every level.

    The coarsest cells are A, B, C from north to south and west to east; those inside of A are
    A-1, A-2, and so on.

    Args:
        codes: of each level, the code of the cell of each row.
        at: of each level, float64[rows, 2]: longitude and latitude of these cells.

    Returns:
        The names, by level and row.
    """
    names: list[list[str]] = []
    above = [""] * len(codes[0])
    for level, (of_level, places) in enumerate(zip(codes, at, strict=True)):
        first = {code: row for row, code in reversed([*enumerate(of_level)])}
        # Rounded, so that cells of one row stay in one row.
        order = sorted(
            first.values(),
            key=lambda row: (-round(places[row, 1], 4), places[row, 0], of_level[row]),
        )
        n_in: dict[str, int] = {}
        for row in order:
            n_in[above[row]] = n_in.get(above[row], 0) + 1
        width = len(str(max(n_in.values())))
        seen: dict[str, int] = {}
        name_of: dict[str, str] = {}
        for row in order:
            parent = above[row]
            seen[parent] = seen.get(parent, 0) + 1
            name_of[of_level[row]] = (
                letters(seen[parent] - 1) if level == 0 else f"{parent}-{seen[parent]:0{width}d}"
            )
        above = [name_of[code] for code in of_level]
        names.append(above)
    return names
