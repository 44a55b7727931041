"""The file of a ledger: its schema, connections to it, and its rows as records.

Entries are added, never changed or removed: triggers see to it, whoever writes to the file.
"""

import errno
import json
import os
import re
import sqlite3
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from inftda.errors import LedgerError, PrivacyError
from inftda.ledger.account import Account, Entry
from inftda.ledger.budget import Budget, Cost
from inftda.ledger.sources import FileMark
from inftda.privacy.numbers import exact_number
from inftda.privacy.unit import PrivacyUnit

#: How long a charge waits for another process that is being charged.
BUSY_SECONDS: Final = 30.0
APPLICATION: Final = 0x696E6664  # "infd"
VERSION: Final = 1
#: Endings of the files that SQLite may keep beside its own.
_BESIDE: Final = ("-journal", "-wal", "-shm")
#: Printable by Python's rules, but nobody sees them: fillers, joiners, variants, an empty pattern.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
SCHEMA: Final = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
CREATE TABLE dataset (
    name TEXT NOT NULL PRIMARY KEY,
    created TEXT NOT NULL,
    unit TEXT NOT NULL,
    rho TEXT NOT NULL,
    epsilon TEXT,
    delta TEXT,
    approximate_epsilon TEXT NOT NULL,
    approximate_delta TEXT NOT NULL
);
CREATE TABLE entry (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset TEXT NOT NULL REFERENCES dataset (name),
    charged TEXT NOT NULL,
    published TEXT,
    pool TEXT NOT NULL CHECK (pool IN ('zcdp', 'approximate', 'alone')),
    rho TEXT,
    epsilon TEXT,
    delta TEXT,
    mechanism TEXT NOT NULL,
    note TEXT NOT NULL
);
CREATE TRIGGER dataset_stays BEFORE DELETE ON dataset
    BEGIN SELECT raise(ABORT, 'a data set stays in its ledger'); END;
CREATE TRIGGER dataset_is_fixed BEFORE UPDATE ON dataset
    BEGIN SELECT raise(ABORT, 'a budget is fixed once it is given'); END;
CREATE TRIGGER entry_stays BEFORE DELETE ON entry
    BEGIN SELECT raise(ABORT, 'what was spent stays spent'); END;
CREATE TRIGGER entry_is_fixed
    BEFORE UPDATE OF number, dataset, charged, pool, rho, epsilon, delta, mechanism, note ON entry
    BEGIN SELECT raise(ABORT, 'what was spent stays spent'); END;
"""
#: Files that data sets were read from. Not part of the schema: a ledger made before has no such
#: table, and gets it with the next charge.
SOURCES: Final = """
CREATE TABLE IF NOT EXISTS source (
    entry INTEGER NOT NULL REFERENCES entry (number),
    path BLOB NOT NULL,
    disk TEXT NOT NULL,
    number TEXT NOT NULL
)
"""


@contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a ledger, with SQLite's errors in our words.

    Raises:
        LedgerError: it is not a ledger, cannot be opened, or is not where one is safe.
        OSError: it is in use, or the disk is full or failing.
    """
    check_place(path)
    # Also for reading: only a writer can roll back what a crashed process left half done.
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        with closing(
            sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        ) as database:
            database.execute("PRAGMA foreign_keys = ON")
            # A charge must outlast a power cut that comes right after it.
            database.execute("PRAGMA synchronous = EXTRA")
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as problem:  # damaged text, also in its messages
        failure = problem
    else:
        return
    raise _explain(path, failure)


def _explain(path: Path, failure: Exception) -> Exception:
    code = getattr(failure, "sqlite_errorname", "")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return OSError(errno.EBUSY, "another release is being charged; try again", str(path))
    if code.startswith("SQLITE_FULL"):
        return OSError(errno.ENOSPC, "no space left to charge the release", str(path))
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return LedgerError(
            f"the ledger {str(path)!r} cannot be opened for this; check its permissions and "
            "those of its folder"
        )
    if code.startswith("SQLITE_IOERR"):
        return OSError(errno.EIO, "the ledger cannot be read or written", str(path))
    return LedgerError(
        f"{str(path)!r} is not a ledger, or was damaged; get it back from a copy, and add what "
        "was released since with: inftda ledger charge"
    )


def check_place(path: Path) -> None:
    """Refuse a ledger that somebody else could have put there, or could make us write into.

    SQLite undoes what is half done by the journal beside its file, whoever put it there: by a
    planted one, what was spent could be made unspent. It looks for the journal beside the name
    that it was given: by a second name of the same file, or where only the file is mounted into a
    container, what a killed process left half done is not undone, and charges get lost.

    Raises:
        LedgerError: it or its journal is a link, not a plain file, or somebody else's; it has a
            second name or is mounted alone; or anybody can write to its folder.
    """
    _check_alone(path)
    owners = {os.geteuid(), 0}
    for name in (path, *(Path(f"{path}{ending}") for ending in _BESIDE)):
        try:
            found = name.lstat()
        except (OSError, ValueError):  # not there, which others see to
            continue
        if not stat.S_ISREG(found.st_mode) and not (name == path and stat.S_ISDIR(found.st_mode)):
            kind = "a link" if stat.S_ISLNK(found.st_mode) else "not a plain file"
            raise LedgerError(f"{str(name)!r} is {kind}; a ledger is a plain file: name it itself")
        if name == path:
            owners.add(found.st_uid)
        elif found.st_uid not in owners:
            raise LedgerError(
                f"{str(name)!r} belongs to neither you nor the owner of the ledger; find out who "
                "put it there before the ledger is used"
            )
    try:
        rights = path.absolute().parent.stat().st_mode
    except OSError:
        return
    if rights & stat.S_IWOTH:
        raise LedgerError(
            f"everybody can write to the folder of the ledger {str(path)!r}, and so replace it; "
            "keep it in a folder of its own"
        )


