"""A preview in words."""

# ruff: noqa: RUF001 - dashes as people write them

from inftda.pages.html import percent
from inftda.previews.findings import LevelPreview, SettingPreview
from inftda.previews.usable import ENOUGH, RARELY

#: Beyond this a share is not called all.
_ALL = 0.9995


def numbers_of(name: str) -> str:
    """What the numbers of a level are called.

    >>> numbers_of("town > town"), numbers_of("region > town")
    ('town pairs', 'region > town flows')
    """
    ends = name.split(" > ")
    if len(ends) == 2 and ends[0] == ends[1]:
        return f"{ends[0]} pairs"
    return f"{name} flows"


def usable_from(level: LevelPreview) -> str:
    """The same size in a word, for a table."""
    if level.usable.smallest is None:
        return "–"
    return "all" if level.usable.numbers >= _ALL else f"{level.usable.smallest:,}"


def usable_words(level: LevelPreview, tolerance: float, *, what: str | None = None) -> str:
    """From what size on the numbers of a level can be relied on, in a sentence.

    Args:
        level: the level.
        tolerance: part of itself by which a number may be off.
        what: what the numbers are called, if the level need not be named.
    """
    what, part = what or numbers_of(level.name), percent(tolerance)
    if level.usable.smallest is None:
        return f"no {what} are large enough to be right within {part}"
    if level.usable.numbers >= _ALL:
        return f"all {what} are right within {part}"
    return (
        f"{what} of {level.usable.smallest:,} trips or more are right within {part} "
        f"({percent(level.usable.numbers)} of those published, "
        f"{percent(level.usable.trips)} of the trips)"
    )


def verdict(one: SettingPreview, tolerance: float) -> str:
    """Which level is still usable, in two sentences."""
    finest, last = one.finest_usable, one.levels[-1]
    if finest is None:
        return "No level is usable as a whole."
    ends = finest.name.split(" > ")
    what = "pairs" if len(ends) == 2 and ends[0] == ends[1] else "flows"
    words = f"Usable down to {finest.name}: {usable_words(finest, tolerance, what=what)}."
    if finest is last:
        return words
    return f"{words} At the finest level, {usable_words(last, tolerance)}."


def what_is_usable() -> str:
    """What the words mean."""
    return (
        f"A level is called usable if at least {percent(ENOUGH)} of its trips are in numbers of a "
        f"size at which no more than one number in {1 / RARELY:.0f} is further off."
    )
