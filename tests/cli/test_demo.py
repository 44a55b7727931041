"""`inftda demo` and `make country`: what they write, and that they replace nobody else's files."""

import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from inftda.hierarchy import Hierarchy
from inftda.publication.release import open_release

MAKE = "make country --sizes 2,4,20 --trips 5000 --out"


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


def test_the_demo_can_be_run_again_also_where_it_was_not_finished(done, tmp_path):
    done("demo --out demo")
    (tmp_path / "demo/areas.csv").unlink()
    (tmp_path / "demo/release/flows.parquet").unlink()
    done("demo --out demo")
    assert (tmp_path / "demo/areas.csv").exists()


@pytest.mark.parametrize("name", ["flows.parquet", "areas.csv"])
@pytest.mark.parametrize("kind", ["thesis", "table", "link", "dangling", "folder"])
def test_no_table_is_replaced_that_was_there(typed, country, snapshot, name, kind):
    path, own = Path(name), Path(country.flows if "flows" in name else country.areas)
    match kind:
        case "folder":
            path.mkdir()
        case "dangling":
            path.symlink_to("nowhere")
        case "link":
            path.symlink_to(own)
        case _:
            path.write_bytes(own.read_bytes() if kind == "table" else b"years of work")
    before = snapshot()
    for line in ("demo --out .", f"{MAKE} ."):
        refused = typed(line)
        assert refused.code == 2
        assert name in refused.err
        assert "--out" in refused.err
        assert refused.err.count("\n") == 1
        assert snapshot() == before
        assert [one.name for one in Path().iterdir()] == [name]


def test_the_demo_replaces_no_release_that_it_did_not_make(typed, copied, snapshot, tmp_path):
    release = copied("RELEASE")
    before = snapshot()
    assert "demo" in typed("demo --out", tmp_path).err
    assert "release folder" in typed("demo --out", release).err
    (release / "manifest.json").unlink()
    assert typed("demo --out", tmp_path).code == 2
    before.pop(release / "manifest.json")
    assert snapshot() == before


def test_a_country_has_the_sizes_and_trips_that_were_asked_for(done):
    assert "5,000 trips" in done(MAKE, "out")
    areas = Hierarchy.read("out/areas.csv")
    assert [areas.n_areas(level) for level in (1, 2, 3)] == [2, 4, 20]
