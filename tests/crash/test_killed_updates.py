"""A ledger that is brought up to date by a process that is killed: no charge is lost."""

import signal
import sqlite3
import stat
import subprocess
import sys
from fractions import Fraction

import pytest

from inftda.errors import LedgerError
from inftda.privacy import ledger as module
from inftda.privacy.budget import Budget, Cost
from inftda.privacy.ledger import Ledger
from inftda.privacy.unit import Unit

TENTH = Cost(Fraction(1, 10))
#: A made-up second schema, with so much that pages reach the disk before the transaction ends.
STEP = (
    "ALTER TABLE entry ADD COLUMN weather TEXT",
    """CREATE TABLE forecast AS WITH RECURSIVE n(x) AS
        (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 60000)
        SELECT x, hex(randomblob(40)) AS what FROM n""",
    "UPDATE entry SET published = 'never' WHERE published IS NULL",
)
#: Runs the update, and is killed before the statement of this number; after the last one, before
#: the end of the transaction.
KILLED = f"""
import os, signal, sys
from inftda.privacy import ledger
class Deadly(tuple):
    def __iter__(self):
        for number, statement in enumerate((*tuple.__iter__(self), "SELECT 1")):
            if number == int(sys.argv[2]):
                os.kill(os.getpid(), signal.SIGKILL)
            yield statement
ledger._STEPS = (*ledger._STEPS, Deadly({STEP!r}))
ledger.Ledger(sys.argv[1])
"""


@pytest.fixture
def ledger(tmp_path):
    """A ledger of schema 1 with charges."""
    made = Ledger.create(tmp_path / "budget.ledger")
    made.add("census", Unit(), Budget.make(rho="1"))
    for _ in range(3):
        made.charge("census", TENTH, Unit(), mechanism="inftda", note="")
    return made


@pytest.fixture
def newer(monkeypatch):
    """Makes this process one of a version that knows the second schema."""
    return lambda: monkeypatch.setattr(module, "_STEPS", (*module._STEPS, STEP))


def entries(path):
    return Ledger(path).dataset("census").entries


def schema(path):
    database = sqlite3.connect(path)
    number = database.execute("PRAGMA user_version").fetchone()[0]
    database.close()
    return number


def backup(path):
    return path.with_name(f"{path.name}.backup-1")


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(STEP) + 1))
def test_a_killed_update_leaves_the_ledger_as_it_was_and_is_made_up_for(ledger, newer, at):
    before = entries(ledger.path)
    killed = subprocess.run([sys.executable, "-c", KILLED, ledger.path, str(at)], check=False)
    assert killed.returncode == -signal.SIGKILL
    journal = ledger.path.with_name(f"{ledger.path.name}-journal")
    assert journal.exists() == (at > 0), "it was killed in the middle of writing"
    assert [entries(ledger.path), schema(ledger.path)] == [before, 1]
    assert entries(backup(ledger.path)) == before
    ledger.charge("census", TENTH, Unit(), mechanism="inftda", note="after the crash")
    newer()
    after = entries(ledger.path)
    assert [entry.number for entry in after] == [1, 2, 3, 4]
    assert sum(entry.rho for entry in after) == Fraction(4, 10)
    assert schema(ledger.path) == 2
    assert sorted(path.name for path in ledger.path.parent.iterdir()) == [
        "budget.ledger", "budget.ledger.backup-1",
    ]  # fmt: skip


def test_an_earlier_ledger_is_brought_up_to_date_once_with_a_copy_beside_it(ledger, newer):
    before = entries(ledger.path)
    newer()
    assert [entry.rho for entry in entries(ledger.path)] == [entry.rho for entry in before]
    assert [schema(ledger.path), schema(backup(ledger.path))] == [2, 1]
    assert stat.S_IMODE(backup(ledger.path).stat().st_mode) == 0o600
    stamp = backup(ledger.path).stat().st_mtime_ns
    ledger.charge("census", TENTH, Unit(), mechanism="inftda", note="")
    assert len(entries(ledger.path)) == 4
    assert backup(ledger.path).stat().st_mtime_ns == stamp


def test_a_newer_ledger_is_refused_and_left_as_it_is(ledger, newer, monkeypatch):
    newer()
    Ledger(ledger.path)
    monkeypatch.undo()
    before = ledger.path.read_bytes()
    for attempt in (lambda: Ledger(ledger.path), ledger.datasets):
        with pytest.raises(LedgerError, match="schema 2, which a newer version of inftda wrote"):
            attempt()
    assert ledger.path.read_bytes() == before


def test_a_step_that_fails_changes_nothing(ledger, monkeypatch):
    before = entries(ledger.path)
    monkeypatch.setattr(module, "_STEPS", (*module._STEPS, (*STEP, "DELETE FROM entry")))
    with pytest.raises(LedgerError):
        Ledger(ledger.path)
    monkeypatch.undo()
    assert entries(ledger.path) == before


@pytest.mark.slow
def test_processes_that_find_an_earlier_ledger_at_once_update_it_once(ledger):
    code = f"""
import sys
from inftda.privacy import ledger
ledger._STEPS = (*ledger._STEPS, {STEP!r})
sys.stdin.read(1)
print(len(ledger.Ledger(sys.argv[1]).dataset("census").entries))
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, ledger.path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    for process in processes:
        process.stdin.write("x")
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == ["3\n"] * 4
    assert schema(ledger.path) == 2
