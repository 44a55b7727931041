"""Spark's working files on this machine, in folders that only their owner can open.

When Spark shuffles, spills and caches, rows of the confidential table go to disk, with the
rights that the user's mask gives, so mostly for every local user to read. Nobody else gets past
a closed folder, whatever the rights of what is in it, so the mask of the Java process, which
Python workers and their cache of compiled kernels would inherit, is left alone.
"""

import atexit
import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Final

from inftda.scratch import open_folder, private_folder

#: Folders with this prefix that no process holds are removed, so it must be nobody else's.
PREFIX: Final = "inftda-spark-"

_made = ExitStack()
atexit.register(_made.close)


def inside(places: str) -> str:
    """Private folders in the ones that are named, all with commas between, as Spark has them."""
    return ",".join(private_place(place) for place in places.split(","))


@cache
def private_place(parent: str) -> str:
    """A private folder in another one, for as long as this process lives.

    Not for a session only: the Java process is used again by the next one, and where the first
    has put some of its files it goes on putting them, even if it has to make that folder anew.
    """
    place = Path(parent).absolute()
    try:
        place.mkdir(parents=True, exist_ok=True)
        return str(_made.enter_context(private_folder(place, PREFIX)))
    except OSError:
        return parent  # Spark does without a disk that is broken, or says so


def block_folders(places: Iterable[str]) -> set[Path]:
    """Where drivers and executors keep blocks of rows, in these places."""
    found = {folder for place in places for folder in Path(place).glob("blockmgr-*")}
    # Where others can write they can put links to folders that are none of ours.
    return {folder for folder in found if not folder.is_symlink()}


def close_folders(folders: Iterable[Path]) -> None:
    """Lock other users out of folders."""
    for folder in folders:
        # Others, too, may have just started Spark here, or stopped it, or put a link there.
        with suppress(PermissionError, FileNotFoundError, NotADirectoryError):
            descriptor = open_folder(folder)
            try:
                os.fchmod(descriptor, 0o700)
            finally:
                os.close(descriptor)
