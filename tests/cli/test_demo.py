"""`inftda demo` as a newcomer types it."""

import re
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from inftda.publication.release import open_release
from inftda.publication.verify import verify


def snapshot(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def shown(cli, tmp_path):
    done = cli("demo", "--out", tmp_path / "demo")
    assert done.code == 0, done.err
    return done.out


def test_the_demo_makes_a_country_and_a_private_release_of_it(shown, tmp_path):
    folder = tmp_path / "demo"
    assert sorted(path.name for path in folder.iterdir()) == [
        "areas.csv",
        "flows.parquet",
        "release",
    ]
    assert list(verify(folder / "release"))
    made = open_release(folder / "release")
    assert made.manifest.private is True
    assert made.total == sum(pq.read_table(folder / "flows.parquet").column("count").to_pylist())
    assert (made.manifest.plan.epsilon, made.manifest.plan.delta) == (1, 1e-8)
    assert "a person with exactly 1 trip may be replaced" in shown


def test_the_commands_it_shows_work_as_they_stand(shown, cli):
    commands = [line[2:] for line in shown.splitlines() if line.startswith("$ inftda ")]
    assert len(commands) == 2
    for command in commands:
        done = cli(*shlex.split(command)[1:])
        assert done.code == 0, done.err
    assert re.search(r"^origin +destination +flow$", done.out, re.MULTILINE)


def test_the_commands_it_shows_work_whatever_the_folder_is_called(cli, tmp_path):
    shown = cli("demo", "--out", tmp_path / "a demo; of ours").out
    commands = [line[2:] for line in shown.splitlines() if line.startswith("$ inftda ")]
    for command in commands:
        assert cli(*shlex.split(command)[1:]).code == 0


def test_what_it_shows_is_what_the_query_gives(cli, tmp_path):
    folder = tmp_path / "demo"
    lines = cli("demo", "--out", folder).out.splitlines()
    asked = cli(
        "query", folder / "release", "--origin-level", "region", "--destination-level", "region",
        "--top", 5,
    )  # fmt: skip
    assert asked.out.splitlines() == lines[-6:]


def test_the_demo_can_be_run_again(cli, tmp_path):
    for _ in range(2):
        assert cli("demo", "--out", tmp_path / "demo").code == 0


def test_the_demo_can_be_run_again_in_a_folder_it_did_not_finish(cli, tmp_path):
    assert cli("demo", "--out", tmp_path / "demo").code == 0
    (tmp_path / "demo" / "areas.csv").unlink()
    (tmp_path / "demo" / "release" / "flows.parquet").unlink()
    assert cli("demo", "--out", tmp_path / "demo").code == 0
    assert (tmp_path / "demo" / "areas.csv").exists()


@pytest.mark.parametrize("name", ["flows.parquet", "areas.csv"])
@pytest.mark.parametrize("kind", ["thesis", "table", "link", "folder"])
def test_the_demo_replaces_no_table_that_it_did_not_make(cli, country, tmp_path, name, kind):
    (path := tmp_path / name).parent.mkdir(exist_ok=True)
    own = Path(country.flows if name == "flows.parquet" else country.areas).read_bytes()
    if kind == "link":
        (tmp_path / "own").write_bytes(own)
        path.symlink_to("own")
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(own if kind == "table" else b"years of work")
    before = snapshot(tmp_path)
    done = cli("demo", "--out", tmp_path)
    assert done.code == 2
    assert name in done.err
    assert "give another --out" in done.err
    assert done.err.count("\n") == 1
    assert snapshot(tmp_path) == before


def test_the_demo_replaces_no_release_that_it_did_not_make(cli, released, tmp_path):
    before = snapshot(tmp_path)
    done = cli("demo", "--out", tmp_path)
    assert done.code == 2
    assert "not what the demo makes" in done.err
    assert snapshot(tmp_path) == before
    done = cli("demo", "--out", released)
    assert done.code == 2
    assert "lies in the release folder" in done.err
    assert snapshot(tmp_path) == before


def test_the_demo_does_not_replace_what_is_not_a_release(cli, tmp_path):
    (tmp_path / "demo" / "release").mkdir(parents=True)
    (tmp_path / "demo" / "release" / "thesis.txt").write_text("years of work")
    done = cli("demo", "--out", tmp_path / "demo")
    assert done.code == 2
    assert (tmp_path / "demo" / "release" / "thesis.txt").exists()


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize(
    "stage",
    [
        "inftda.cli.release.summary",
        pytest.param("inftda.cli.query.as_text", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_when_the_release_is_in_place_is_not_taken_for_a_failed_release(
    cli, tmp_path, monkeypatch, stage, is_there
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    if is_there:
        assert cli("demo", "--out", tmp_path / "demo").code == 0
    monkeypatch.setattr(stage, interrupt)
    done = cli("demo", "--out", tmp_path / "demo")
    assert done.code == 1
    assert "nothing was published" not in done.err
    assert "interrupted when the release in" in done.err
    assert list(verify(tmp_path / "demo" / "release"))


def test_ctrl_c_before_the_release_says_that_nothing_was_published(cli, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("inftda.publish.release", interrupt)
    done = cli("demo", "--out", tmp_path / "demo")
    assert done.code == 1
    assert "interrupted; nothing was published" in done.err
    assert not (tmp_path / "demo" / "release").exists()
