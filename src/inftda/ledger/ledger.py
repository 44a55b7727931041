"""The ledger: what has been spent on a data set, in one SQLite file.

A custodian gives a data set a budget and a unit of privacy. A release is charged in one
transaction when its noise is about to be drawn, before anything of it can become visible; if
it crashes later it stays charged, because somebody may have seen a part of it. Amounts are
exact fractions, written as text. Entries are added, never changed or removed.

Must never hold anything computed from the trips: no totals, no errors.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from inftda.errors import LedgerError
from inftda.ledger.account import Account, as_text
from inftda.ledger.budget import Budget, Cost
from inftda.ledger.file import (
    APPLICATION,
    SCHEMA,
    SOURCES,
    VERSION,
    check_place,
    connected,
    find_account,
    names_like,
    plain_name,
    read_account,
    read_sources,
)
from inftda.ledger.sources import FileMark
from inftda.privacy.unit import PrivacyUnit

#: What a ledger does not know, for everybody who reads one.
CANNOT_KNOW: Final = (
    "A ledger knows only what it is told: not releases made without it or by other programs, "
    "not whether two data sets hold the same people (what they spend adds up), not whether "
    "the table or the unit of privacy is what the custodian says, and not whether this file "
    "was replaced by an older copy."
)
MAX_NAME: Final = 100
MAX_NOTE: Final = 500


class Ledger:
    """A ledger file. Opens it for each call, so it can be shared by threads and processes.

    Args:
        path: of the file; `Ledger.create` makes one.

    Raises:
        LedgerError: there is no such file, or it is not a ledger.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        check_place(self.path)
        if not self.path.is_file():
            raise LedgerError(
                f"there is no ledger {str(self.path)!r}; make one with: "
                "inftda ledger create LEDGER DATASET --epsilon ... --delta ..."
            )
        with self._read():
            pass

    @classmethod
    def create(cls, path: str | Path) -> "Ledger":
        """Make an empty ledger, readable by its owner only.

        Raises:
            LedgerError: the file exists.
            OSError: it cannot be made.
        """
        file = Path(path)
        check_place(file)
        if file.exists() and file.stat().st_size:
            raise LedgerError(f"{str(path)!r} exists already; it is not replaced")
        # SQLite gives its journal the file's permissions. An empty file is left over from an
        # interrupted creation.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
        with connected(file) as database:
            database.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
        return cls(path)

    def add(self, name: str, unit: PrivacyUnit, budget: Budget) -> Account:
        """Give a data set a budget, once and for all.

        Raises:
            LedgerError: the name is taken or invalid.
        """
        check_name(name)
        name = plain_name(name)
        with self._write() as database:
            taken = names_like(database, name)
            if taken:
                raise LedgerError(
                    f"the data set {taken[0]!r} has a budget already, which is fixed; "
                    "use it, or choose another name for other people's data"
                )
            row = (
                name,
                _now(),
                json.dumps(unit.to_dict()),
                str(budget.rho),
                as_text(budget.epsilon),
                as_text(budget.delta),
                str(budget.approximate_epsilon),
                str(budget.approximate_delta),
            )
            database.execute("INSERT INTO dataset VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            return read_account(database, name)

    def accounts(self) -> list[Account]:
        """All data sets, in the order they were given a budget."""
        with self._read() as database:
            names = database.execute("SELECT name FROM dataset ORDER BY rowid").fetchall()
            return [read_account(database, name) for (name,) in names]

    def account(self, name: str) -> Account:
        """One data set.

        Raises:
            LedgerError: there is none of that name.
        """
        with self._read() as database:
            return find_account(database, name)

    def charge(  # noqa: PLR0913 - who pays, for what
        self,
        name: str,
        cost: Cost,
        unit: PrivacyUnit,
        *,
        mechanism: str,
        note: str = "",
        files: Iterable[FileMark] = (),
    ) -> int:
        """Take a release from the budget; two processes at once are served one by one.

        Args:
            name: of the data set.
            cost: of the release.
            unit: its unit of privacy.
            mechanism: how it is made.
            note: what the custodian says about it.
            files: what the data set is read from, which is confidential from now on.

        Returns:
            The number of the entry.

        Raises:
            LedgerError: the budget is not enough or the unit another one; nothing is charged.

        Privacy:
            When this returns, the charge is on disk: call it before noise is drawn.
        """
        _check_text("a note", note, most=MAX_NOTE, is_optional=True)
        with self._write() as database:
            account = find_account(database, name)
            pool = account.pool_for(cost, unit)
            amounts = as_text(cost.rho), as_text(cost.epsilon), as_text(cost.delta)
            done = database.execute(
                "INSERT INTO entry (dataset, charged, pool, rho, epsilon, delta, mechanism, note) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [account.name, _now(), pool, *amounts, mechanism, note],
            )
            number = int(done.lastrowid or 0)
            database.execute(SOURCES)
            rows = [(number, *mark) for mark in files]
            database.executemany("INSERT INTO source VALUES (?, ?, ?, ?)", rows)
            return number

    def dataset_of(self, files: Iterable[FileMark]) -> str | None:
        """The data set that was read from one of these files; None if none is known."""
        with self._read() as database:
            known = read_sources(database)
        wanted = list(files)
        for name, mark in known:
            if any(mark.holds(file) or file.holds(mark) for file in wanted):
                return name
        return None

    def note_published(self, number: int) -> None:
        """Record that the release of an entry is complete; it changes no amount."""
        with self._write() as database:
            database.execute(
                "UPDATE entry SET published = ? WHERE number = ? AND published IS NULL",
                [_now(), number],
            )

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        with connected(self.path) as database:
            database.execute("BEGIN")
            self._check_kind(database)
            yield database

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with connected(self.path) as database:
            # Taken before the sums are read, so no other charge comes in between.
            database.execute("BEGIN IMMEDIATE")
            self._check_kind(database)
            try:
                yield database
            except BaseException:
                if database.in_transaction:  # a full disk has ended it already
                    database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    def _check_kind(self, database: sqlite3.Connection) -> None:
        kind = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if kind != APPLICATION:
            raise LedgerError(f"{str(self.path)!r} is not a ledger; check the path")
        if version != VERSION:
            raise LedgerError(
                f"{str(self.path)!r} is a ledger of version {version}, this program knows "
                f"{VERSION}; use the version of inftda that made it"
            )


def check_name(name: str) -> None:
    """Refuse an invalid name of a data set.

    Raises:
        LedgerError: it is not one short line, or a spreadsheet could take it for a formula.
    """
    _check_text("a data set's name", name, most=MAX_NAME)
    if not plain_name(name)[:1].isalnum():
        raise LedgerError(f"a data set's name must start with a letter or digit, got {name!r}")


def _check_text(what: str, text: str, *, most: int, is_optional: bool = False) -> None:
    if not text and is_optional:
        return
    if not text.strip() or len(text) > most or not text.isprintable():
        raise LedgerError(
            f"{what} must be one line of printable text of at most {most} characters, "
            f"got {text[:40]!r}"
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
