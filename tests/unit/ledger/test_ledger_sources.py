"""Files of data sets are known by where they lie, and by nothing that is in them."""

import sqlite3

from inftda.ledger.budget import Budget, Cost
from inftda.ledger.ledger import Ledger
from inftda.ledger.sources import FileMark, file_marks
from inftda.privacy.unit import PrivacyUnit

UNIT = PrivacyUnit("substitute", 1)


def new_ledger(folder):
    ledger = Ledger.create(folder / "ledger.db")
    ledger.add("people", UNIT, Budget.make(rho=1))
    return ledger


def test_tables_in_memory_and_queries_have_no_file():
    assert file_marks({"origin": ["a"]}) == ()
    assert file_marks(None) == ()


def test_a_file_that_is_not_there_is_known_by_its_path(tmp_path):
    (mark,) = file_marks(tmp_path / "none.csv")
    assert mark == FileMark(str(tmp_path / "none.csv").encode(), "", "")
    assert not mark.holds(file_marks(tmp_path / "nonesuch.csv")[0])


def test_a_ledger_made_before_knows_nothing_and_learns_with_the_next_charge(tmp_path):
    tmp_path.chmod(0o700)
    ledger = new_ledger(tmp_path)
    table = tmp_path / "table.csv"
    table.write_text("origin\n")
    marks = file_marks(table)
    assert ledger.dataset_of(marks) is None
    ledger.charge("people", Cost.stated(rho=0.1), UNIT, mechanism="inftda", files=marks)
    assert ledger.dataset_of(marks) == "people"
    assert ledger.dataset_of(file_marks(tmp_path / "other.csv")) is None
    assert len(ledger.account("people").entries) == 1


def test_nothing_of_the_content_is_kept(tmp_path):
    tmp_path.chmod(0o700)
    ledger = new_ledger(tmp_path)
    table = tmp_path / "table.csv"
    table.write_text("origin\nsecret\n")
    marks = file_marks(table)
    ledger.charge("people", Cost.stated(rho=0.1), UNIT, mechanism="inftda", files=marks)
    table.write_text("something else altogether\n")
    assert file_marks(table) == marks
    with sqlite3.connect(ledger.path) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(source)")]
    assert columns == ["entry", "path", "disk", "number"]
