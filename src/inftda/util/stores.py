"""Local, zipped and remote files; zipped and remote ones are copied before they are read.

The supported stores are those of Arrow: S3, Google Cloud Storage and Azure. Arrow finds credentials
where the store's own tools find theirs: in the environment, in a profile, or in the role of a
machine. Credentials are never taken from an address, and messages of a store are not passed on,
because they may quote one. Other files come by HTTPS.

A copy of the confidential table is confidential. It lies in a private folder in TMPDIR (0700, its
files 0600) as long as the table is read; after a kill, the next command removes it.

A release goes to a store file by file. Its manifest comes last and, where it replaces another
release, goes first: an interrupted transfer leaves no manifest, and readers refuse the folder.
"""

import errno
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from inftda.errors import InftdaError, ReleaseError, first_few, quietly
from inftda.util.files import MANIFEST_FILE, NEW, Check, check_folder, scratch_folder, whole_folder

T = TypeVar("T")

ZIP: Final = ".zip"
#: Schemes of the stores, with options for Arrow: Google's library would retry for minutes.
STORES: Final = {"s3": "", "gs": "?retry_limit_seconds=30", "abfs": "", "abfss": ""}
_HTTPS: Final = "https"
_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
#: Prefix of private folders; unlocked folders with it are removed, so it must be unique.
_PREFIX: Final = "inftda-copy-"
#: Bytes that are copied at once, seconds that a server may be silent.
_PIECE, _PATIENCE = 1 << 20, 60
#: The files of releases.
_OWN: Final = re.compile(
    r"manifest\.(json|sig)|flows\.parquet|measurements\.parquet|"
    r"areas(-[0-9]+)?\.csv|places(-[0-9]+)?\.parquet"
)
#: A packed file that is larger than this, and than this many times its packed size, is refused.
_MOST_UNPACKED, _MOST_RATIO = 1 << 30, 100
#: Explanations of errors, by words of a store's message in lower case.
_SIGNS: Final = {
    r"denied|access_?key|signature|credential|token|forbidden|authenti|authoriz|\b40[13]\b": (
        "access is denied; check the credentials and what they allow"
    ),
    r"connect|resolve|network|timed? ?out|timeout|curl|unreachable|ssl|certificate": (
        "it cannot be reached; check the address and the network"
    ),
    r"no_such|not ?found|not exist|\b404\b": "it is not there; check the address",
}


def is_remote(place: Any) -> bool:
    """Whether a place is an address, and not a path of this machine.

    >>> is_remote("s3://mobility/trips.parquet"), is_remote("trips.parquet")
    (True, False)
    """
    return isinstance(place, str) and _ADDRESS.match(place) is not None


def is_release_file(name: str) -> bool:
    """Whether a file of a release can have this name."""
    return _OWN.fullmatch(name) is not None


def names_at(place: str, error: type[InftdaError]) -> list[str]:
    """Paths of all files of a folder in a store, below that folder."""
    return sorted(_Store.of(place, error).list())


def name_of(place: str | Path) -> str:
    """Name of a file or folder, without the secret parts of an address.

    >>> name_of("https://example.org/trips.csv?signature=secret")
    'trips.csv'
    """
    if not is_remote(place):
        return Path(place).name
    parts = urlsplit(str(place))
    return PurePosixPath(unquote(parts.path)).name or parts.hostname or parts.scheme


# --- reading


@contextmanager
def fetched(
    place: str | Path,
    error: type[InftdaError],
    *,
    is_wanted: Callable[[str], bool] = bool,
    is_folder: bool = False,
) -> Iterator[str | Path]:
    """Provide a file, folder or glob; from a store, a private copy of the wanted files.

    `is_wanted` decides by a path below the folder. With `is_folder` only a folder is accepted.
    """
    if not is_remote(place):
        yield place
        return
    with scratch_folder(_PREFIX, error) as scratch:
        (folder := scratch / name_of(place)).mkdir(mode=0o700)
        if urlsplit(str(place)).scheme == _HTTPS and not is_folder:
            yield _download(str(place), folder, error)
        else:
            yield _Store.of(str(place), error).fetch(folder, is_wanted)


