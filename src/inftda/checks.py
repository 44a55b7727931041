"""What a check of the installed build found; see `selftest`."""

from typing import NamedTuple


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
