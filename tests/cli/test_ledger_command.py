"""`inftda ledger` as a custodian types it, and releases that are charged to it."""

import csv
import io
import json
import os
import shlex

import pytest

BUDGET = ("--epsilon", 1, "--delta", 1e-8)


@pytest.fixture
def ledger(cli, tmp_path):
    path = tmp_path / "ledger.db"
    assert cli("ledger", "create", path, "census", "--rho", "0.05", "--delta", "1e-6").code == 0
    return path


@pytest.fixture
def publish(cli, country, ledger, tmp_path):
    """Releases the small country, charged to the ledger."""

    def call(name, *options, dataset="census"):
        return cli(
            "release", country.flows, "--areas", country.areas, "--out", tmp_path / name,
            "--ledger", ledger, "--dataset", dataset, *options,
        )  # fmt: skip

    return call


def entries(cli, ledger, dataset="census"):
    return json.loads(cli("ledger", "show", ledger, dataset, "--json").out)["entries"]


def test_releases_are_charged_until_the_budget_is_spent(cli, ledger, publish, tmp_path):
    assert publish("a", "--rho", "0.02").code == 0
    assert publish("b", "--rho", "0.02").code == 0
    refused = publish("c", "--rho", "0.02")
    assert refused.code == 2
    assert "--rho 0.01 fits" in refused.err
    assert not (tmp_path / "c").exists()
    assert publish("c", "--rho", "0.01").code == 0
    assert [entry["rho"] for entry in entries(cli, ledger)] == ["1/50", "1/50", "1/100"]
    assert all(entry["published"] for entry in entries(cli, ledger))


def test_without_a_ledger_nothing_changes(cli, country, ledger, tmp_path):
    out = tmp_path / "out"
    done = cli("release", country.flows, "--areas", country.areas, *BUDGET, "--out", out)
    assert done.code == 0
    assert entries(cli, ledger) == []


def test_a_budget_of_epsilon_fits_the_one_release_that_promises_it(cli, ledger, publish):
    cli("ledger", "create", ledger, "whole", *BUDGET)
    assert publish("a", *BUDGET, dataset="whole").code == 0
    refused = publish("b", "--rho", "1e-6", dataset="whole")
    assert refused.code == 2
    assert "whole budget" in refused.err
    assert len(entries(cli, ledger, "whole")) == 1


def test_a_release_that_fails_after_its_noise_was_begun_stays_charged(
    cli, ledger, publish, tmp_path, monkeypatch
):
    from inftda import files  # noqa: PLC0415

    def fail(*_, **__):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "_sync", fail)
    assert publish("a", "--rho", "0.02").code == 1
    assert not (tmp_path / "a").exists()
    (entry,) = entries(cli, ledger)
    assert entry["published"] is None
    assert "not known to be published" in cli("ledger", "show", ledger, "census").out


def test_a_release_of_a_table_that_cannot_be_read_costs_nothing(cli, country, ledger, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("origin,destination\nnowhere,nowhere\n")
    done = cli(
        "release", bad, "--areas", country.areas, "--rho", "0.02", "--out", tmp_path / "out",
        "--ledger", ledger, "--dataset", "census",
    )  # fmt: skip
    assert done.code == 2
    assert entries(cli, ledger) == []


def test_the_list_states_what_is_spent_in_rho_and_epsilon(cli, ledger, publish):
    publish("a", "--rho", "0.02")
    head, row = cli("ledger", "list", ledger).out.splitlines()
    assert head.split()[:3] == ["data", "set", "releases"]
    assert row.split()[:5] == ["census", "1", "0.05", "0.02", "0.03"]
    (shown,) = json.loads(cli("ledger", "list", ledger, "--json").out)["datasets"]
    assert shown["spent"]["rho"] == "1/50"
    assert 0.8 < shown["spent"]["epsilon_at_delta"] < 1.1
    assert "entries" not in shown


def test_what_a_ledger_cannot_know_is_said(cli, ledger):
    shown = cli("ledger", "show", ledger, "census")
    assert "knows only what it is told" in shown.out
    exported = json.loads(cli("ledger", "export", ledger, "--format", "json").out)
    assert "older copy" in exported["cannot_know"]


def test_the_export_has_every_entry_with_exact_amounts(cli, ledger, publish, tmp_path):
    publish("a", "--rho", "1/75")
    cli("ledger", "charge", ledger, "census", "--rho", "0.01", "--note", "yearbook, table 3")
    rows = list(csv.DictReader(io.StringIO(cli("ledger", "export", ledger).out)))
    assert [row["rho"] for row in rows] == ["1/75", "1/100"]
    assert rows[1]["note"] == "yearbook, table 3"
    assert rows[1]["mechanism"] == "stated by hand"
    out = tmp_path / "ledger.json"
    assert cli("ledger", "export", ledger, "--format", "json", "--out", out).code == 0
    (account,) = json.loads(out.read_text())["datasets"]
    assert [entry["rho"] for entry in account["entries"]] == ["1/75", "1/100"]


def test_the_export_names_the_folder_of_a_release_and_not_the_path(cli, ledger, publish, tmp_path):
    (tmp_path / "alice on pc7").mkdir()
    assert publish("alice on pc7/a", "--rho", "1/75").code == 0
    for shown in (cli("ledger", "export", ledger), cli("ledger", "show", ledger, "census")):
        assert "alice" not in shown.out
    (row,) = csv.DictReader(io.StringIO(cli("ledger", "export", ledger).out))
    assert row["note"] == "a"


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_the_export_does_not_replace_the_ledger(cli, ledger, force):
    before = ledger.read_bytes()
    done = cli("ledger", "export", ledger, "--format", "csv", "--out", ledger, *force)
    assert done.code == 2
    assert "is being read" in done.err
    assert ledger.read_bytes() == before


def test_the_export_is_written_as_the_file_ends(cli, ledger, tmp_path):
    assert cli("ledger", "export", ledger, "--out", tmp_path / "entries.json").code == 0
    assert "datasets" in json.loads((tmp_path / "entries.json").read_text())
    for options in (("entries.txt",), ("other.json", "--format", "csv")):
        refused = cli("ledger", "export", ledger, "--out", tmp_path / options[0], *options[1:])
        assert refused.code == 2
        assert "the ending of" in refused.err
        assert not (tmp_path / options[0]).exists()


def test_an_export_that_cannot_be_written_leaves_the_older_file(cli, ledger, tmp_path, monkeypatch):
    (out := tmp_path / "entries.csv").write_text("old")

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    done = cli("ledger", "export", ledger, "--out", out, "--force")
    assert done.code == 1
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["entries.csv", "ledger.db"]


def test_what_to_do_next_can_be_typed_as_it_stands(cli, tmp_path):
    path, name = tmp_path / "our ledger; 1", "census 2024"
    done = cli("ledger", "create", path, name, "--rho", "1")
    (line,) = [line for line in done.out.splitlines() if line.startswith("Next:")]
    assert shlex.split(line)[4:] == ["--ledger", str(path), "--dataset", name]


def test_python_takes_the_same_arguments(country, ledger, cli):
    from inftda.publish import release  # noqa: PLC0415

    made = release(country.flows, country.areas, rho="1/75", ledger=ledger, dataset="census")
    assert made.total == 5_000
    (entry,) = entries(cli, ledger)
    assert (entry["rho"], entry["note"]) == ("1/75", "")