@contextmanager
def local_file(
    place: str | Path, endings: Sequence[str], error: type[InftdaError]
) -> Iterator[Path]:
    """One file, or a private copy if it is in a store or packed into a zip file."""
    if is_remote(place) and name_of(place).lower().endswith(".shp"):
        raise error(
            f"{name_of(place)!r} is a shapefile, of several files; copy all of them to this "
            "machine, or use GeoPackage"
        )
    with fetched(place, error) as here, unpacked([Path(here)], endings, error) as files:
        yield files[0]


def _download(address: str, folder: Path, error: type[InftdaError]) -> Path:
    from http.client import HTTPException  # noqa: PLC0415 - time that other places need not pay
    from urllib.error import HTTPError  # noqa: PLC0415
    from urllib.request import urlopen  # noqa: PLC0415

    name = name_of(address)
    what = f"cannot read {name!r} from {_HTTPS}://{urlsplit(address).hostname}"
    copy = folder / name
    try:
        # Only https:// gets here, and a redirection to anything else is refused.
        with urlopen(address, timeout=_PATIENCE) as answer:  # noqa: S310
            is_private = answer.url.startswith(f"{_HTTPS}:")
            if is_private:
                save(answer, copy)
            length = answer.headers["Content-Length"]
    except (OSError, HTTPException, ValueError) as problem:
        said = f"{problem.code}" if isinstance(problem, HTTPError) else str(problem)
        flaw = _reason(said, problem)
    else:
        if is_private and length in {None, str(copy.stat().st_size)}:
            return copy
        flaw = "it was cut off; try again" if is_private else "it is sent without encryption"
    raise error(f"{what}: {flaw}")


