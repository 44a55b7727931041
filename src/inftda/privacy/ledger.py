"""The ledger: budget spent on data sets, in one SQLite file.

A custodian gives a data set a budget and a privacy unit. A release is charged in one transaction
just before its noise is drawn. If it crashes later it stays charged, because a part of it may have
been seen. Amounts are exact fractions, written as text. Entries are added, never changed or
removed: triggers enforce this for every program that writes to the file.

A ledger must never hold anything computed from the confidential table: no totals, no errors.
"""

import errno
import json
import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Final

import msgspec

from inftda import __version__
from inftda.errors import LedgerError, PrivacyError
from inftda.privacy.budget import RELEASE, Budget, Cost, Dataset, charged_words
from inftda.privacy.noise_plan import Plan
from inftda.privacy.unit import Unit
from inftda.util.exact_numbers import decode_fraction
from inftda.util.files import whole_file

#: Limits of a ledger, stated to its readers.
CANNOT_KNOW: Final = (
    "A ledger knows only what it is told: not releases made without it or by other programs, "
    "not whether two data sets hold the same people (what they spend adds up), not whether "
    "the table or the privacy unit is what the custodian states, and not whether this file "
    "was replaced by an older copy."
)
#: How long a charge waits for another process that is being charged.
BUSY_SECONDS: Final = 30.0
_MAX_NAME: Final = 100
_MAX_NOTE: Final = 500
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*( [A-Za-z0-9._-]+)*")
#: Endings of the files that SQLite may keep beside its own.
_BESIDE: Final = ("-journal", "-wal", "-shm")
_APPLICATION: Final = 0x696E6674  # "inft"
#: What makes schema n + 1 of schema n, as plain SQL, one tuple of statements each; the first one
#: starts from an empty file. A step is never changed once it was part of a version: see
#: docs/reference/compatibility.md.
_STEPS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE dataset (
            name TEXT NOT NULL PRIMARY KEY COLLATE NOCASE,
            created TEXT NOT NULL,
            unit TEXT NOT NULL,
            rho TEXT NOT NULL,
            epsilon TEXT,
            delta TEXT,
            period_rho TEXT,
            period_epsilon TEXT,
            period_delta TEXT
        )""",
        """
        CREATE TABLE entry (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            dataset TEXT NOT NULL COLLATE NOCASE REFERENCES dataset (name),
            charged TEXT NOT NULL,
            published TEXT,
            rho TEXT NOT NULL,
            epsilon TEXT,
            delta TEXT,
            mechanism TEXT NOT NULL,
            note TEXT NOT NULL,
            period TEXT NOT NULL
        )""",
        """
        CREATE TRIGGER dataset_stays BEFORE DELETE ON dataset
            BEGIN SELECT raise(ABORT, 'a data set stays in its ledger'); END""",
        """
        CREATE TRIGGER dataset_is_fixed BEFORE UPDATE ON dataset
            BEGIN SELECT raise(ABORT, 'a budget is fixed once it is given'); END""",
        """
        CREATE TRIGGER entry_stays BEFORE DELETE ON entry
            BEGIN SELECT raise(ABORT, 'what was spent stays spent'); END""",
        """
        CREATE TRIGGER entry_is_fixed
            BEFORE UPDATE OF number, dataset, charged, rho, epsilon, delta, mechanism, note, period
            ON entry
            BEGIN SELECT raise(ABORT, 'what was spent stays spent'); END""",
        f"PRAGMA application_id = {_APPLICATION}",
    ),
)


class Ledger:
    """A ledger file. Opens it for each call, so it can be shared by threads and processes."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        _check_place(self.path)
        if not self.path.is_file():
            raise LedgerError(
                f"there is no ledger {str(self.path)!r}; make one with: "
                "inftda ledger create LEDGER DATASET --epsilon ... --delta ..."
            )
        with _connected(self.path) as database:
            if _schema(database, self.path) < len(_STEPS):
                _update(database, self.path)

    @classmethod
    def create(cls, path: str | Path) -> "Ledger":
        """Make an empty ledger, readable by its owner only."""
        file = Path(path)
        _check_place(file)
        if file.exists() and file.stat().st_size:
            raise LedgerError(f"{str(path)!r} exists already; it is not replaced")
        # SQLite gives its journal the file's permissions. An empty file is left over from an
        # interrupted creation.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
        with _connected(file) as database, _transaction(database, "BEGIN IMMEDIATE"):
            _advance(database, 0)
        return cls(path)

    def add(
        self, name: str, unit: Unit, budget: Budget, each_period: Budget | None = None
    ) -> Dataset:
        """Add a data set with its budget, and optionally a budget for each period."""
        check_name(name)
        with self._open("BEGIN IMMEDIATE") as database:
            if name.casefold() in map(str.casefold, _names(database)):
                raise LedgerError(
                    f"the data set {name!r} has a budget already, which is fixed; "
                    "use it, or choose another name for other people's data"
                )
            row = {"name": name, "created": _now(), "unit": json.dumps(unit.to_dict())}
            amounts = _texts(budget)
            if each_period is not None:
                texts = _texts(each_period)
                amounts |= {f"period_{name}": text for name, text in texts.items()}
            _insert(database, "dataset", {**row, **amounts})
            return _read(database, name)

    def datasets(self) -> list[Dataset]:
        """All data sets, in the order they were given a budget."""
        with self._open("BEGIN") as database:
            return [_read(database, name) for name in _names(database)]

    def dataset(self, name: str) -> Dataset:
        """The data set of that name."""
        with self._open("BEGIN") as database:
            return _read(database, name)

    def charge(  # noqa: PLR0913 - what is paid for, and what is noted of it
        self,
        name: str,
        cost: Cost,
        unit: Unit,
        *,
        mechanism: str,
        note: str = "",
        period: str = "",
    ) -> int:
        """Charge a release to the budget and return the number of its entry.

        Processes are served one at a time. If the budget does not suffice or the privacy unit
        differs, nothing is charged.

        Privacy:
            When this returns, the charge is on disk: call it before noise is drawn.
        """
        if note and (not note.strip() or len(note) > _MAX_NOTE or not note.isprintable()):
            raise LedgerError(
                f"a note must be one line of printable text of at most {_MAX_NOTE} characters, "
                f"got {note[:40]!r}"
            )
        # Writing is locked before the sums are read, so no other charge comes in between.
        with self._open("BEGIN IMMEDIATE") as database:
            dataset = _read(database, name)
            dataset.check(cost, unit, period)
            row = {"dataset": dataset.name, "charged": _now(), "mechanism": mechanism, "note": note}
            return _insert(database, "entry", {**row, "period": period, **_texts(cost)})

    def note_published(self, number: int) -> None:
        """Record that the release of an entry is complete; it changes no amount."""
        with self._open("BEGIN IMMEDIATE") as database:
            database.execute(
                "UPDATE entry SET published = ? WHERE number = ? AND published IS NULL",
                [_now(), number],
            )

    @contextmanager
    def _open(self, begin: str) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        with _connected(self.path) as database, _transaction(database, begin):
            _schema(database, self.path)  # another process may have brought it up to date
            yield database


