"""Release folders that were edited by hand, damaged, or made to mislead."""

import copy
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def edited(change):
    """From a manifest to the text of a changed one."""

    def apply(manifest):
        changed = copy.deepcopy(manifest)
        change(changed)
        return json.dumps(changed, indent=2) + "\n"

    return apply


def put(*path):
    """Change one value of the manifest: keys and places, then the value."""
    *keys, last, value = path

    def change(manifest):
        place = manifest
        for key in keys:
            place = place[key]
        place[last] = value

    return edited(change)


def drop(*path):
    *keys, last = path

    def change(manifest):
        place = manifest
        for key in keys:
            place = place[key]
        del place[last]

    return edited(change)


LEVEL = ("guarantee", "levels", 0)
AXIS = ("tree", "axes", 0)

#: What is done to the manifest, and what `verify` says about it.
MANIFESTS = {
    "empty": (lambda _: "", "damaged"),
    "no object": (lambda _: "[]", "not that of a release"),
    "nested without end": (lambda _: "[" * 100_000, "damaged"),
    "cut off": (lambda manifest: json.dumps(manifest)[:300], "damaged"),
    "of a later format": (put("format", "inftda-release/99"), "another version"),
    "without its privacy": (drop("private"), "`private`"),
    "without its guarantee": (drop("guarantee"), "`guarantee`"),
    "said to be not private": (put("private", False), "promises nothing"),
    "a smaller epsilon": (put("guarantee", "epsilon", 0.5), "does not hold"),
    "epsilon as text": (put("guarantee", "epsilon", "1"), "Expected `float | null`"),
    "epsilon NaN": (put("guarantee", "epsilon", float("nan")), "not readable as JSON"),
    "epsilon negative": (put("guarantee", "epsilon", -1.0), "at least 0"),
    "no epsilon": (drop("guarantee", "epsilon"), "missing required field `epsilon`"),
    "a smaller delta": (put("guarantee", "delta", 1e-9), "does not hold"),
    "delta 0": (put("guarantee", "delta", 0), "does not hold"),
    "another rho": (put("guarantee", "rho", "1/1000"), "follows from the rest"),
    "an endless rho": (put("guarantee", "rho", "1e999999999"), "follows from the rest"),
    "rho divided by zero": (put("guarantee", "rho", "1/0"), "follows from the rest"),
    "more noise than was drawn": (put(*LEVEL, "sigma2", "1000000"), "follows from the rest"),
    "noise of zero": (put(*LEVEL, "sigma2", "0"), "does not fit the unit"),
    "negative noise": (put(*LEVEL, "sigma2", "-1"), "does not fit the unit"),
    "an endless variance": (put(*LEVEL, "sigma2", "1e999999999"), "must be a fraction"),
    "a larger noise for people only": (put(*LEVEL, "sigma", 1e6), "edited"),
    "a smaller sensitivity": (put(*LEVEL, "squared_sensitivity", 1), "does not fit the unit"),
    "another level": (put(*LEVEL, "index", 4), "twice"),
    "another number of cells": (put(*LEVEL, "cells", 3), "not the one of this tree"),
    "a level without noise": (drop(*LEVEL), "follows from the rest"),
    "no levels": (put("guarantee", "levels", []), "promises nothing"),
    "levels that are none": (put("guarantee", "levels", [None]), "not readable"),
    "protection of more trips": (put("guarantee", "trips", 2), "does not fit the unit"),
    "protection of no trip": (put("guarantee", "trips", 0), "at least 1"),
    "protection of all trips": (put("guarantee", "trips", 10**30), "does not fit the unit"),
    "another kind of neighbours": (put("guarantee", "neighbours", "add-remove"), "not hold"),
    "people with fewer trips": (put("guarantee", "exactly", False), "where it is noised"),
    "an unknown accountant": (put("guarantee", "accountant", "magic"), "accountant"),
    "a looser accountant": (put("guarantee", "accountant", "zcdp"), "'zcdp'"),
    "another mechanism's accountant": (put("guarantee", "accountant", "stability"), "accountant"),
    "another total": (put("total", 49), "total is 49"),
    "a total as truth value": (put("total", True), "`$.total`"),
    "a total with 400 digits": (put("total", 10**400), "which no release can have"),
    "another number of flows": (put("n_flows", 10**6), "not true"),
    "a file elsewhere": (put(*AXIS, "file", "../areas.csv"), "names the file"),
    "a file of the system": (put(*AXIS, "file", "/etc/passwd"), "names the file"),
    "a file without a name": (put(*AXIS, "file", ""), "names the file"),
    "a file with a zero byte": (put(*AXIS, "file", "areas.csv\0"), "names the file"),
    "another file": (put(*AXIS, "file", "flows.parquet"), "flows.parquet"),
    "a missing file": (put(*AXIS, "file", "more.csv"), "names the file"),
    "another fingerprint": (put(*AXIS, "fingerprint", "00"), "not the hierarchy"),
    "another order": (put("tree", "order", ["origin"] * 4), "the order names"),
    "an axis twice": (put(*AXIS, "name", "destination"), "given twice"),
    "an axis called flow": (put(*AXIS, "name", "flow"), "another name"),
    "no axes": (put("tree", "axes", []), "at least one axis"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", MANIFESTS)
def test_a_manifest_edited_by_hand_does_not_verify(made, refuse, what):
    change, says = MANIFESTS[what]
    path = made / "manifest.json"
    path.write_text(change(json.loads(path.read_text())))
    refuse("verify", "release", says=says)


def flows(**columns):
    return pa.table({"origin": ["1"], "destination": ["2"], "flow": [50], **columns})


#: What stands in flows.parquet, and what `verify` says about it.
TABLES = {
    "nothing": (b"", "cannot be read"),
    "CSV": (b"origin,destination,flow\n1,2,50\n", "cannot be read"),
    "a negative flow": (flows(flow=[-50]), "above 0"),
    "a flow of zero": (flows(flow=[0]), "above 0"),
    "decimal flows": (flows(flow=[50.0]), "64-bit integers"),
    "flows as text": (flows(flow=["50"]), "64-bit integers"),
    "no flow": (flows(flow=pa.array([None], "int64")), "rows without flow"),
    "an unknown area": (flows(origin=["9"]), "known area"),
    "no area": (flows(origin=pa.array([None], "string")), "rows without origin"),
    "lists as areas": (flows(origin=[["1"]]), "cannot be read"),
    "times as areas": (flows(origin=pa.array([1], pa.timestamp("us", tz="UTC"))), "cannot be"),
    "a cell twice": (
        pa.table({"origin": ["1"] * 2, "destination": ["2"] * 2, "flow": [25] * 2}),
        "twice",
    ),
    "another total": (flows(flow=[49]), "total is 50"),
    "a column less": (flows().select(["origin", "flow"]), "not origin, destination, flow"),
    "a column more": (flows(true_count=[30]), "not origin, destination, flow"),
}


@pytest.mark.parametrize("what", TABLES)
def test_a_table_that_is_not_the_one_released_does_not_verify(made, refuse, what):
    content, says = TABLES[what]
    if isinstance(content, bytes):
        (made / "flows.parquet").write_bytes(content)
    else:
        pq.write_table(content, made / "flows.parquet", compression="zstd")
    refuse("verify", "release", says=says)


@pytest.mark.parametrize("what", ["nothing", "CSV", "flows as text", "lists as areas"])
@pytest.mark.parametrize(
    "command", [("query", "release"), ("report", "release", "--out", "x.html")]
)
def test_a_damaged_table_is_not_shown(made, refuse, what, command):
    content, _ = TABLES[what]
    if isinstance(content, bytes):
        (made / "flows.parquet").write_bytes(content)
    else:
        pq.write_table(content, made / "flows.parquet", compression="zstd")
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
@pytest.mark.parametrize(
    "name", ["release[1]", "re*", "a b", "q?", "o'clock", 'say "x"', "origin=1"]
)
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
        (("--from", "region:Z"), "no area 'Z'"),
        (("--level", "mode=all"), "its axes are"),
        (("--level", "origin"), "NAME=VALUE"),
        (("--where", "mode=car"), "its axes are"),
        (("--format", "parquet"), "--out"),
        (("--format", "xml"), "table, csv"),
        (("--top", "few"), "--help"),
        (("--top", "-1"), "at least 1"),
        (("--out", "no/where.csv"), "make it first"),
        (("--format", "parquet", "--out", "no/where.parquet"), "make it first"),
        (("--format", "csv", "--out", "release"), "is a folder"),
        (("--out", "flows.csv"), "--force"),
        (("--out", "release/flows.parquet", "--force"), "lies in the release"),
        (("--out", "release/areas.csv", "--force"), "lies in the release"),
    ],
)
@pytest.mark.usefixtures("made")
def test_a_query_that_makes_no_sense_is_refused(refuse, arguments, says):
    refuse("query", "release", *arguments, says=says)


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("flows.csv", "--force"),
        ("release/flows.parquet", "lies in the release"),
        ("release/report.html", "lies in the release"),
        ("release", "is a folder"),
        ("no/where.html", "make it first"),
    ],
)
@pytest.mark.usefixtures("made")
def test_a_page_does_not_replace_anything(refuse, out, says):
    refuse("report", "release", "--out", out, says=says)
