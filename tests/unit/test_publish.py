"""The Python function: every option, in memory and to a folder, from every kind of table.

Where numbers are looked at, the budget is so large that a draw differs from 0 with odds below
1e-10, or the source is seeded: nothing here depends on luck.
"""

import os
import stat
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import inftda
from inftda import pipeline
from inftda.errors import BudgetError, InftdaError, IngestError, ReleaseError
from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.privacy.budget import Budget
from inftda.privacy.ledger import Ledger
from inftda.privacy.unit import Unit
from inftda.publication.verify import verify
from inftda.reading import Columns, read_leaves
from inftda.reading.truth import Truth
from inftda.util.stores import placed_words

AREAS = {"region": ["N", "N", "S", "S"], "town": ["01", "02", "03", "04"]}
TRUTH = {("01", "02"): 300, ("01", "04"): 20, ("03", "03"): 77, ("04", "01"): 1}
FLOWS = pa.table(
    {
        "origin": [origin for origin, _ in TRUTH],
        "destination": [destination for _, destination in TRUTH],
        "count": list(TRUTH.values()),
    }
)
BUDGET = {"epsilon": 1, "delta": 1e-8}
#: Next to no noise.
EXACT = {"rho": 3000, "source": SeededSource(1)}


def cells(made):
    """Cell to flow at the finest level."""
    table = made.table if isinstance(made.table, pa.Table) else pq.read_table(made.table)
    return {tuple(row.values())[:-1]: row["flow"] for row in table.to_pylist()}


def publish(flows=FLOWS, areas=AREAS, **options):
    """Releases with next to no noise, unless a budget is given."""
    budget = {} if {"epsilon", "rho"} & set(options) else EXACT
    made = release(flows, areas, **budget, **options)
    assert made.manifest.total == sum(cells(made).values())
    assert made.manifest.n_flows == len(cells(made))
    return made


def test_what_was_asked_for_is_checked_before_the_table_is_read(tmp_path):
    class Unread:
        def __arrow_c_stream__(self, requested_schema=None):
            pytest.fail(f"the table was read ({requested_schema})")

    for options in ({"epsilon": -1}, {"accountant": "magic"}, {"order": ["origin"]}):
        with pytest.raises(InftdaError):
            release(Unread(), AREAS, **{**BUDGET, **options})
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(InftdaError, match="exists already"):
        release(Unread(), AREAS, **BUDGET, out=tmp_path / "out")


# Privacy unit and budget


def test_the_total_is_kept_where_it_is_public_and_noised_where_not():
    totals = [
        {
            release(FLOWS, AREAS, rho="1/50", source=SeededSource(seed), **unit).total
            for seed in range(4)
        }
        for unit in ({}, {"unit": Unit(exactly=False)}, {"unit": Unit(neighbours="add-remove")})
    ]
    assert totals[0] == {398}
    assert len(totals[1]) > 1
    assert len(totals[2]) > 1


ABROAD_FLOWS = {"origin": ["01", "abroad"], "destination": ["02", "03"]}


@pytest.mark.parametrize(
    ("unplaceable", "said"),
    [
        ({"destination": "outside"}, "cannot be placed"),
        ({"origin": "drop"}, "drop"),
        ({"home": "outside"}, "'home'"),
        ("somewhere", "`unplaceable=`"),
    ],
)
def test_rows_without_a_place_are_refused_unless_their_axis_takes_them(unplaceable, said):
    with pytest.raises(InftdaError, match=said):
        release(ABROAD_FLOWS, AREAS, **BUDGET, columns=Columns(unplaceable=unplaceable))


def test_codes_that_have_a_place_outside_are_not_blamed_for_others():
    flows = {**ABROAD_FLOWS, "destination": ["elsewhere", "03"]}
    with pytest.raises(IngestError, match=r"unknown destination \(not shown") as caught:
        release(flows, AREAS, **BUDGET, columns=Columns(unplaceable={"origin": "outside"}))
    assert "abroad" not in str(caught.value)


def test_a_release_without_an_area_outside_is_evaluated_without():
    """Also if some area happens to be called so."""
    flows = {"origin": ["001"] * 3, "destination": ["outside"] * 3}
    made = release(flows, {"town": ["001", "outside"]}, **BUDGET)
    with pytest.raises(IngestError, match="cannot be placed"):
        inftda.evaluate(made, {"origin": ["001"] * 3, "destination": ["x"] * 3})


# How it is done


