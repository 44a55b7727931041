"""The estimate of a release, intervals of its numbers, and estimates that are none."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import inftda
from edited_folders import restate, seal
from inftda.errors import ReleaseError
from inftda.estimates import model


def test_it_is_said_that_an_estimate_is_not_guaranteed(typed):
    said = typed("estimate MEASURED --out made")
    assert said.code == 0, said.err
    assert "errors are not guaranteed" in said.out
    assert "NOT PRIVATE" in said.err.upper(), "of a release without a guarantee"


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


# --- Measurements that are not those of the release


def test_no_estimate_is_written_of_a_release_with_a_total_below_zero(typed, copied, tmp_path):
    restate(copied("MEASURED"), total=-3)
    refused = typed("estimate measured --out made")
    assert refused.code == 2
    assert "not that of a release" in refused.err
    assert not (tmp_path / "made").exists()


def test_no_estimate_is_written_of_a_model_that_is_not_finite(typed, monkeypatch, tmp_path):
    """Its manifest would say that numbers are not numbers, and could not be read."""
    fitted = model.fit_shares
    monkeypatch.setattr(model, "fit_shares", lambda *of: fitted(*of)._replace(same=math.nan))
    refused = typed("estimate MEASURED --out made")
    assert refused.code == 2
    assert "no model with finite parameters" in refused.err
    assert not (tmp_path / "made").exists()


# --- Estimates that are none


def rewrite(path, change):
    pq.write_table(change(pq.read_table(path)), path, compression="zstd")


def test_an_edited_table_is_no_estimate(copied):
    path = copied("ESTIMATE") / "estimate.parquet"
    rewrite(path, lambda table: table.set_column(2, "estimate", table["high"]))
    with pytest.raises(ReleaseError, match="does not match its manifest"):
        inftda.open_estimate(path.parent)


OTHER_FILES = {
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "not Parquet": lambda path: path.write_text("origin,destination\n"),
    "no intervals": lambda path: rewrite(path, lambda table: table.drop_columns(["low", "high"])),
    "decimal numbers": lambda path: rewrite(
        path, lambda table: table.set_column(3, "low", table["low"].cast(pa.float64()))
    ),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("what", OTHER_FILES)
def test_a_file_that_is_no_estimate_is_refused(typed, copied, what):
    """Also if the manifest has its digest: one clear message."""
    path = copied("ESTIMATE") / "estimate.parquet"
    OTHER_FILES[what](path)
    if path.exists():
        seal(path.parent)
    refused = typed("query MEASURED --estimate estimate")
    assert refused.code == 2
    assert "does not match its manifest: it was edited or damaged; make it again" in refused.err
    assert refused.err.count("\n") == 1


DAMAGED_MANIFESTS = {
    "another format": ("inftda-estimate/1", "inftda-estimate/2"),
    "a text for a number": ('"seed": 0', '"seed": "0"'),
    "a key twice": ('"private"', '"total": 1, "private"'),
    "cut off": ('"software"', ""),
}


@pytest.mark.parametrize("what", DAMAGED_MANIFESTS)
def test_a_damaged_manifest_is_no_estimate(copied, what):
    stated = copied("ESTIMATE") / "manifest.json"
    text = stated.read_text(encoding="utf-8")
    assert DAMAGED_MANIFESTS[what][0] in text
    stated.write_text(text.replace(*DAMAGED_MANIFESTS[what]), encoding="utf-8")
    with pytest.raises(ReleaseError, match="`inftda estimate`"):
        inftda.open_estimate(stated.parent)


def test_a_manifest_cannot_make_other_files_part_of_an_estimate(typed, copied):
    out = copied("ESTIMATE")
    (out / "areas.csv").rename(out / "mine.csv")
    manifest = (out / "manifest.json").read_text(encoding="utf-8")
    (out / "manifest.json").write_text(manifest.replace("areas.csv", "mine.csv"), encoding="utf-8")
    refused = typed("estimate MEASURED --force --out estimate")
    assert refused.code == 2
    assert "not replaced" in refused.err
    assert (out / "mine.csv").exists()
