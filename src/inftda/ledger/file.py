"""The file of a ledger: its schema, connections to it, and its rows as records.

Entries are added, never changed or removed: triggers see to it, whoever writes to the file.
"""

import errno
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from inftda.errors import LedgerError, PrivacyError
from inftda.ledger.account import Account, Entry
from inftda.ledger.budget import Budget, Cost
from inftda.privacy.levels import exact_number
from inftda.privacy.unit import PrivacyUnit

#: How long a charge waits for another process that is being charged.
BUSY_SECONDS: Final = 30.0
APPLICATION: Final = 0x696E6664  # "infd"
VERSION: Final = 1
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


@contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a ledger, with SQLite's errors in our words.

    Raises:
        LedgerError: it is not a ledger, or cannot be opened.
        OSError: it is in use, or the disk is full or failing.
    """
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
            f"the ledger {str(path)!r} cannot be opened for this; check its rights and those of "
            "its folder"
        )
    if code.startswith("SQLITE_IOERR"):
        return OSError(errno.EIO, "the ledger cannot be read or written", str(path))
    return LedgerError(
        f"{str(path)!r} is not a ledger, or was damaged; get it back from a copy, and add what "
        "was released since with: inftda ledger charge"
    )


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


def _entry(row: tuple[Any, ...]) -> Entry:
    number, charged, published, pool, rho, epsilon, delta, mechanism, note = row
    cost = Cost(_fraction(rho), _fraction(epsilon), _fraction(delta))
    amounts = [amount for amount in (cost.rho, cost.epsilon, cost.delta) if amount is not None]
    if not any(amounts) or min(amounts) < 0:
        raise ValueError("an entry costs nothing")
    return Entry(number, charged, published, pool, cost, mechanism, note)


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else exact_number(text)
