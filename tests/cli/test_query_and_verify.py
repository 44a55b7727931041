"""`inftda query` and `inftda verify` on a real release."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.cli.query import as_text


def test_query_sums_to_the_total_at_every_cross_of_levels(released, cli):
    for origin in ("all", "region", "province", "municipality"):
        for destination in ("all", "region", "province", "municipality"):
            done = cli(
                "query", released, "--origin-level", origin, "--destination-level", destination,
                "--format", "json",
            )  # fmt: skip
            assert done.code == 0
            assert sum(row["flow"] for row in json.loads(done.out)) == 5_000


def test_query_formats_agree(released, cli, tmp_path):
    ask = ("query", released, "--origin-level", "region", "--destination-level", "region")
    rows = json.loads(cli(*ask, "--format", "json").out)
    csv = cli(*ask, "--format", "csv").out.splitlines()
    assert csv[0] == '"origin","destination","flow"'
    assert len(csv) == len(rows) + 1
    assert cli(*ask, "--format", "parquet").code == 2
    file = tmp_path / "flows.parquet"
    assert cli(*ask, "--format", "parquet", "--out", file).code == 0
    assert pq.read_table(file).to_pylist() == rows
    text = cli(*ask).out
    assert text.splitlines()[0].split() == ["origin", "destination", "flow"]


def test_query_keeps_to_areas_and_shows_the_largest(released, cli):
    rows = json.loads(cli("query", released, "--from", "region:1", "--format", "json").out)
    whole = json.loads(
        cli("query", released, "--origin-level", "region", "--destination-level", "all",
            "--format", "json").out
    )  # fmt: skip
    assert sum(row["flow"] for row in rows) == next(r["flow"] for r in whole if r["origin"] == "1")
    top = json.loads(cli("query", released, "--top", 3, "--format", "json").out)
    flows = [row["flow"] for row in top]
    assert len(flows) == 3
    assert flows == sorted(flows, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "Atlantis"), "Atlantis"),
        (("--origin-level", "galaxy"), "galaxy"),
        (("--level", "mode=all"), "mode"),
        (("--format", "yaml"), "yaml"),
    ],
)
def test_wrong_queries_are_told_apart(released, cli, arguments, said):
    done = cli("query", released, *arguments)
    assert done.code == 2
    assert said in done.err


def test_a_code_cannot_tell_a_terminal_what_to_do():
    flows = pa.table({"origin": ["a\x1b[2J", "b\n"], "flow": [1, 2]})
    shown = as_text(flows)
    assert shown.count("\n") == 3
    assert "\x1b" not in shown
    assert "a\\x1b[2J" in shown
    assert "b\\x0a" in shown


def test_a_fresh_release_verifies(released, cli):
    done = cli("verify", released)
    assert done.code == 0
    assert "guarantee follows" in done.out


def edit_manifest(folder, change):
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def set_epsilon(data):
    data["guarantee"]["epsilon"] = 0.5


def set_noise(data):
    data["guarantee"]["levels"][0]["sigma2"] = "1"


def drop_level(data):
    del data["guarantee"]["levels"][0]


def set_total(data):
    data["total"] += 1


def escape(data):
    data["tree"]["axes"][0]["file"] = "../../etc/passwd"


def set_unit(data):
    data["guarantee"]["trips"] = 5


def set_fingerprint(data):
    data["tree"]["axes"][0]["fingerprint"] = "0" * 64


@pytest.mark.parametrize(
    "change", [set_epsilon, set_noise, drop_level, set_total, escape, set_unit, set_fingerprint]
)
def test_an_edited_manifest_does_not_verify(released, cli, change):
    edit_manifest(released, change)
    done = cli("verify", released)
    assert done.code == 2
    assert done.err.count("\n") == 1


def rewrite(folder, change):
    path = folder / "flows.parquet"
    table = pq.read_table(path)
    columns = {name: table[name].cast(pa.string()).to_pylist() for name in table.column_names[:-1]}
    columns["flow"] = table["flow"].to_pylist()
    change(columns)
    pq.write_table(pa.table(columns), path)


def make_negative(columns):
    columns["flow"][0], columns["flow"][1] = -1, columns["flow"][0] + columns["flow"][1] + 1


def repeat_cell(columns):
    for name in ("origin", "destination"):
        columns[name][1] = columns[name][0]


def unknown_area(columns):
    columns["origin"][0] = "Atlantis"


def make_fractions(columns):
    columns["flow"] = [float(flow) for flow in columns["flow"]]


@pytest.mark.parametrize("change", [make_negative, repeat_cell, unknown_area, make_fractions])
def test_edited_flows_do_not_verify(released, cli, change):
    rewrite(released, change)
    assert cli("verify", released).code == 2


def test_a_folder_that_is_no_release_is_told(cli, tmp_path):
    assert "no release folder" in cli("verify", tmp_path / "nothing").err
    assert "not a release" in cli("verify", tmp_path).err