@dataclass(frozen=True)
class _Store:
    """A place in a store: a file system of Arrow, and a path in it."""

    files: Any
    path: str
    label: str
    error: type[InftdaError]

    @classmethod
    def of(cls, address: str, error: type[InftdaError]) -> "_Store":
        """Open a store, without connecting to it."""
        parts = urlsplit(address)
        scheme = parts.scheme.lower()
        known = ", ".join(f"{one}://" for one in STORES)
        if scheme == _HTTPS:
            raise error(f"{_HTTPS}:// has files, and no folders; use a path, {known}")
        if scheme not in STORES:
            raise error(
                f"addresses that start with {scheme}:// are not known; use {known}, {_HTTPS}:// or "
                "a path of this machine, or let Spark read Parquet files (`engine='spark'`); a "
                "database needs `sql=` and `database=`"
            )
        user, at, host = parts.netloc.rpartition("@")
        if parts.query or parts.fragment or ":" in user or (at and scheme in {"s3", "gs"}):
            raise error(
                f"an address of {scheme}:// is a bucket and a path; leave out user, password and "
                "what follows ? or #: credentials and settings come from the environment, a "
                "profile or the role of the machine"
            )
        if not parts.netloc:
            raise error(f"an address of {scheme}:// starts with a bucket: {scheme}://BUCKET/PATH")
        label = f"{scheme}://{host}{parts.path}"

        def start() -> tuple[Any, str]:
            from pyarrow.fs import FileSystem  # noqa: PLC0415 - libraries of the stores

            files, root = FileSystem.from_uri(f"{scheme}://{parts.netloc}{STORES[scheme]}")
            return files, root

        files, root = _attempt(start, f"cannot open {label!r}", error)
        return cls(files, f"{root.rstrip('/')}/{parts.path.strip('/')}".rstrip("/"), label, error)

    def attempt(self, action: Callable[[], T], what: str = "read") -> T:
        """Run an action on the store; errors are explained as in `_attempt`."""
        return _attempt(action, f"cannot {what} {self.label!r}", self.error)

    def has_bucket(self) -> bool:
        """Whether there is anything that could hold the path."""
        from pyarrow.fs import FileType  # noqa: PLC0415 - as above

        bucket = self.path.partition("/")[0]
        found = self.attempt(lambda: self.files.get_file_info(bucket))
        return bool(found.type != FileType.NotFound)

    def list(self) -> dict[str, Any]:
        """Files at, below, or like the path, by their paths below the folder."""
        return self.attempt(self._list)

    def _list(self) -> dict[str, Any]:
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - as above

        found = self.files.get_file_info(self.path)
        root = self.path
        if found.type == FileType.File:
            return {PurePosixPath(found.path).name: found}
        if found.type == FileType.NotFound:
            if "*" not in self.path:
                return {}
            fixed = self.path.partition("*")[0]
            root = fixed.rpartition("/")[0]
        inside = self.files.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
        files = [one for one in inside if one.type == FileType.File]
        if "*" in self.path:
            files = [one for one in files if _matches(one.path, self.path)]
        return {one.path.removeprefix(root).lstrip("/"): one for one in files}

    def fetch(self, folder: Path, is_wanted: Callable[[str], bool]) -> Path:
        """Copy the wanted files to a private folder and return the path of the copy."""
        found = self.list()
        is_file = [one.path for one in found.values()] == [self.path]
        listed = {name: one for name, one in found.items() if is_file or is_wanted(name)}
        if not listed:
            raise self.error(f"there is no file {self.label!r}; check the address")
        for name, one in listed.items():
            copy = folder / name
            if ".." in PurePosixPath(name).parts:
                raise self.error(f"{self.label!r} holds a file called {name!r}; rename it")
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.attempt(partial(self._fetch, one, copy))
        return folder / name if is_file else folder

    def _fetch(self, one: Any, copy: Path) -> None:
        # Without compression Arrow does not unpack files that end in .gz.
        with self.files.open_input_stream(one.path, compression=None) as stream:
            save(stream, copy)
        if copy.stat().st_size != one.size:
            raise OSError("timeout")

    def send(self, folder: Path) -> None:
        """Replace the files in the store by those of a folder."""
        old = sorted(self.list(), key=lambda name: name != MANIFEST_FILE)
        for name in old:
            self.files.delete_file(f"{self.path}/{name}")
        new = sorted(folder.iterdir(), key=lambda path: path.name == MANIFEST_FILE)
        for path in new:
            there = f"{self.path}/{path.name}"
            with (
                path.open("rb") as stream,
                self.files.open_output_stream(there, compression=None) as out,
            ):
                shutil.copyfileobj(stream, out, _PIECE)


