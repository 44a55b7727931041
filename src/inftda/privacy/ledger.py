"""The ledger: what has been spent on a data set, in one SQLite file.

A custodian gives a data set a budget and a unit of privacy. A release is charged in one
transaction when its noise is about to be drawn, before anything of it can become visible; if
it crashes later it stays charged, because somebody may have seen a part of it. Amounts are
exact fractions, written as text. Entries are added, never changed or removed.

Must never hold anything computed from the trips: it is not the place for totals or errors.
"""

import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from inftda.errors import LedgerError, PrivacyError
from inftda.privacy.budget import Budget, Cost, Pool, Spent
from inftda.privacy.levels import exact_number
from inftda.privacy.plan import Plan
from inftda.privacy.stability import StabilityPlan
from inftda.privacy.unit import PrivacyUnit

#: What a ledger does not know, for everybody who reads one.
CANNOT_KNOW: Final = (
    "A ledger knows only what it is told: not releases made without it or by other programs, "
    "not whether two data sets hold the same people (what they spend adds up), not whether "
    "the table or the unit of privacy is what the custodian says, and not whether this file "
    "was replaced by an older copy."
)
#: How long a charge waits for another process that is being charged.
BUSY_SECONDS: Final = 30.0
MAX_NAME: Final = 100
MAX_NOTE: Final = 500

_APPLICATION: Final = 0x696E6664  # "infd"
_VERSION: Final = 1
_SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
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


