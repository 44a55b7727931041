"""Ledgers, data sets and costs that make no sense; a release they refuse leaves nothing."""

import pytest

from inftda.cli.main import run


@pytest.fixture
def ledger(place, capsys):
    assert run(["ledger", "create", "ledger.db", "census", "--rho", "0.02"]) == 0
    capsys.readouterr()
    return place / "ledger.db"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("create", "new.db", "x"), "give one of the two"),
        (("create", "new.db", "x", "--rho", "0"), "> 0"),
        (("create", "new.db", "x", "--epsilon", "1"), "give both"),
        (("create", "new.db", "a\nb", "--rho", "1"), "single blanks"),
        (("create", "no/new.db", "x", "--rho", "1"), "check the path"),
        (("create", ".", "x", "--rho", "1"), "no ledger"),
        (("create", "flows.csv", "x", "--rho", "1"), "not a ledger"),
        (("create", "ledger.db", "census", "--rho", "9"), "fixed"),
        (("list", "nothing.db"), "ledger create"),
        (("show", "ledger.db", "cencus"), "it has 'census'"),
        (("charge", "ledger.db", "census", "--rho", "0.01"), "--note"),
        (("charge", "ledger.db", "census", "--note", "x"), "--rho"),
        (("charge", "ledger.db", "census", "--rho", "0.01", "--note", "a\nb"), "one line"),
        (("charge", "ledger.db", "census", "--rho", "0.03", "--note", "x"), "--rho 0.02 fits"),
    ],
)
@pytest.mark.usefixtures("ledger")
def test_a_ledger_command_that_makes_no_sense_is_refused(refuse, arguments, says):
    refuse("ledger", *arguments, says=says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--ledger", "ledger.db"), "both or neither"),
        (("--ledger", "nothing.db", "--dataset", "census"), "ledger create"),
        (("--ledger", "ledger.db", "--dataset", "census", "--not-private-seed", "1"), "seed"),
        (("--ledger", "ledger.db", "--dataset", "census", "--trips", "2"), "do not add up"),
    ],
)
@pytest.mark.usefixtures("ledger")
def test_a_release_that_cannot_be_charged_is_refused(refuse_release, options, says):
    refuse_release(*options, says=says)


@pytest.mark.usefixtures("ledger")
def test_a_release_of_a_bad_table_is_not_charged(refuse_release, write, capsys):
    flows = write("x.csv", "origin,destination,count\n1,2,-3\n")
    refuse_release("--ledger", "ledger.db", "--dataset", "census", flows=flows, says="negative")
    run(["ledger", "show", "ledger.db", "census"])
    assert "0 releases" in capsys.readouterr().out
