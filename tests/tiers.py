"""How much the fast tests, and those of each push, try of what `make test-all` tries in full."""

from itertools import product

import pytest

#: Whether slow tests are left out; conftest.py finds out.
is_fast = False


def some(n: int) -> int:
    """Of n random cases all, or a quarter where tests are to be fast."""
    return -(-n // 4) if is_fast else n


def crossed(rows, columns, *, every=4):
    """All pairs for a test: one in `every` of each row and column in turn, the others at night."""
    numbered = product(enumerate(rows), enumerate(columns))
    return [
        pytest.param(row, column, marks=[pytest.mark.nightly] * bool((i + j) % every))
        for (i, row), (j, column) in numbered
    ]
