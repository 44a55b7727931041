"""Release folders that were edited by hand, damaged, or made to mislead."""

import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from edited_folders import seal
from inftda.publication import manifest
from inftda.publication import parquet as tables
from inftda.publication.manifest import digest
from inftda.publication.parquet import CODE
from inftda.publication.release import open_release


def flows(**columns):
    rows = {"origin": ["1"], "destination": ["2"], "flow": [50], **columns}
    fields = [pa.field(name, CODE, nullable=False) for name in ("origin", "destination")]
    schema = pa.schema([*fields, pa.field("flow", pa.int64(), nullable=False)])
    return pa.table(rows).cast(schema)


#: What stands in flows.parquet, and what `verify` says about it.
TABLES = {
    "nothing": (b"", "cannot be read"),
    "CSV": (b"origin,destination,flow\n1,2,50\n", "cannot be read"),
    "a flow of zero": (flows(flow=[0]), "above 0"),
    "an unknown area": (flows(origin=["9"]), "not among its areas"),
    "areas as text": (flows().set_column(0, "origin", [["1"]]), "other columns than it should"),
    "a column more": (flows().append_column("true_count", [[30]]), "true_count (int64)"),
}


def put_flows(folder, what):
    content, _ = TABLES[what]
    if isinstance(content, bytes):
        (folder / "flows.parquet").write_bytes(content)
    else:
        pq.write_table(content, folder / "flows.parquet", compression="zstd")


@pytest.mark.parametrize("what", TABLES)
def test_a_table_that_is_not_the_one_released_does_not_verify(made, refuse, what):
    put_flows(made, what)
    refuse("verify", "release", says="not what the manifest was written for")
    seal(made, n_flows=1)
    refuse("verify", "release", says=TABLES[what][1])


#: Commands that read a release.
READERS = [
    ("verify", "release"),
    ("query", "release"),
    ("query", "release", "--intervals"),
    ("report", "release", "--out", "x.html"),
    ("export", "release", "--to", "csv", "--out", "x"),
    ("estimate", "release", "--out", "x"),
    ("change", "release", "release"),
    ("evaluate", "release", "--truth", "flows.csv", "--out", "x"),
]


def other_flows(made):
    rows = pq.read_table(made / "flows.parquet")
    larger = pc.add(rows["flow"], 1)
    changed = rows.set_column(2, rows.schema.field("flow"), larger)
    pq.write_table(changed, made / "flows.parquet")


def other_areas(made):
    text = (made / "areas.csv").read_text()
    (made / "areas.csv").write_text(text.replace('"S","3"', '"N","3"'))


def a_bomb(made):
    """Half a million rows in a few bytes."""
    n = 500_000
    rows = flows(origin=["1"] * n, destination=["2"] * n, flow=[1] * n)
    pq.write_table(rows, made / "flows.parquet", compression="zstd")
    assert (made / "flows.parquet").stat().st_size < n / 5
    seal(made, n_flows=n, total=n)


def packed(made):
    shutil.make_archive(made, "zip", made)
    shutil.rmtree(made)


#: What is done to a release, and what is said of it.
DAMAGES = {
    other_flows: "flows.parquet is not what the manifest was written for",
    other_areas: "areas.csv is not what the manifest was written for",
    a_bomb: ("500,000 flows", "16 cells"),
    packed: ("is a zip file", "unpack it first"),
}


@pytest.mark.parametrize("command", READERS, ids=" ".join)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_release_is_refused_by_every_command(made, refuse, damage, command):
    damage(made)
    name = "release" if made.exists() else "release.zip"
    refuse(*(name if word == "release" else word for word in command), says=DAMAGES[damage])


@pytest.mark.parametrize("command", [READERS[2], READERS[5]], ids=" ".join)
def test_measurements_of_another_release_are_refused_where_they_are_read(made, refuse, command):
    path = made / "measurements.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    refuse(*command, says="measurements.parquet is not what the manifest was written for")


def test_measurements_are_compared_with_their_digest_once(made, monkeypatch):
    compared = []
    monkeypatch.setattr(manifest, "digest", lambda path: compared.append(path.name) or digest(path))
    release = open_release(made)
    assert "measurements.parquet" not in compared
    release.measurements()
    release.measurements(only_totals=True)
    assert compared.count("measurements.parquet") == compared.count("flows.parquet") == 1


def test_rows_in_one_large_group_are_not_read(made, refuse, monkeypatch):
    """A group is unpacked whole: a few bytes may be many rows."""
    rows = flows(origin=["1"] * 4, destination=["1", "2", "3", "4"], flow=[1] * 4)
    pq.write_table(rows, made / "flows.parquet", compression="zstd")
    seal(made, n_flows=4, total=4)
    open_release(made)
    monkeypatch.setattr(tables, "ROW_GROUP", 3)
    refuse("query", "release", says="in other groups than releases have")


def test_a_blank_after_the_manifest_is_called_one(made, refuse):
    with (made / "manifest.json").open("a") as file:
        file.write(" ")
    refuse("verify", "release", says=("edited or damaged", "other blanks"))


def test_a_folder_of_releases_is_no_release(made, place, refuse):
    shutil.move(made, place / "all" / "2024")
    refuse("verify", "all", says=("is not a release", "one that is in it", "2024"))


def test_other_rows_than_the_manifest_states_are_refused(made, refuse):
    put_flows(made, "a flow of zero")
    seal(made, n_flows=3)
    refuse("query", "release", says="the manifest states 3")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["release[1]", "re*?", "o'clock", 'say "x"', "origin=1"])
def test_a_folder_with_a_strange_name_verifies_and_is_queried(made, place, capsys, name):
    from inftda.cli.main import run  # noqa: PLC0415

    shutil.move(made, place / name)
    assert run(["verify", name]) == 0, capsys.readouterr().err
    assert run(["query", name]) == 0, capsys.readouterr().err
    assert run(["report", name, "--out", "x.html"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--origin-level", "planet"), "the levels are"),
        (("--from", "Z"), "no area 'Z'"),
        (("--level", "mode=all"), "its axes are"),
        (("--where", "mode=car"), "its axes are"),
        (("--format", "parquet"), "--out"),
        (("--top", "-1"), "at least 1"),
        (("--format", "parquet", "--out", "no/where.parquet"), "make it first"),
        (("--out", "release/flows.parquet", "--force"), "lies in the release"),
    ],
)
@pytest.mark.usefixtures("made")
def test_a_query_that_makes_no_sense_is_refused(refuse, arguments, says):
    refuse("query", "release", *arguments, says=says)
