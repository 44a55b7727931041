"""Release folders that were edited by hand, damaged, or made to mislead."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.publication.manifest import digest
from inftda.publication.tables import CODE


def put(*path):
    """Change one value of the manifest: keys and places, then the value; None takes it away."""
    *keys, last, value = path

    def change(manifest):
        place = manifest
        for key in keys:
            place = place[key]
        place[last] = value
        if value is None:
            del place[last]
        return json.dumps(manifest, indent=2) + "\n"

    return change


LEVEL = ("guarantee", "levels", 0)
AXIS = ("tree", "axes", 0)

#: What is done to the manifest, and what `verify` says about it. That nothing else passes is
#: tested among the forged releases.
MANIFESTS = {
    "no object": (lambda _: "[]", "not that of a release"),
    "cut off": (lambda manifest: json.dumps(manifest)[:300], "damaged"),
    "of a later format": (put("format", "inftda-release/99"), "another version"),
    "said to be not private": (put("private", False), "promises nothing"),
    "an endless variance": (put(*LEVEL, "sigma2", "1e999999999"), "must be a fraction"),
    "another number of cells": (put(*LEVEL, "cells", 3), "not the one of this tree"),
    "a looser accountant": (put("guarantee", "accountant", "zcdp"), "'zcdp'"),
    "a total with 400 digits": (put("total", 10**400), "total"),
    "another number of flows": (put("n_flows", 10**6), "not true"),
    "a file of the system": (put(*AXIS, "file", "/etc/passwd"), "names other files"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", MANIFESTS)
def test_a_manifest_edited_by_hand_does_not_verify(made, refuse, what):
    change, says = MANIFESTS[what]
    path = made / "manifest.json"
    path.write_text(change(json.loads(path.read_text())))
    refuse("verify", "release", says=says)


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
    path = made / "manifest.json"
    change = put("flows_sha256", digest(made / "flows.parquet"))
    path.write_text(change(json.loads(path.read_text())))
    refuse("verify", "release", says=TABLES[what][1])


@pytest.mark.parametrize("what", ["nothing", "CSV"])
@pytest.mark.parametrize(
    "command", [("query", "release"), ("report", "release", "--out", "x.html")]
)
def test_a_damaged_table_is_not_shown(made, refuse, what, command):
    put_flows(made, what)
    refuse(*command, says="edited or damaged")


def test_a_link_to_another_file_does_not_verify(made, refuse):
    (made / "flows.parquet").unlink()
    (made / "flows.parquet").symlink_to("/etc/passwd")
    refuse("verify", "release", says="is a link")


def test_areas_moved_to_another_region_do_not_verify(made, refuse):
    path = made / "areas.csv"
    path.write_text(path.read_text().replace('"S","3"', '"N","3"'))
    refuse("verify", "release", says="not the hierarchy")


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