@pytest.mark.parametrize("source", [None, SeededSource(7)])
def test_everybody_may_read_a_private_release_and_nobody_else_a_seeded_one(tmp_path, source):
    before = os.umask(0o022)
    try:
        made = release(FLOWS, AREAS, source=source, out=tmp_path / "out", **BUDGET)
        made.save(tmp_path / "copy")
        inftda.estimate(made, out=tmp_path / "estimate")
        inftda.export(made, to="csv", out=tmp_path / "export")
    finally:
        os.umask(before)
    found = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert found == ({0o755, 0o644} if source is None else {0o700, 0o600})


def test_the_default_source_is_secure_and_never_the_same():
    made = [release(FLOWS, AREAS, rho="1/1000") for _ in range(3)]
    assert all(one.manifest.private for one in made)
    assert cells(made[0]) != cells(made[1]) or cells(made[1]) != cells(made[2])


def test_a_release_is_charged_before_anything_is_drawn(tmp_path, monkeypatch):
    """Whoever stops it while it draws may have seen some of the noise."""
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.add("census", Unit(), Budget.make(rho=1))

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("inftda.pipeline.release_counts", stopped)
    with pytest.raises(KeyboardInterrupt):
        release(FLOWS, AREAS, rho="1/4", ledger=ledger, dataset="census", out=tmp_path / "out")
    assert ledger.dataset("census").spending.spent == Fraction(1, 4)
    assert not (tmp_path / "out").exists()


def test_a_failure_after_publication_says_that_the_release_is_there(tmp_path, monkeypatch):
    def fail(*_):
        raise ReleaseError("the cluster is gone")

    monkeypatch.setattr(pipeline, "_tell_misfits", fail)
    with pytest.raises(ReleaseError, match="the cluster is gone") as problem:
        publish(out=tmp_path / "out")
    assert problem.value.__notes__ == [placed_words(tmp_path / "out")]
    assert inftda.open_release(tmp_path / "out").total


def test_nothing_is_published_that_was_not_all_drawn(monkeypatch, tmp_path):
    # Tables of the plan are passed over.
    monkeypatch.setattr("inftda.tree.Tree.cross_tables_at", lambda *_: ())
    for out in (None, tmp_path / "out"):
        with pytest.raises(BudgetError, match="not drawn"):
            release(FLOWS, AREAS, out=out, **BUDGET)
    assert list(tmp_path.iterdir()) == []


def test_the_truth_given_is_not_changed():
    frame = FLOWS.to_pandas()
    before = frame.copy()
    release(frame, AREAS, **BUDGET)
    pd.testing.assert_frame_equal(frame, before)


def test_threads_limit_reading_and_sorting_too(monkeypatch):
    given = {}

    def noting(name, original):
        def call(*arguments, **options):
            given[name] = options["threads"]
            return original(*arguments, **options)

        return call

    monkeypatch.setattr("inftda.pipeline.read_leaves", noting("reading", read_leaves))
    monkeypatch.setattr(Truth, "of", noting("sorting", Truth.of))
    publish(threads=1)
    assert given == {"reading": 1, "sorting": 1}


def test_a_folder_keeps_the_order_of_the_areas(tmp_path):
    areas = {"region": ["S", "N", "N", "S"], "town": ["04", "02", "01", "03"]}
    release(FLOWS, areas, rho=1, out=tmp_path / "out")
    text = (tmp_path / "out/areas.csv").read_text().replace('"', "")
    assert text.split() == ["region,town", "S,04", "N,02", "N,01", "S,03"]
    verify(tmp_path / "out")
    found = inftda.open_release(tmp_path / "out").flows("town", "all")
    assert found.column("origin").to_pylist() == sorted(
        found.column("origin").to_pylist(), key=areas["town"].index
    )
    (tmp_path / "out/areas.csv").write_text("\n".join(sorted(text.split(), reverse=True)) + "\n")
    with pytest.raises(InftdaError, match=r"areas\.csv is not what the manifest was written for"):
        verify(tmp_path / "out")


def test_the_first_edition_makes_the_folder_of_the_series_and_a_refused_one_does_not(tmp_path):
    out = tmp_path / "series" / "2024"
    for wrong in ({"counts": ""}, {"flows": FLOWS.drop(["origin"])}):
        with pytest.raises(InftdaError):
            publish(**wrong, out=out, edition="2024")
        assert not list(tmp_path.iterdir())
    publish(out=out, edition="2024")
    publish(out=tmp_path / "series" / "2025", edition="2025")
    assert len(list((tmp_path / "series").iterdir())) == 2


def test_a_failed_first_edition_leaves_no_folder_of_the_series(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("inftda.pipeline.write_public_files", fail)
    with pytest.raises(KeyboardInterrupt):
        publish(out=tmp_path / "series" / "2024", edition="2024")
    assert not list(tmp_path.iterdir())