def _matches(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern, in which * stands for characters of one name."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _attempt(action: Callable[[], T], what: str, error: type[InftdaError]) -> T:
    """Run an action on a store; its own message is dropped, since it may quote credentials."""
    return quietly(
        action,
        lambda problem: error(f"{what}: {_reason(str(problem), problem)}"),
        (OSError, ValueError, RuntimeError, NotImplementedError, pa.ArrowException),
    )


def _reason(said: str, problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
        return "the disk is full; set TMPDIR to a folder on a disk with more space"
    for signs, words in _SIGNS.items():
        if re.search(signs, said.lower()):
            return words
    return "the store refuses it; check the address and the credentials"


# --- writing


def check_output(out: str | Path, *, check: Check, force: bool) -> None:
    """Refuse a folder that cannot, or must not, be written, before any work is done."""
    if not is_remote(out):
        check_folder(Path(out), check=check, force=force)
        return
    store = _Store.of(str(out), ReleaseError)
    if "/" not in store.path or "*" in store.path:
        raise ReleaseError(f"{store.label!r} is no folder of a bucket; give one to write to")
    if not store.has_bucket():
        raise ReleaseError(f"there is no bucket for {store.label!r}; make it first")
    there = store.list()
    if there and not force:
        raise ReleaseError(
            f"{store.label!r} exists already; choose another folder or use `force=True` to replace "
            "it"
        )
    others = sorted(name for name in there if not is_release_file(name))
    if others:
        raise ReleaseError(
            f"{store.label!r} is not replaced: {others[0]!r} in it is not part of a release; move "
            "it elsewhere or choose another folder"
        )


def placed_words(out: str | Path) -> str:
    """Statement that a release is published, for messages about a later failure."""
    return f"the release in {str(out)!r} is complete and in place: do not make it again"


@contextmanager
def output_folder(
    out: str | Path,
    *,
    check: Check,
    force: bool,
    is_public: bool,
    tell: Callable[[str], object] = lambda _: None,
) -> Iterator[Path]:
    """A folder to fill, which becomes `out` if the block succeeds; see `whole_folder`.

    A release that cannot be sent to a store is kept on this machine, because a ledger may have been
    charged for it. `tell` receives its place, in words, once it is in place or kept.
    """
    placed = placed_words(out)
    if not is_remote(out):
        with whole_folder(
            Path(out), check=check, force=force, is_public=is_public, on_placed=lambda: tell(placed)
        ) as folder:
            yield folder
        return
    store = _Store.of(str(out), ReleaseError)
    with scratch_folder(_PREFIX, ReleaseError) as scratch:
        (new := scratch / NEW).mkdir(mode=0o700)
        yield new
        try:
            check_output(out, check=check, force=force)
            store.attempt(lambda: store.send(new), "send the release to")
            tell(placed)
        except (ReleaseError, KeyboardInterrupt) as problem:
            kept = Path(tempfile.mkdtemp(prefix="inftda-kept-")) / (name_of(out) or NEW)
            shutil.copytree(new, kept)
            where = (
                f"what was sent to {store.label!r} is no release unless it has {MANIFEST_FILE}. "
                f"The release is kept in {str(kept)!r}: send it from there, {MANIFEST_FILE} last"
            )
            tell(where)
            if isinstance(problem, KeyboardInterrupt):
                raise
            said = f"{problem}; {where}"
        else:
            return
    raise ReleaseError(said)


# --- packed files


@contextmanager
def unpacked(
    files: Sequence[Path], endings: Sequence[str], error: type[InftdaError]
) -> Iterator[list[Path]]:
    """Replace each zip file by a private copy of the only table in it.

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
                _check_unpacked(packed.getinfo(tables[0]), label, error)
                copy = folder / PurePosixPath(tables[0]).name
                with packed.open(tables[0]) as member:
                    save(member, copy)
                return copy
    except RuntimeError:
        raise error(f"{label} is locked by a password; unpack it first") from None
    except (OSError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as problem:
        is_full = isinstance(problem, OSError) and problem.errno == errno.ENOSPC
        flaw = _reason("", problem) if is_full else "it is damaged, cut off, or not readable"
        raise error(f"cannot unpack {label}: {flaw}") from None
    if not tables:
        raise error(f"{label} has no table in it; pack one ({', '.join(endings)})")
    raise error(f"{label} has {len(tables)} tables in it ({first_few(tables)}); pack only one")


def _check_unpacked(member: zipfile.ZipInfo, label: str, error: type[InftdaError]) -> None:
    """Refuse packed files that expand too much; never more bytes are unpacked than stated."""
    size, limit = member.file_size, max(_MOST_UNPACKED, _MOST_RATIO * member.compress_size)
    if size > limit:
        raise error(
            f"{label} would unpack to {size:,} bytes, more than {_MOST_RATIO} times its size; if "
            "that is right, unpack it yourself and give the file in it"
        )


def _is_table(name: str, endings: Sequence[str]) -> bool:
    """Whether a member of a zip file is a table, and not in a hidden folder."""
    parts = PurePosixPath(name).parts
    is_hidden = any(part.startswith((".", "__")) for part in parts)
    return not is_hidden and name.lower().endswith(tuple(endings))


def save(stream: IO[bytes], copy: Path) -> None:
    """Write a stream to a file that only its owner can open."""
    with os.fdopen(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as out:
        shutil.copyfileobj(stream, out, _PIECE)