@dataclass(slots=True)
class Charge:
    """Charge of a release to a data set, due just before its noise is drawn."""

    ledger: Ledger
    dataset: str
    cost: Cost
    unit: Unit
    note: str
    period: str = ""
    number: int | None = None
    is_being_paid: bool = False

    @classmethod
    def to(  # noqa: PLR0913 - what is paid for, and by whom
        cls,
        ledger: "str | Path | Ledger | None",
        dataset: str | None,
        plan: Plan,
        *,
        is_private: bool,
        out: str | Path | None,
        period: str = "",
    ) -> "Charge | None":
        """Check that a release can be paid for; nothing is charged yet. None without a ledger.

        `period` is the period that the release is about, if one was given.
        """
        if ledger is None and dataset is None:
            return None
        if ledger is None or dataset is None:
            raise LedgerError("a ledger and a data set go together; give both or neither")
        if not is_private:
            raise PrivacyError(
                "a release made with a seed gives no guarantee, so it cannot be charged to a "
                "ledger; leave out the seed or the ledger"
            )
        opened = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        if out is not None and opened.path.resolve().is_relative_to(Path(out).resolve()):
            raise LedgerError(
                f"the ledger {str(opened.path)!r} lies in the folder to be written, which is "
                "replaced as a whole; keep it elsewhere"
            )
        # The name of the folder identifies the release. Its full path may name people and machines,
        # and a ledger is exported for others to read.
        where = "" if out is None else Path(out).resolve().name
        note = "".join(sign if sign.isprintable() else "?" for sign in where)[:_MAX_NOTE]
        charge = cls(opened, dataset, Cost.of(plan), plan.unit, note, period)
        opened.dataset(dataset).check(charge.cost, charge.unit, period)
        return charge

    def pay(self) -> None:
        """Charge the release, once."""
        if self.number is not None:
            raise LedgerError("this release was charged already; a second one costs again")
        self.is_being_paid = True
        try:
            self.number = self.ledger.charge(
                self.dataset,
                self.cost,
                self.unit,
                mechanism=RELEASE,
                note=self.note,
                period=self.period,
            )
        except Exception:  # the transaction was rolled back; after an interrupt it is not known
            self.is_being_paid = False
            raise

    def describe(self) -> str:
        """State whether the ledger was charged, with cost and data set."""
        if self.number is not None:
            return charged_words(self.dataset, self.cost)
        if self.is_being_paid:
            return (
                "the ledger may have been charged: see inftda ledger show "
                f"{quote(str(self.ledger.path))} {quote(self.dataset)}"
            )
        return "the ledger was not charged"

    def note_published(self) -> None:
        """Record that the release is complete.

        It changes no amount, and the release is published already, so a failure here is no failure
        of the release; its entry then states that publication is not confirmed.
        """
        with suppress(LedgerError, OSError):
            self.ledger.note_published(self.number or 0)


