"""`--measurements` as it is typed: release, verify, and what goes wrong."""

import json

import pyarrow.parquet as pq
import pytest

BUDGET = ("--rho", "1/20")


@pytest.fixture
def publish(country, cli, tmp_path):
    def run(*options, out="out"):
        folder = tmp_path / out
        given = ("release", country.flows, "--areas", country.areas, *options, "--out", folder)
        return folder, cli(*given)

    return run


def test_a_release_with_measurements_says_so_and_can_be_verified(publish, cli):
    folder, done = publish(*BUDGET, "--measurements")
    assert done.code == 0, done.err
    assert "Measured:   every noisy value is in measurements.parquet" in done.out
    assert len(pq.read_table(folder / "measurements.parquet")) > 100
    stated = json.loads((folder / "manifest.json").read_text())
    assert len(stated["measurements_sha256"]) == 64
    done = cli("verify", folder)
    assert done.code == 0, done.err
    assert done.out.count("measurements") == 2


def test_without_it_there_are_none_and_nothing_is_said(publish, cli):
    folder, done = publish(*BUDGET)
    assert "measurements" not in done.out
    assert json.loads((folder / "manifest.json").read_text())["measurements"] == "totals"
    assert "measurements" not in cli("verify", folder).out


def test_equal_seeds_give_equal_flows_with_and_without(publish):
    seed = (*BUDGET, "--not-private-seed", 3)
    without, _ = publish(*seed, out="a")
    with_, _ = publish(*seed, "--measurements", out="b")
    assert (without / "flows.parquet").read_bytes() == (with_ / "flows.parquet").read_bytes()


def test_measurements_of_another_release_are_found_out(publish, cli):
    one, _ = publish(*BUDGET, "--measurements", out="a")
    other, _ = publish(*BUDGET, "--measurements", out="b")
    (one / "measurements.parquet").write_bytes((other / "measurements.parquet").read_bytes())
    done = cli("verify", one)
    assert done.code == 2
    assert "measurements.parquet" in done.err
