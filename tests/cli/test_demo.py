"""`inftda demo`: what it writes, and that it replaces nobody else's files."""

import shlex

import pyarrow.parquet as pq

from inftda.publication.release import open_release
from inftda.tree.hierarchy import Hierarchy

SMALL = "demo --sizes 2,4,20 --trips 5000 --out"


def test_the_demo_makes_a_private_release_and_its_commands_work(done, cli, tmp_path):
    shown = done("demo --out demo")
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {
        "areas.csv", "flows.parquet", "release",
    }  # fmt: skip
    made = open_release("demo/release")
    assert made.manifest.private is True
    assert made.total == sum(pq.read_table("demo/flows.parquet").column("count").to_pylist())
    release, query = [line[2:] for line in shown.splitlines() if line.startswith("$ inftda ")]
    assert cli(*shlex.split(query)[1:]).out.splitlines() == shown.splitlines()[-6:]
    assert cli(*shlex.split(release)[1:]).code == 0
    assert cli("verify", "demo/release").code == 0


def test_the_demo_can_be_run_again_also_where_it_was_not_finished(done, typed, tmp_path):
    done(SMALL, "demo")
    assert "--force" in typed(SMALL, "demo").err
    (tmp_path / "demo/areas.csv").unlink()
    (tmp_path / "demo/release/flows.parquet").unlink()
    done(f"{SMALL} demo --force")
    assert (tmp_path / "demo/areas.csv").exists()


def test_a_country_has_the_sizes_and_trips_that_were_asked_for(done):
    done(f"{SMALL} out --quiet")
    assert pq.read_table("out/flows.parquet").column("count").to_numpy().sum() == 5_000
    areas = Hierarchy.read("out/areas.csv")
    assert [areas.n_areas(level) for level in (1, 2, 3)] == [2, 4, 20]
