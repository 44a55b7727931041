"""The estimate of a release, and intervals of its numbers."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import inftda
from inftda.errors import ReleaseError
from inftda.publication.manifest import digest


@pytest.fixture(scope="module")
def measured(country, tmp_path_factory):
    """A release with measurements, on which nothing is done but reading."""
    out = tmp_path_factory.mktemp("measured") / "release"
    source = inftda.SeededSource(5)
    inftda.release(
        country.flows, country.areas, epsilon=1, delta=1e-6, out=out, source=source,
        measurements=True,
    )  # fmt: skip
    return out


@pytest.fixture(scope="module")
def an_estimate(measured, tmp_path_factory):
    """An estimate of it, made once."""
    out = tmp_path_factory.mktemp("estimated") / "estimate"
    inftda.estimate(measured, out=out)
    return out


@pytest.fixture
def estimated(an_estimate, tmp_path):
    """A copy of it, to do with as one likes."""
    return shutil.copytree(an_estimate, tmp_path / "estimate")


def test_an_estimate_adds_up_to_the_total_and_lies_in_its_intervals(measured, cli, tmp_path):
    out = tmp_path / "estimate"
    done = cli("estimate", measured, "--out", out)
    assert done.code == 0, done.err
    assert "not guaranteed" in done.out
    found = inftda.open_estimate(out)
    estimate, low, high = (
        found.flows().column(name).to_numpy() for name in ("estimate", "low", "high")
    )
    assert estimate.sum() == found.total == inftda.open_release(measured).total
    assert (estimate > 0).all()
    assert (low <= estimate).all()
    assert (estimate <= high).all()
    assert found.flows("all", "all").column("estimate").to_pylist() == [found.total]
    found.check_release(inftda.open_release(measured))


@pytest.mark.slow
def test_equal_seeds_give_equal_estimates_on_any_number_of_threads(measured):
    one, two = (inftda.estimate(measured, seed=3, threads=n).table for n in (1, 2))
    assert one.equals(two)


@pytest.mark.slow
def test_an_estimate_is_closer_to_the_truth_than_the_release(measured, country):
    """Squared error over all cells, on a made-up country and one seed."""
    release, made = inftda.open_release(measured), inftda.estimate(measured)
    assert _squares(made.flows(), "estimate", country) < _squares(release.flows(), "flow", country)


def _squares(flows, column, country):
    """Sum of squared errors over all cells."""
    codes = country.made.areas.codes(3).to_pylist()
    truth = _matrix(country.made.flows(), codes, "count")
    return ((_matrix(flows, codes, column) - truth) ** 2).sum()


def _matrix(flows, codes, column):
    number = {code: i for i, code in enumerate(codes)}
    found = np.zeros((len(codes), len(codes)))
    for row in flows.to_pylist():
        found[number[row["origin"]], number[row["destination"]]] += row[column]
    return found


def test_intervals_stand_beside_published_flows(measured, cli):
    release = inftda.open_release(measured)
    for kind in ("model", "noise"):
        table = release.flows(intervals=kind)
        low, high = (table.column(name).to_numpy() for name in ("low", "high"))
        assert (low >= 0).all()
        assert (low <= high).all()
    done = cli("query", measured, "--intervals", "--top", 3)
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].split() == ["origin", "destination", "flow", "low", "high"]


def test_totals_measured_across_have_their_own_interval_and_other_sums_none(measured):
    release = inftda.open_release(measured)
    finest = release.tree.axes[0].hierarchy.level_names[-1]
    exact = release.total_intervals("origin", finest)
    asked = release.flows(finest, "all", intervals=True)
    by_area = dict(zip(exact["area"].to_pylist(), exact["low"].to_pylist(), strict=True))
    for row in asked.to_pylist():
        assert abs(row["low"] - by_area[row["origin"]]) <= 1
    towns = release.tree.axes[0].hierarchy.codes(3).to_pylist()[:2]
    parts = release.flows("all", "all", from_=towns, intervals=True)
    assert parts.column("low").to_pylist() == [None]


@pytest.mark.parametrize("name", ["estimate", "low", "High"])
def test_an_axis_must_not_be_called_like_a_column_of_estimates(name):
    table = {name: ["a", "b", "b"], "sex": ["f", "m", "f"]}
    axes = {name: {"code": ["a", "b"]}, "sex": {"sex": ["f", "m"]}}
    release = inftda.release(table, axis=axes, rho=1, measurements=True)
    with pytest.raises(ReleaseError, match=f"axis called '{name}'"):
        inftda.estimate(release)


def test_without_model_is_for_intervals(measured, cli):
    done = cli("query", measured, "--without-model")
    assert done.code == 2
    assert "--intervals" in done.err


def test_a_release_without_measurements_is_refused(released, cli, tmp_path):
    for arguments in (
        ("estimate", released, "--out", tmp_path / "e"),
        ("query", released, "--intervals"),
    ):
        done = cli(*arguments)
        assert done.code == 2
        assert "measurements" in done.err
    assert not (tmp_path / "e").exists()


def test_measurements_of_another_release_are_refused(measured, country, cli, tmp_path):
    other = tmp_path / "other"
    inftda.release(
        country.flows, country.areas, epsilon=1, delta=1e-6, out=other, measurements=True,
        source=inftda.SeededSource(6),
    )  # fmt: skip
    (other / "measurements.parquet").write_bytes((measured / "measurements.parquet").read_bytes())
    _refused(cli, other, tmp_path / "e", "another release")


DAMAGES = {
    "cut off": lambda content: content[: len(content) // 2],
    "a bit": lambda content: content[:999] + bytes([content[999] ^ 1]) + content[1000:],
    "another table": lambda _: b"origin,destination\n",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_measurements_are_refused(measured, cli, tmp_path, damage):
    folder = shutil.copytree(measured, tmp_path / "release")
    file = folder / "measurements.parquet"
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    _refused(cli, folder, tmp_path / "e", "damaged")


def _refused(cli, folder, out, words):
    """By all that reads measurements: one clear message, and nothing is written."""
    for arguments in (("estimate", folder, "--out", out), ("query", folder, "--intervals")):
        done = cli(*arguments)
        assert done.code == 2
        assert words in done.err
        assert len(done.err.strip().splitlines()) == 1
    assert not out.exists()


@pytest.mark.slow
def test_the_origin_tree_has_an_estimate_that_is_closer_to_the_truth(country):
    """With intervals at every level, on a made-up country and one seed."""
    release = inftda.release(
        country.flows, country.areas, epsilon=1, delta=1e-6, measurements=True,
        order=("origin", "destination"),
        source=inftda.SeededSource(5),
    )  # fmt: skip
    made = inftda.estimate(release)
    assert made.flows("all", "all").column("estimate").to_pylist() == [release.total]
    assert _squares(made.flows(), "estimate", country) < _squares(release.flows(), "flow", country)
    for level in release.tree.splitting_levels:
        names = {
            axis.name: axis.hierarchy.level_name(depth)
            for axis, depth in zip(release.tree.axes, level.depths, strict=True)
        }
        assert release.flows(level=names, intervals=True).column("low").null_count == 0


def test_a_damaged_estimate_is_refused_and_only_estimates_are_replaced(measured, estimated, cli):
    out = estimated
    done = cli("estimate", measured, "--out", measured, "--force")
    assert done.code == 2
    assert "not replaced" in done.err
    table = pq.read_table(out / "estimate.parquet")
    pq.write_table(table.slice(1), out / "estimate.parquet")
    with pytest.raises(ReleaseError, match="not what it was"):
        inftda.open_estimate(out)


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
def test_a_forged_table_is_no_estimate(estimated, what):
    """Also where the digest was made right again; and nothing is taken for a bug."""
    path = estimated / "estimate.parquet"
    pq.write_table(FORGED_TABLES[what](pq.read_table(path)), path, compression="zstd")
    stated = estimated / "manifest.json"
    manifest = json.loads(stated.read_text(encoding="utf-8"))
    manifest["estimate_sha256"] = digest(path)
    stated.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match="make it again"):
        inftda.open_estimate(estimated)


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
def test_a_forged_manifest_is_no_estimate(estimated, what):
    stated = estimated / "manifest.json"
    text = stated.read_text(encoding="utf-8")
    assert FORGED_MANIFESTS[what][0] in text
    stated.write_text(text.replace(*FORGED_MANIFESTS[what]), encoding="utf-8")
    with pytest.raises(ReleaseError, match="`inftda estimate`"):
        inftda.open_estimate(estimated)


def test_no_estimate_is_written_of_measurements_that_no_model_fits(measured, cli, tmp_path):
    """Its manifest would say that numbers are not numbers, and could not be read."""
    forged = shutil.copytree(measured, tmp_path / "forged")
    path = forged / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["total"] = -3
    path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    done = cli("estimate", forged, "--out", tmp_path / "e")
    assert done.code == 2
    assert "no model fits" in done.err
    assert not (tmp_path / "e").exists()


def test_a_manifest_cannot_make_other_files_part_of_an_estimate(measured, estimated, cli):
    out = estimated
    (out / "areas.csv").rename(out / "mine.csv")
    manifest = (out / "manifest.json").read_text(encoding="utf-8")
    (out / "manifest.json").write_text(manifest.replace("areas.csv", "mine.csv"), encoding="utf-8")
    done = cli("estimate", measured, "--out", out, "--force")
    assert done.code == 2
    assert "'mine.csv' in it is not part of an estimate" in done.err
    assert (out / "mine.csv").exists()


def test_locations_that_are_not_degrees_are_refused(measured, cli, tmp_path):
    file = tmp_path / "centroids.csv"
    file.write_text("town,lon,lat\nx,900,1\n", encoding="utf-8")
    done = cli("estimate", measured, "--out", tmp_path / "e", "--centroids", file)
    assert done.code == 2
    assert "degrees" in done.err