@dataclass(frozen=True, slots=True)
class Entry:
    """One release as it was charged.

    Attributes:
        number: of the entry, counting up over all data sets of the ledger.
        charged: when, in UTC; before its noise was drawn.
        published: when it was complete; None if it crashed, was interrupted or is under way.
        pool: what it was taken from.
        cost: how much.
        mechanism: how it was made.
        note: what the custodian says about it.
    """

    number: int
    charged: str
    published: str | None
    pool: Pool
    cost: Cost
    mechanism: str
    note: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON and CSV; fractions as text, so nothing is rounded."""
        return {
            "number": self.number,
            "charged": self.charged,
            "published": self.published,
            "pool": self.pool,
            "rho": _text(self.cost.rho),
            "epsilon": _text(self.cost.epsilon),
            "delta": _text(self.cost.delta),
            "mechanism": self.mechanism,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Account:
    """A data set: its unit of privacy, its budget, and every release it was charged for."""

    name: str
    created: str
    unit: PrivacyUnit
    budget: Budget
    entries: tuple[Entry, ...]

    @property
    def spent(self) -> Spent:
        """The sum of all entries, also of releases that were never completed."""
        spent = Spent()
        for entry in self.entries:
            spent = spent.plus(entry.pool, entry.cost)
        return spent

    def pool_for(self, cost: Cost, unit: PrivacyUnit) -> Pool:
        """Where a release would be taken from.

        Raises:
            LedgerError: the budget is not enough, or the unit is another one.
        """
        if not _is_same(unit, self.unit):
            raise LedgerError(
                f"the data set {self.name!r} protects one unit of privacy ({self.unit.describe()})"
                f", this release another ({unit.describe()}); what is spent on different units "
                "does not add up: use the data set's unit, or another data set"
            )
        try:
            return self.budget.pool_for(self.spent, cost)
        except LedgerError as problem:
            raise LedgerError(f"data set {self.name!r}: {problem}") from None

    def to_dict(self) -> dict[str, Any]:
        """For JSON; fractions as text, epsilon spent rounded up."""
        spent, budget = self.spent, self.budget
        return {
            "dataset": self.name,
            "created": self.created,
            "unit": self.unit.to_dict(),
            "budget": {
                "rho": str(budget.rho),
                "epsilon": _text(budget.epsilon),
                "delta": _text(budget.delta),
                "approximate_epsilon": str(budget.approximate_epsilon),
                "approximate_delta": str(budget.approximate_delta),
            },
            "spent": {
                "releases": spent.releases,
                "rho": str(spent.rho),
                "approximate_epsilon": str(spent.epsilon),
                "approximate_delta": str(spent.delta),
                "epsilon_at_delta": budget.epsilon_at_delta(spent),
            },
            "entries": [entry.to_dict() for entry in self.entries],
        }


class Ledger:
    """A ledger file. Opens it for each call, so it can be shared by threads and processes.

    Args:
        path: of the file; `Ledger.create` makes one.

    Raises:
        LedgerError: there is no such file, or it is not a ledger.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
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
        place = Path(path)
        if place.exists() and (not place.is_file() or place.stat().st_size):
            raise LedgerError(f"{str(path)!r} exists already; it is not replaced")
        # SQLite gives its journal the rights of the file. An empty file is what is left of
        # a creation that was cut off.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        with _talking(place) as database:
            database.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        return cls(path)

    def add(self, name: str, unit: PrivacyUnit, budget: Budget) -> Account:
        """Give a data set a budget, once and for all.

        Raises:
            LedgerError: the name is taken or is no name.
        """
        check_name(name)
        with self._write() as database:
            taken = database.execute("SELECT 1 FROM dataset WHERE name = ?", [name]).fetchone()
            if taken:
                raise LedgerError(
                    f"the data set {name!r} has a budget already, which is fixed; "
                    "use it, or choose another name for other people's data"
                )
            row = (
                name,
                _now(),
                json.dumps(unit.to_dict()),
                str(budget.rho),
                _text(budget.epsilon),
                _text(budget.delta),
                str(budget.approximate_epsilon),
                str(budget.approximate_delta),
            )
            database.execute("INSERT INTO dataset VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            return _account(database, name)

    def accounts(self) -> list[Account]:
        """All data sets, in the order they were given a budget."""
        with self._read() as database:
            names = database.execute("SELECT name FROM dataset ORDER BY rowid").fetchall()
            return [_account(database, name) for (name,) in names]

    def account(self, name: str) -> Account:
        """One data set.

        Raises:
            LedgerError: there is none of that name.
        """
        with self._read() as database:
            return _account(database, name)

    def charge(
        self, name: str, cost: Cost, unit: PrivacyUnit, *, mechanism: str, note: str = ""
    ) -> int:
        """Take a release from the budget; two processes at once are served one by one.

        Returns:
            The number of the entry.

        Raises:
            LedgerError: the budget is not enough or the unit another one; nothing is charged.

        Privacy:
            When this returns, the charge is on disk: call it before noise is drawn.
        """
        _check_text("a note", note, most=MAX_NOTE, is_optional=True)
        with self._write() as database:
            pool = _account(database, name).pool_for(cost, unit)
            amounts = _text(cost.rho), _text(cost.epsilon), _text(cost.delta)
            done = database.execute(
                "INSERT INTO entry (dataset, charged, pool, rho, epsilon, delta, mechanism, note) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [name, _now(), pool, *amounts, mechanism, note],
            )
            return int(done.lastrowid or 0)

    def note_published(self, number: int) -> None:
        """Record that the release of an entry is complete; it changes no amount."""
        with self._write() as database:
            database.execute(
                "UPDATE entry SET published = ? WHERE number = ? AND published IS NULL",
                [_now(), number],
            )

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        with _talking(self.path) as database:
            database.execute("BEGIN")
            self._check_kind(database)
            yield database

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with _talking(self.path) as database:
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
        if kind != _APPLICATION:
            raise LedgerError(f"{str(self.path)!r} is not a ledger; check the path")
        if version != _VERSION:
            raise LedgerError(
                f"{str(self.path)!r} is a ledger of version {version}, this program knows "
                f"{_VERSION}; use the version of inftda that made it"
            )


@dataclass(slots=True)
class Charge:
    """A release that is to be charged to a data set when its noise is about to be drawn."""

    ledger: Ledger
    dataset: str
    cost: Cost
    unit: PrivacyUnit
    mechanism: str
    note: str
    number: int | None = None

    @classmethod
    def to(  # noqa: PLR0913 - who pays, for what
        cls,
        ledger: "str | Path | Ledger | None",
        dataset: str | None,
        plan: Plan | StabilityPlan,
        *,
        is_private: bool,
        mechanism: str,
        out: str | Path | None,
    ) -> "Charge | None":
        """Check that a release can be paid for; nothing is charged yet.

        Returns:
            None if there is no ledger.

        Raises:
            LedgerError: it cannot, or ledger and data set are not both given.
            PrivacyError: the release is made with a seed and promises nothing.
        """
        if ledger is None and dataset is None:
            return None
        if ledger is None or dataset is None:
            raise LedgerError("a ledger and a data set go together; give both or neither")
        if not is_private:
            raise PrivacyError(
                "a release made with a seed promises nothing, so it cannot be charged to a "
                "ledger; leave out the seed or the ledger"
            )
        opened = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        if out is not None and opened.path.resolve().is_relative_to(Path(out).resolve()):
            raise LedgerError(
                f"the ledger {str(opened.path)!r} lies in the folder to be written, which is "
                "replaced as a whole; keep it elsewhere"
            )
        where = "" if out is None else str(out)
        note = "".join(sign if sign.isprintable() else "?" for sign in where)[:MAX_NOTE]
        charge = cls(opened, dataset, Cost.of(plan), plan.unit, mechanism, note)
        opened.account(dataset).pool_for(charge.cost, charge.unit)
        return charge

    def pay(self) -> None:
        """Charge it, once.

        Raises:
            LedgerError: the budget was spent in the meantime, or this was charged before.
        """
        if self.number is not None:
            raise LedgerError("this release was charged already; a second one costs again")
        self.number = self.ledger.charge(
            self.dataset, self.cost, self.unit, mechanism=self.mechanism, note=self.note
        )

    def note_published(self) -> None:
        """Record that the release is complete.

        It changes no amount, and the release is in place, so a failure here is no failure of
        the release: the entry goes on saying that it is not known to be published.
        """
        with suppress(LedgerError, OSError):
            self.ledger.note_published(self.number or 0)


@contextmanager
def _talking(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a ledger, with SQLite's errors in our words."""
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


def _account(database: sqlite3.Connection, name: str) -> Account:
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


def _is_same(unit: PrivacyUnit, other: PrivacyUnit) -> bool:
    """Whether two units are one; a single trip is always distinct."""
    if unit.is_single_trip and other.is_single_trip:
        return (unit.neighbours, unit.exactly) == (other.neighbours, other.exactly)
    return unit == other


def check_name(name: str) -> None:
    """Refuse what is no name for a data set.

    Raises:
        LedgerError: it is not one short line, or a spreadsheet could take it for a formula.
    """
    _check_text("a data set's name", name, most=MAX_NAME)
    if not name[0].isalnum():
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


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else exact_number(text)
