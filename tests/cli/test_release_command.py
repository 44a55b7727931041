"""`inftda release` as a user types it."""

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

from patience import PATIENCE

BUDGET = ("--epsilon", 1, "--delta", 1e-8)


def test_a_release_writes_four_files_and_says_what_is_protected(country, cli, tmp_path):
    out = tmp_path / "out"
    done = cli("release", country.flows, "--areas", country.areas, *BUDGET, "--out", out)
    assert done.code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "areas.csv",
        "flows.parquet",
        "manifest.json",
        "measurements.parquet",
    ]
    assert "a person with exactly 1 trip may be replaced" in done.out
    assert "epsilon" in done.out or "(1," in done.out
    flows = pq.read_table(out / "flows.parquet")
    assert flows.column_names == ["origin", "destination", "flow"]
    assert sum(flows["flow"].to_pylist()) == 5_000


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "trips by column 'count'"), (("--count", "none"), "one row is one trip")],
)
def test_it_is_said_what_a_row_was_taken_for(country, cli, tmp_path, options, said):
    given = ("release", country.flows, "--areas", country.areas, *BUDGET, *options)
    done = cli(*given, "--out", tmp_path / "out")
    assert f"\nCounted:    {said}\n" in done.out
    expected = country.made.flows().num_rows if options else 5_000
    assert sum(pq.read_table(tmp_path / "out/flows.parquet")["flow"].to_pylist()) == expected


def test_a_column_that_looks_like_counts_stops_a_release(cli, tmp_path):
    (tmp_path / "areas.csv").write_text("town\n1\n2\n")
    (tmp_path / "flows.csv").write_text("origin,destination,Count\n1,2,70\n")
    given = ("release", tmp_path / "flows.csv", "--areas", tmp_path / "areas.csv", *BUDGET)
    done = cli(*given, "--out", tmp_path / "out")
    assert done.code == 2
    assert "column 'Count' of 'flows.csv' may hold counts" in done.err
    assert not (tmp_path / "out").exists()


def test_json_is_one_object_on_standard_output(country, cli, tmp_path):
    out = tmp_path / "out"
    done = cli("release", country.flows, "--areas", country.areas, *BUDGET, "--out", out, "--json")
    stated = json.loads(done.out)
    assert stated["private"] is True
    assert stated["guarantee"]["epsilon"] == 1
    assert len(stated["guarantee"]["levels"]) == 6


@pytest.mark.parametrize(("delta", "is_told"), [("1e-8", False), ("1e-5", False), ("1e-4", True)])
def test_a_delta_that_gives_a_person_away_is_told(country, cli, tmp_path, delta, is_told):
    out = ("--epsilon", 1, "--delta", delta, "--out", tmp_path / "out")
    done = cli("release", country.flows, "--areas", country.areas, *out)
    told = "Careful:    delta should be far below 1 / people, here about 1 / 5,000"
    assert (told in done.out) == is_told