def _check_alone(path: Path) -> None:
    """Refuse a file that is known by another name, or that is mounted without its folder."""
    try:
        found, folder = path.lstat(), path.absolute().parent.stat()
    except (OSError, ValueError):  # not there, which others see to
        return
    if stat.S_ISREG(found.st_mode) and (found.st_nlink > 1 or found.st_dev != folder.st_dev):
        state = "has a second name (a hard link)" if found.st_nlink > 1 else "is mounted by itself"
        raise LedgerError(
            f"the ledger {str(path)!r} {state}, so charges could be lost when a release is killed; "
            "keep one name, and for a container mount the folder, not the file"
        )


def plain_name(name: str) -> str:
    """A name as people see it: one blank between words, Unicode normalised, nothing invisible.

    >>> plain_name(" commuting  2024 ")
    'commuting 2024'
    """
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFKC", name)).split())


def names_like(database: sqlite3.Connection, name: str) -> list[str]:
    """Data sets with that name, however it is spelled."""
    known = [found for (found,) in database.execute("SELECT name FROM dataset ORDER BY rowid")]
    if not all(isinstance(found, str) for found in known):
        raise sqlite3.DatabaseError("a name is not text")
    return [found for found in known if plain_name(found) == plain_name(name)]


def find_account(database: sqlite3.Connection, name: str) -> Account:
    """The data set with that name, however it is spelled.

    Raises:
        LedgerError: there is none, or there are two whose names look the same.
    """
    found = names_like(database, name)
    if len(found) > 1:
        raise LedgerError(
            f"the ledger has several data sets called {name!r}, written differently: "
            f"{', '.join(map(repr, found))}; what they spend adds up, so none of them can be "
            "charged: make a new ledger, and charge it by hand with all that was released"
        )
    return read_account(database, found[0] if found else name)


def read_account(database: sqlite3.Connection, name: str) -> Account:
    """A data set with all its entries.

    Raises:
        LedgerError: there is none of that name, or it was changed by hand.
    """
    columns = "created, unit, rho, epsilon, delta, approximate_epsilon, approximate_delta"
    row = database.execute(
        f"SELECT {columns} FROM dataset WHERE name = ?",  # noqa: S608 - constant
        [name],
    ).fetchone()
    if row is None:
        known = [found for (found,) in database.execute("SELECT name FROM dataset ORDER BY name")]
        there = f"it has {', '.join(map(repr, known[:10]))}" if known else "it has none"
        raise LedgerError(
            f"the ledger has no data set {name!r}; {there} (add one with: inftda ledger create)"
        )
    entries = database.execute(
        "SELECT number, charged, published, pool, rho, epsilon, delta, mechanism, note "
        "FROM entry WHERE dataset = ? ORDER BY number",
        [name],
    )
    try:
        created, unit, rho, *rest = row
        epsilon, delta, approximate_epsilon, approximate_delta = map(_fraction, rest)
        budget = Budget(
            exact_number(rho),
            epsilon,
            delta,
            approximate_epsilon or Fraction(0),
            approximate_delta or Fraction(0),
        )
        unit = PrivacyUnit.from_dict(json.loads(unit))
        return Account(name, created, unit, budget, tuple(_entry(row) for row in entries))
    except (ValueError, TypeError, ZeroDivisionError, PrivacyError):
        raise LedgerError(
            f"the data set {name!r} of the ledger is not readable; it was changed by hand: get "
            "the ledger back from a copy"
        ) from None


def read_sources(database: sqlite3.Connection) -> list[tuple[str, FileMark]]:
    """Data set and file of everything that was charged for; a damaged row is no file."""
    there = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'source'").fetchone()
    if there is None:
        return []
    rows = database.execute(
        "SELECT dataset, path, disk, source.number FROM source JOIN entry ON entry = entry.number"
    )
    return [(name, FileMark(bytes(path), disk, number)) for name, path, disk, number in rows]


def _entry(row: tuple[Any, ...]) -> Entry:
    number, charged, published, pool, rho, epsilon, delta, mechanism, note = row
    cost = Cost(_fraction(rho), _fraction(epsilon), _fraction(delta))
    amounts = [amount for amount in (cost.rho, cost.epsilon, cost.delta) if amount is not None]
    if not any(amounts) or min(amounts) < 0:
        raise ValueError("an entry costs nothing")
    return Entry(number, charged, published, pool, cost, mechanism, note)


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else exact_number(text)
