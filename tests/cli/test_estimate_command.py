"""The estimate of a release, intervals of its numbers, and estimates that are none."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import inftda
from inftda.errors import ReleaseError
from inftda.publication.manifest import digest


def test_it_is_said_that_an_estimate_is_not_guaranteed(typed):
    said = typed("estimate MEASURED --out made")
    assert said.code == 0, said.err
    assert "not guaranteed" in said.out
    assert "NOT PRIVATE" in said.err.upper(), "of a release that promises nothing"


@pytest.mark.slow
def test_equal_seeds_give_equal_estimates_on_any_number_of_threads(given):
    one, two = (inftda.estimate(given["MEASURED"], seed=3, threads=n).table for n in (1, 2))
    assert one.equals(two)


@pytest.mark.slow
@pytest.mark.parametrize("order", [None, ("origin", "destination")])
def test_an_estimate_is_closer_to_the_truth_than_the_release(country, order):
    """Squared error over all cells, with intervals at all levels: one made-up country, one seed."""
    release = inftda.release(
        country.flows, country.areas, epsilon=1, delta=1e-6, order=order,
        source=inftda.SeededSource(5),
    )  # fmt: skip
    codes = country.made.areas.codes(3).to_pylist()
    number = {code: i for i, code in enumerate(codes)}

    def matrix(flows, column):
        found = np.zeros((len(codes), len(codes)))
        for row in flows.to_pylist():
            found[number[row["origin"]], number[row["destination"]]] += row[column]
        return found

    truth = matrix(country.made.flows(), "count")
    estimated = matrix(inftda.estimate(release).flows(), "estimate")
    assert ((estimated - truth) ** 2).sum() < ((matrix(release.flows(), "flow") - truth) ** 2).sum()
    for level in release.tree.splitting_levels:
        axes = zip(release.tree.axes, level.depths, strict=True)
        names = {axis.name: axis.hierarchy.level_name(depth) for axis, depth in axes}
        assert release.flows(level=names, intervals=True).column("low").null_count == 0


def test_intervals_stand_beside_published_flows(given, done):
    release = inftda.open_release(given["MEASURED"])
    for kind in ("model", "noise"):
        table = release.flows(intervals=kind)
        low, high = (table.column(name).to_numpy() for name in ("low", "high"))
        assert (low >= 0).all()
        assert (low <= high).all()
    said = done("query MEASURED --intervals --top 3")
    assert said.split()[:6] == ["origin", "destination", "flow", "low", "high", "grade"]


def test_totals_and_sums_of_several_areas_have_intervals(given):
    release = inftda.open_release(given["MEASURED"])
    asked = release.flows("municipality", "all", intervals=True)
    assert asked.column("low").null_count == 0
    towns = release.tree.axes[0].hierarchy.codes(3).to_pylist()[:2]
    parts = release.flows("all", "all", from_=towns, intervals=True)
    assert parts.column("low").null_count == 0


# --- Measurements that are not those of the release


DAMAGES = {
    "cut off": (lambda content: content[: len(content) // 2], "damaged"),
    "a bit": (lambda content: content[:999] + bytes([content[999] ^ 1]) + content[1000:], "damage"),
    "another table": (lambda _: b"origin,destination\n", "damaged"),
    "of another release": (None, "another release"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_measurements_are_refused(typed, copied, country, tmp_path, damage):
    """By all that reads measurements: one clear message, and nothing is written."""
    file = copied("MEASURED") / "measurements.parquet"
    change, word = DAMAGES[damage]
    if change is None:
        other = inftda.release(country.flows, country.areas, rho=1)
        other.save(tmp_path / "other")
        file.write_bytes((tmp_path / "other/measurements.parquet").read_bytes())
    else:
        file.write_bytes(change(file.read_bytes()))
    for line in ("estimate measured --out made", "query measured --intervals"):
        refused = typed(line)
        assert refused.code == 2
        assert word in refused.err
        assert refused.err.count("\n") == 1
    assert not (tmp_path / "made").exists()


def restate(folder, **facts):
    """Facts of a manifest, changed by hand."""
    path = folder / "manifest.json"
    stated = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(stated | facts, indent=2) + "\n", encoding="utf-8")


def test_no_estimate_is_written_of_measurements_that_no_model_fits(typed, copied, tmp_path):
    """Its manifest would say that numbers are not numbers, and could not be read."""
    restate(copied("MEASURED"), total=-3)
    refused = typed("estimate measured --out made")
    assert refused.code == 2
    assert "no model" in refused.err
    assert not (tmp_path / "made").exists()


# --- Estimates that are none


def column(name, make):
    """A table of which one column is another one."""

    def change(table):
        values = table[name].to_pylist()
        return table.set_column(table.column_names.index(name), name, make(values))

    return change


def first(value, kind=None):
    return lambda values: pa.array([value, *values[1:]], kind or pa.int64())


FORGED_TABLES = {
    "a number that is missing": column("estimate", first(None)),
    "a negative number": column("estimate", first(-5)),
    "zero": column("estimate", first(0)),
    "another sum": column("estimate", lambda values: pa.array([value + 1 for value in values])),
    "a sum beyond 64 bits": column("estimate", lambda values: pa.array([2**62] * len(values))),
    "an interval elsewhere": column("low", first(2**40)),
    "a lower end below zero": column("low", first(-1)),
    "decimal numbers": column("estimate", lambda values: pa.array([float(n) for n in values])),
    "texts": column("estimate", lambda values: pa.array(list(map(str, values)))),
    "an unknown area": column("origin", first("nowhere", pa.string())),
    "lists": column("origin", lambda values: pa.array([[value] for value in values])),
    "no origins": lambda table: table.drop_columns(["origin"]),
    "no intervals": lambda table: table.drop_columns(["low", "high"]),
    "a column more": lambda table: table.append_column("truth", table["low"]),
    "rows twice": lambda table: pa.concat_tables([table, table]),
    "another order": lambda table: table.take(list(range(len(table)))[::-1]),
    "no rows": lambda table: table.slice(0, 0),
}


@pytest.mark.parametrize("what", FORGED_TABLES)
def test_a_forged_table_is_no_estimate(copied, what):
    """Also where the digest was made right again; and nothing is taken for a bug."""
    path = copied("ESTIMATE") / "estimate.parquet"
    pq.write_table(FORGED_TABLES[what](pq.read_table(path)), path, compression="zstd")
    with pytest.raises(ReleaseError, match="not what it was"):
        inftda.open_estimate(path.parent)
    restate(path.parent, estimate_sha256=digest(path))
    with pytest.raises(ReleaseError, match="make it again"):
        inftda.open_estimate(path.parent)


FORGED_MANIFESTS = {
    "that it is a release": ('"model_based": true', '"model_based": false'),
    "another notice": ("not guaranteed", "guaranteed"),
    "another format": ("inftda-estimate/1", "inftda-estimate/2"),
    "a text for a number": ('"seed": 0', '"seed": "0"'),
    "one more key": ('"private"', '"truth": 1, "private"'),
    "a key twice": ('"kind"', '"kind": "inftda-estimate", "kind"'),
    "no notice": ('"notice"', '"note"'),
}


@pytest.mark.parametrize("what", FORGED_MANIFESTS)
def test_a_forged_manifest_is_no_estimate(copied, what):
    stated = copied("ESTIMATE") / "manifest.json"
    text = stated.read_text(encoding="utf-8")
    assert FORGED_MANIFESTS[what][0] in text
    stated.write_text(text.replace(*FORGED_MANIFESTS[what]), encoding="utf-8")
    with pytest.raises(ReleaseError, match="`inftda estimate`"):
        inftda.open_estimate(stated.parent)


def test_a_manifest_cannot_make_other_files_part_of_an_estimate(typed, copied):
    out = copied("ESTIMATE")
    (out / "areas.csv").rename(out / "mine.csv")
    manifest = (out / "manifest.json").read_text(encoding="utf-8")
    (out / "manifest.json").write_text(manifest.replace("areas.csv", "mine.csv"), encoding="utf-8")
    refused = typed("estimate MEASURED --force --out estimate")
    assert refused.code == 2
    assert "'mine.csv'" in refused.err
    assert (out / "mine.csv").exists()
