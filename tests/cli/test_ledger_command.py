"""`inftda ledger` as a custodian types it, and releases that are charged to it."""

import json

import pytest


@pytest.fixture
def ledger(done):
    done("ledger create ledger.db census --rho 0.05 --delta 1e-6")


@pytest.fixture
def publish(typed, ledger):  # noqa: ARG001 - it is charged
    """Releases the small country, charged to the ledger."""
    line = "release FLOWS --areas AREAS --ledger ledger.db --dataset census"
    return lambda out, budget: typed(f"{line} --out {out} {budget}")


@pytest.fixture
def entries(done):
    return lambda: json.loads(done("ledger show ledger.db census --json"))["entries"]


def test_releases_are_charged_until_the_budget_is_spent(publish, entries, tmp_path):
    assert [publish(out, "--rho 0.02").code for out in ("a", "b")] == [0, 0]
    refused = publish("c", "--rho 0.02")
    assert refused.code == 2
    assert "--rho 0.01 fits" in refused.err
    assert not (tmp_path / "c").exists()
    assert publish("c", "--rho 0.01").code == 0
    assert [entry["rho"] for entry in entries()] == ["1/50", "1/50", "1/100"]
    assert all(entry["published"] for entry in entries())


def test_the_list_states_what_is_spent_in_rho_and_epsilon(done, publish):
    publish("a", "--rho 0.02")
    _, row = done("ledger list ledger.db").splitlines()
    assert row.split()[:5] == ["census", "1", "0.05", "0.02", "0.03"]
    (shown,) = json.loads(done("ledger list ledger.db --json"))["datasets"]
    assert shown["spent"]["rho"] == "1/50"
    assert 0.8 < shown["spent"]["epsilon_at_delta"] < 1.1
    assert [entry["rho"] for entry in shown["entries"]] == ["1/50"]


@pytest.mark.usefixtures("ledger")
def test_the_list_rounds_what_is_spent_up_and_what_is_left_down(done):
    done("ledger charge ledger.db census --rho 1/75 --note x")
    _, row = done("ledger list ledger.db").splitlines()
    assert row.split()[3:5] == ["0.0133334", "0.0366666"]


def test_the_list_as_json_has_every_entry_with_exact_amounts_and_no_path(done, publish, tmp_path):
    (tmp_path / "alice").mkdir()
    assert publish("alice/a", "--rho 1/75").code == 0
    done("ledger charge ledger.db census --rho 0.01 --note", "yearbook, table 3")
    text = done("ledger list ledger.db --json")
    stated = json.loads(text)
    assert "older copy" in stated["cannot_know"]
    rows = stated["datasets"][0]["entries"]
    assert [row["rho"] for row in rows] == ["1/75", "1/100"]
    assert [row["note"] for row in rows] == ["a", "yearbook, table 3"]
    assert rows[1]["mechanism"] == "stated by hand"
    shown = done("ledger show ledger.db census")
    assert "knows only what it is told" in shown
    assert "alice" not in text + shown


def test_a_period_cannot_have_a_second_budget_by_another_spelling(done, typed):
    made = done("ledger create months.db census --rho 1 --period-rho 0.05")
    assert "periods must not overlap" in made
    charge = "ledger charge months.db census --rho 0.05 --note x --period"
    done(f"{charge} 2024-01")
    for period in ("2024-Q1", "2024", "2024-1", "Jan-2024"):
        refused = typed(f"{charge} {period}")
        assert refused.code == 2
        assert "written as YYYY-MM, such as '2024-01'" in refused.err
    done(f"{charge} 2024-02")