def check_name(name: str) -> None:
    """Refuse an invalid name of a data set: two that look the same would have two budgets."""
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise LedgerError(
            "a data set's name must start with a letter or digit and have only letters from A to "
            f"Z, digits, '.', '_', '-' and single blanks, at most {_MAX_NAME} in all; got "
            f"{name[:40]!r}"
        )


def _names(database: sqlite3.Connection) -> list[str]:
    found = database.execute("SELECT CAST(name AS TEXT) FROM dataset ORDER BY rowid")
    return [name for (name,) in found]


def _read(database: sqlite3.Connection, name: str) -> Dataset:
    """A data set with all its entries."""
    found = database.execute("SELECT * FROM dataset WHERE name = ?", [name]).fetchone()
    if found is None:
        known = ", ".join(map(repr, _names(database)[:10]))
        raise LedgerError(
            f"the ledger has no data set {str(name)[:_MAX_NAME]!r}; it has {known or 'none'} "
            "(add one with: inftda ledger create)"
        )
    entries = database.execute("SELECT * FROM entry WHERE dataset = ? ORDER BY number", [name])
    whole = {**found, "budget": dict(found), "entries": [dict(entry) for entry in entries]}
    if found["period_rho"] is not None:
        whole["each_period"] = {x: found[f"period_{x}"] for x in ("rho", "epsilon", "delta")}
    try:
        whole["unit"] = json.loads(found["unit"])
        return msgspec.convert(whole, Dataset, dec_hook=decode_fraction)
    except (ValueError, TypeError, PrivacyError):
        raise LedgerError(
            f"the data set {name!r} of the ledger is not readable; it was changed by hand: get "
            "the ledger back from a copy"
        ) from None


def _insert(database: sqlite3.Connection, table: str, row: dict[str, str | None]) -> int:
    marks = ", ".join("?" for _ in row)
    done = database.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})",  # noqa: S608 - our own names
        [*row.values()],
    )
    return int(done.lastrowid or 0)


def _texts(amounts: Budget | Cost) -> dict[str, str | None]:
    """Amounts as they are written, exactly."""
    texts: dict[str, str | None] = msgspec.to_builtins(amounts, enc_hook=str)
    return texts


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """Connect to a ledger; errors of SQLite are explained."""
    _check_place(path)
    # Write access is needed for reading as well: only a writer can roll back a crashed transaction.
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        with closing(
            sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        ) as database:
            database.row_factory = sqlite3.Row
            database.execute("PRAGMA foreign_keys = ON")
            # A charge must outlast a power cut that comes right after it.
            database.execute("PRAGMA synchronous = EXTRA")
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as problem:  # damaged text, also in its messages
        failure = problem
    else:
        return
    raise _explain(path, failure)


