"""The ledger file: durable, private, append-only, and shared by processes."""

import os
import sqlite3
import stat
import subprocess
import sys
from fractions import Fraction

import pytest

from inftda.errors import LedgerError, PrivacyError
from inftda.privacy import ledger as module
from inftda.privacy.budget import Budget, Cost
from inftda.privacy.ledger import Charge, Ledger
from inftda.privacy.unit import Unit

UNIT = Unit()
TENTH = Cost(Fraction(1, 10))


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "ledger.db")
    made.add("census", UNIT, Budget.make(rho="1"))
    return made


def charge(ledger, cost=TENTH, unit=UNIT, name="census"):
    return ledger.charge(name, cost, unit, mechanism="inftda", note="")


def test_what_is_charged_is_there_when_the_file_is_opened_again(ledger):
    number = charge(ledger)
    found = Ledger(ledger.path).dataset("census")
    assert [entry.number for entry in found.entries] == [number]
    assert (found.spending.spent, found.unit, found.budget) == (
        TENTH.rho,
        UNIT,
        Budget.make(rho="1"),
    )


def test_a_charge_is_flushed_to_disk_before_it_counts(ledger):
    """3 is EXTRA: a charge outlasts a power cut that follows it."""
    with module._connected(ledger.path) as database:
        assert database.execute("PRAGMA synchronous").fetchone()[0] == 3


def test_charges_stop_at_the_budget_and_a_refused_one_leaves_no_entry(ledger):
    for _ in range(10):
        charge(ledger)
    with pytest.raises(LedgerError, match=r"data set 'census'.*nothing is left"):
        charge(ledger)
    found = ledger.dataset("census")
    assert (found.spending.spent, len(found.entries)) == (1, 10)


def test_data_sets_do_not_share_a_budget(ledger):
    ledger.add("other", UNIT, Budget.make(rho="1"))
    for _ in range(10):
        charge(ledger)
    charge(ledger, name="other")
    assert [len(dataset.entries) for dataset in ledger.datasets()] == [10, 1]


def test_an_unknown_data_set_is_refused_and_the_known_ones_are_named(ledger):
    with pytest.raises(LedgerError, match="no data set 'cencus'; it has 'census'"):
        charge(ledger, name="cencus")


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "census ", " census", "two  blanks", "a\nb", "a\x00b", "=1+1", "../x", "-x"),
        *("x" * 101, "\N{FULLWIDTH LATIN SMALL LETTER C}ensus", "census\ufe0f", "Forl\u00ec"),
        "x'); DROP TABLE entry; --",
    ],
)
def test_a_name_has_plain_letters_so_that_no_two_look_the_same(ledger, name):
    with pytest.raises(LedgerError, match="name"):
        ledger.add(name, UNIT, Budget.make(rho="1"))
    with pytest.raises(LedgerError, match="no data set"):
        charge(ledger, name=name)


def test_capitals_do_not_make_another_name(ledger):
    with pytest.raises(LedgerError, match="has a budget already"):
        ledger.add("Census", UNIT, Budget.make(rho="1"))
    charge(ledger, name="CENSUS")
    assert ledger.dataset("census").spending.spent == TENTH.rho


def test_a_link_is_never_followed(tmp_path, ledger):
    (link := tmp_path / "link").symlink_to(ledger.path)
    with pytest.raises(LedgerError, match="is a link"):
        Ledger(link)
    (planted := tmp_path / "new.ledger").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerError, match="is a link"):
        Ledger.create(planted)
    assert not (tmp_path / "elsewhere").exists()


def test_a_second_name_is_refused_because_it_has_another_journal(tmp_path, ledger):
    """SQLite finds the journal of a killed process by the name that the process used."""
    (second := tmp_path / "second").hardlink_to(ledger.path)
    for name in (ledger.path, second):
        with pytest.raises(LedgerError, match=r"hard link.*mount the folder, not the file"):
            Ledger(name)
    with pytest.raises(LedgerError, match="hard link"):
        charge(ledger)
    second.unlink()
    charge(ledger)


def test_a_file_that_is_mounted_without_its_folder_is_refused(ledger, monkeypatch):
    """Its journal would lie in the container, and go with it."""
    seen = ledger.path.lstat()
    elsewhere = os.stat_result((*seen[:2], seen.st_dev + 1, *seen[3:]))
    lstat = type(ledger.path).lstat
    monkeypatch.setattr(
        type(ledger.path), "lstat", lambda path: elsewhere if path == ledger.path else lstat(path)
    )
    with pytest.raises(LedgerError, match=r"mounted by itself.*mount the folder, not the file"):
        Ledger(ledger.path)


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_a_journal_that_is_no_plain_file_of_ours_is_not_believed(ledger, ending, monkeypatch):
    beside = ledger.path.with_name(ledger.path.name + ending)
    beside.symlink_to(ledger.path)
    for attempt in (lambda: Ledger(ledger.path), lambda: charge(ledger)):
        with pytest.raises(LedgerError, match="is a link"):
            attempt()
    beside.unlink()
    beside.touch()
    somebody = os.stat_result((*beside.stat()[:4], 4_294_967, *beside.stat()[5:]))
    lstat = type(beside).lstat
    monkeypatch.setattr(
        type(beside), "lstat", lambda path: somebody if path == beside else lstat(path)
    )
    with pytest.raises(LedgerError, match="find out who"):
        Ledger(ledger.path)


def test_a_ledger_where_everybody_can_write_is_refused(ledger):
    ledger.path.parent.chmod(0o1777)
    with pytest.raises(LedgerError, match="everybody can write"):
        Ledger(ledger.path)
    with pytest.raises(LedgerError, match="everybody can write"):
        Ledger.create(ledger.path.with_name("new"))


