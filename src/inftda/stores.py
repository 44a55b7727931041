"""Files that are packed: they are read from private copies.

A copy of the confidential table is confidential. It lies in a private folder in TMPDIR (0700, its
files 0600) as long as the table is read; after a kill, the next command removes it.
"""

import errno
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final

from inftda.errors import InftdaError
from inftda.files import scratch_folder

ZIP: Final = ".zip"
#: Folders with this prefix that no process holds are removed, so it must be nobody else's.
_PREFIX: Final = "inftda-copy-"
#: Bytes that are copied at once.
_PIECE: Final = 1 << 20
#: Names that a message lists.
_SHOWN: Final = 5


@contextmanager
def unpacked(
    files: Sequence[Path], endings: Sequence[str], error: type[InftdaError]
) -> Iterator[list[Path]]:
    """The same files, but for each zip file a private copy of the only table in it.

    `endings` are those of files that hold tables.
    """
    packed = [file for file in files if file.name.lower().endswith(ZIP)]
    if not packed:
        yield list(files)
        return
    with scratch_folder(_PREFIX, error) as folder:
        copies = {}
        for number, file in enumerate(packed):
            (inside := folder / str(number)).mkdir(mode=0o700)
            copies[file] = _unzip(file, inside, endings, error)
        yield [copies.get(file, file) for file in files]


def _unzip(file: Path, folder: Path, endings: Sequence[str], error: type[InftdaError]) -> Path:
    """A copy of the only table in a zip file."""
    label = repr(file.name)
    try:
        with zipfile.ZipFile(file) as packed:
            tables = [name for name in packed.namelist() if _is_table(name, endings)]
            if len(tables) == 1:
                copy = folder / PurePosixPath(tables[0]).name
                with packed.open(tables[0]) as member:
                    save(member, copy)
                return copy
    except RuntimeError:
        raise error(f"{label} is locked by a password; unpack it first") from None
    except (OSError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as problem:
        raise error(f"cannot unpack {label}: {_flaw(problem)}") from None
    if not tables:
        raise error(f"{label} has no table in it; pack one ({', '.join(endings)})")
    listed = ", ".join(map(repr, tables[:_SHOWN])) + ", ..." * (len(tables) > _SHOWN)
    raise error(f"{label} has {len(tables)} tables in it ({listed}); pack only one")


def _is_table(name: str, endings: Sequence[str]) -> bool:
    """Whether a member of a zip file is meant to be read: not of a hidden folder, say."""
    parts = PurePosixPath(name).parts
    is_hidden = any(part.startswith((".", "__")) for part in parts)
    return not is_hidden and name.lower().endswith(tuple(endings))


def save(stream: IO[bytes], copy: Path) -> None:
    """Write what a stream gives to a file that only its owner can open."""
    with os.fdopen(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as out:
        shutil.copyfileobj(stream, out, _PIECE)


def _flaw(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
        return "the disk is full; set TMPDIR to a folder on a disk with more space"
    return "it is damaged or cut off, or not readable; check the file and its permissions"