@contextmanager
def _transaction(database: sqlite3.Connection, begin: str) -> Iterator[None]:
    database.execute(begin)
    try:
        yield
    except BaseException:
        if database.in_transaction:  # a full disk has ended it already
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _schema(database: sqlite3.Connection, path: Path) -> int:
    """Number of the schema of a ledger; files of others, and newer ledgers, are refused."""
    kind = database.execute("PRAGMA application_id").fetchone()[0]
    number: int = database.execute("PRAGMA user_version").fetchone()[0]
    if kind != _APPLICATION or number < 1:
        raise LedgerError(f"{str(path)!r} is not a ledger; check the path")
    if number > len(_STEPS):
        raise LedgerError(
            f"{str(path)!r} is a ledger of schema {number}, which a newer version of inftda wrote; "
            f"inftda {__version__} knows {len(_STEPS)}: use a newer version"
        )
    return number


def _update(database: sqlite3.Connection, path: Path) -> None:
    """Bring a ledger of an earlier version up to date, and keep a copy of it."""
    with _transaction(database, "BEGIN IMMEDIATE"):
        number = _schema(database, path)  # now that no other process can change it
        if number < len(_STEPS):
            _copy(path, Path(f"{path}.backup-{number}"))
            _advance(database, number)


def _advance(database: sqlite3.Connection, number: int) -> None:
    """From one schema to the newest, in the transaction that is open."""
    for statement in chain(*_STEPS[number:]):
        database.execute(statement)
    database.execute(f"PRAGMA user_version = {len(_STEPS)}")


def _copy(path: Path, copy: Path) -> None:
    """Copy a ledger, readable by its owner only; a copy of that name is replaced."""
    # A connection that writes cannot be copied from: another one of the same process reads.
    with (
        whole_file(copy, mode=0o600) as file,
        _connected(path) as source,
        closing(sqlite3.connect(file)) as target,
    ):
        source.backup(target)


def _explain(path: Path, failure: Exception) -> Exception:
    """An `OSError` if the machine is at fault, a `LedgerError` if the user can do something."""
    code = getattr(failure, "sqlite_errorname", "")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return OSError(errno.EBUSY, "another release is being charged; try again", str(path))
    if code.startswith("SQLITE_FULL"):
        return OSError(errno.ENOSPC, "no space left to charge the release", str(path))
    if code.startswith("SQLITE_IOERR"):
        return OSError(errno.EIO, "the ledger cannot be read or written", str(path))
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return LedgerError(
            f"the ledger {str(path)!r} cannot be opened for this; check its permissions and "
            "those of its folder"
        )
    return LedgerError(
        f"{str(path)!r} is not a ledger, or was damaged; get it back from a copy, and add what "
        "was released since with: inftda ledger charge"
    )


def _check_place(path: Path) -> None:
    """Refuse a ledger that another user could have planted, or that could lose charges.

    SQLite rolls back unfinished transactions with any journal that lies beside its
    file, so a planted journal could undo charges. It looks for the journal beside the given name
    of the file: through a second name, or if only the file is mounted into a container, it finds no
    journal, and charges can get lost.
    """
    if not hasattr(os, "geteuid"):
        raise LedgerError(
            "a ledger needs the owners and permissions of files that Linux and macOS have; on "
            "Windows keep it in WSL"
        )
    try:
        folder = path.absolute().parent.stat()
    except (OSError, ValueError):  # missing, which is reported elsewhere
        return
    if folder.st_mode & stat.S_IWOTH:
        raise LedgerError(
            f"everybody can write to the folder of the ledger {str(path)!r}, and so replace it; "
            "keep it in a folder of its own"
        )
    owners = {os.geteuid(), 0}
    for name in (path, *(Path(f"{path}{ending}") for ending in _BESIDE)):
        try:
            found = name.lstat()
        except (OSError, ValueError):
            continue
        if name == path and stat.S_ISDIR(found.st_mode):
            continue  # reported as no ledger when it is opened
        if not stat.S_ISREG(found.st_mode):
            kind = "a link" if stat.S_ISLNK(found.st_mode) else "not a plain file"
            raise LedgerError(f"{str(name)!r} is {kind}; a ledger is a plain file: name it itself")
        if name != path and found.st_uid not in owners:
            raise LedgerError(
                f"{str(name)!r} belongs to neither you nor the owner of the ledger; find out who "
                "put it there before the ledger is used"
            )
        if name == path and (found.st_nlink > 1 or found.st_dev != folder.st_dev):
            is_twin = found.st_nlink > 1
            state = "has a second name (a hard link)" if is_twin else "is mounted by itself"
            raise LedgerError(
                f"the ledger {str(path)!r} {state}, so charges could be lost when a release is "
                "killed; keep one name, and for a container mount the folder, not the file"
            )
        owners.add(found.st_uid)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