@pytest.mark.slow
def test_a_release_does_not_wait_for_pandas(country, tmp_path):
    """Arrow imports it at every chance if it is installed, as long as the release itself takes."""
    pytest.importorskip("pandas")
    code = (
        "import sys; from inftda.cli.main import run; code = run(sys.argv[1:]); "
        "print(code, 'inftda.publish' in sys.modules, 'pandas' in sys.modules)"
    )
    arguments = ("release", country.flows, "--areas", country.areas, *BUDGET, "--across", "0.08")
    command = [sys.executable, "-c", code, *map(str, arguments), "--quiet", "--out", "out"]
    done = subprocess.run(command, capture_output=True, check=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["0", "True", "False"]


def test_a_configuration_file_gives_defaults_and_flags_win(country, cli, tmp_path):
    config = tmp_path / "release.toml"
    config.write_text(
        f'flows = "{country.flows}"\nareas = "{country.areas}"\nepsilon = 2\ndelta = 1e-8\n'
        f'out = "{tmp_path / "out"}"\nneighbours = "add-remove"\nsplit = [1, 1, 1, 1, 1, 1, 2]\n'
    )
    done = cli("release", "--config", config, "--epsilon", 3, "--json")
    assert done.code == 0, done.err
    stated = json.loads(done.out)["guarantee"]
    assert (stated["epsilon"], stated["neighbours"], len(stated["levels"])) == (3, "add-remove", 7)


def test_a_misspelt_key_in_the_configuration_is_named(cli, tmp_path):
    config = tmp_path / "release.toml"
    config.write_text("epsilonn = 2\n")
    done = cli("release", "--config", config)
    assert done.code == 2
    assert "epsilonn" in done.err
    assert "did you mean 'epsilon'" in done.err


def test_a_seeded_release_is_repeatable_and_says_that_it_is_not_private(country, cli, tmp_path):
    outs = [tmp_path / "a", tmp_path / "b"]
    for out, threads in zip(outs, (1, 2), strict=True):
        done = cli(
            "release", country.flows, "--areas", country.areas, *BUDGET, "--out", out,
            "--not-private-seed", 7, "--threads", threads,
        )  # fmt: skip
        assert "NOT PRIVATE" in done.out
    first, second = (pq.read_table(out / "flows.parquet").to_pylist() for out in outs)
    assert first == second
    assert json.loads((outs[0] / "manifest.json").read_text())["private"] is False
    assert cli("verify", outs[0]).code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--epsilon", 0, "--delta", 1e-8), "epsilon"),
        (("--epsilon", "nan", "--delta", 1e-8), "epsilon"),
        (("--epsilon", 1), "delta"),
        (("--epsilon", 1, "--delta", 1), "delta"),
        ((*BUDGET, "--trips", 0), "trips"),
        ((*BUDGET, "--neighbours", "friends"), "neighbours"),
        ((*BUDGET, "--split", "1,x"), "split"),
        ((*BUDGET, "--unplaceable", "drop"), "substitute"),
        ((*BUDGET, "--axis", "mode"), "NAME=VALUE"),
        ((*BUDGET, "--threads", 0), "threads"),
        ((*BUDGET, "--frobnicate"), "frobnicate"),
    ],
)
def test_wrong_use_is_one_clear_line_and_leaves_nothing(country, cli, tmp_path, arguments, said):
    out = tmp_path / "out"
    done = cli("release", country.flows, "--areas", country.areas, "--out", out, *arguments)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_missing_output_folder_is_asked_for(country, cli):
    done = cli("release", country.flows, "--areas", country.areas, *BUDGET)
    assert done.code == 2
    assert "--out" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_release_leaves_nothing_and_says_so(tmp_path, number):
    """The signal comes while hundreds of millions of cells are being drawn."""
    out = tmp_path / "out"
    areas = tmp_path / "areas.csv"
    towns = [f"{i:06d}" for i in range(20_000)]
    areas.write_text("\n".join(["town", *towns]))
    flows = tmp_path / "flows.csv"
    flows.write_text("\n".join(["origin,destination,count", *(f"{t},{t},999" for t in towns)]))
    process = subprocess.Popen(
        [sys.executable, "-m", "inftda", "release", flows, "--areas", areas, "--epsilon", "1",
         "--delta", "1e-8", "--out", out, "--quiet"],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    deadline = time.monotonic() + PATIENCE
    while not list(tmp_path.glob(".out.partial-*")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "interrupted; nothing was published" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["areas.csv", "flows.csv"]


def test_levels_that_are_mostly_noise_are_named(cli, tmp_path, country):
    made = cli(
        "release", country.flows, "--areas", country.areas,
        "--epsilon", 0.3, "--delta", 1e-8, "--out", tmp_path / "out", "--not-private-seed", 1,
    )  # fmt: skip
    assert "do not use the level municipality > municipality: most of its pairs" in made.out