def test_an_existing_file_is_not_replaced(ledger):
    before = ledger.path.read_bytes()
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(ledger.path)
    assert ledger.path.read_bytes() == before


def test_a_creation_that_was_cut_off_can_be_done_again(tmp_path):
    (tmp_path / "ledger.db").touch()
    Ledger.create(tmp_path / "ledger.db").add("a", UNIT, Budget.make(rho="1"))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entry",
        "UPDATE entry SET rho = '1/1000'",
        "UPDATE entry SET dataset = 'other'",
        "DELETE FROM dataset",
        "UPDATE dataset SET rho = '100'",
    ],
)
def test_what_was_spent_cannot_be_changed_by_a_slip(ledger, statement):
    charge(ledger)
    database = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError):
        database.execute(statement)
    database.close()


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100, b"SQLite format 3\x00"])
def test_a_file_that_is_no_ledger_is_refused(tmp_path, content):
    path = tmp_path / "x.db"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(path)


def test_another_sqlite_file_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE mine (a)")
    database.close()
    before = path.read_bytes()
    for attempt in (Ledger, Ledger.create):
        with pytest.raises(LedgerError):
            attempt(path)
    assert path.read_bytes() == before


def edited(ledger, *statements):
    """Somebody changes the file by hand, triggers or not."""
    database = sqlite3.connect(ledger.path, isolation_level=None)
    for (trigger,) in database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        database.execute(f"DROP TRIGGER {trigger}")
    for statement in statements:
        database.execute(statement)
    database.close()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        *(
            (f"UPDATE entry SET rho = '{rho}'", "changed by hand")
            for rho in ("-1", "0", "one", "1e999999999", "1/0")
        ),
        ("UPDATE dataset SET name = CAST('x' AS BLOB)", "no data set"),
        ("PRAGMA user_version = 99", "schema 99, which a newer version of inftda wrote"),
    ],
)
def test_what_was_changed_by_hand_is_not_believed(ledger, statement, says):
    charge(ledger)
    edited(ledger, statement)
    with pytest.raises(LedgerError, match=says):
        charge(ledger)


def test_a_cut_off_file_is_reported_as_damaged(ledger):
    content = ledger.path.read_bytes()
    ledger.path.write_bytes(content[: len(content) // 2])
    with pytest.raises(LedgerError, match="damaged"):
        charge(ledger)


def test_a_charge_waits_for_another_one_but_not_for_ever(ledger, monkeypatch):
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OSError, match="another release is being charged"):
        charge(ledger)
    other.execute("ROLLBACK")
    other.close()
    charge(ledger)


@pytest.mark.slow
def test_processes_at_once_never_overspend(ledger):
    """Six processes want 4 tenths each; 10 of the 24 charges fit, whoever gets them."""
    code = (
        "import sys; sys.stdin.read(1)\n"
        "from fractions import Fraction\n"
        "from inftda.errors import LedgerError\n"
        "from inftda.privacy.budget import Cost\n"
        "from inftda.privacy.ledger import Ledger\n"
        "from inftda.privacy.unit import Unit\n"
        "ledger, done = Ledger(sys.argv[1]), 0\n"
        "for _ in range(4):\n"
        "    try:\n"
        "        ledger.charge('census', Cost(Fraction(1, 10)), Unit(),\n"
        "                      mechanism='inftda')\n"
        "        done += 1\n"
        "    except LedgerError: pass\n"
        "print(done)"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(ledger.path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ},
        )
        for _ in range(6)
    ]  # fmt: skip
    for process in processes:
        process.stdin.write("x")
        process.stdin.flush()
    charged = [int(process.communicate()[0]) for process in processes]
    assert sum(charged) == 10
    found = ledger.dataset("census")
    assert found.spending.spent == 1
    assert len({entry.number for entry in found.entries}) == 10


class FakePlan:
    """What a charge needs of a plan."""

    rho, epsilon, delta, unit = Fraction(1, 10), None, None, UNIT


def make(ledger, dataset="census", *, is_private=True, out="out\n"):
    return Charge.to(ledger, dataset, FakePlan(), is_private=is_private, out=out)


def test_a_release_is_charged_when_it_is_paid_and_once(ledger):
    charge = make(ledger)
    assert ledger.dataset("census").entries == ()
    charge.pay()
    (entry,) = ledger.dataset("census").entries
    assert (entry.published, entry.note) == (None, "out?")
    with pytest.raises(LedgerError, match="charged already"):
        charge.pay()
    charge.note_published()
    assert ledger.dataset("census").entries[0].published is not None
    ledger.path.unlink()
    charge.note_published()  # does no harm


def test_what_cannot_be_paid_is_refused_before_any_work_or_at_the_latest_then(ledger):
    late = make(ledger)
    for _ in range(10):
        make(ledger).pay()
    for attempt in (lambda: make(ledger), late.pay):
        with pytest.raises(LedgerError, match="nothing is left"):
            attempt()


def test_a_charge_needs_a_ledger_elsewhere_its_data_set_and_no_seed(ledger):
    with pytest.raises(LedgerError, match="keep it elsewhere"):
        make(ledger, out=ledger.path.parent)
    with pytest.raises(PrivacyError, match="seed"):
        make(ledger, is_private=False)
    for given in ((ledger, None), (None, "census")):
        with pytest.raises(LedgerError, match="both or neither"):
            make(*given)
    assert make(None, None, is_private=False) is None
