"""A small data set on disk and an experiment on it."""

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda.lab.experiments.runner import SCHEMA
from inftda.lab.experiments.spec import DataSet, Spec
from inftda.lab.generators.country import make_country


def write_country(folder, *, sizes=(2, 4, 12), trips=3_000, seed=3):
    """Flows and areas of a small country; gives the country."""
    country = make_country(sizes, trips, seed=seed)
    pq.write_table(country.flows(), folder / "flows.parquet")
    pa_csv.write_csv(country.areas.to_table(), folder / "areas.csv")
    return country


def tiny_spec(folder, *, public=True, **changes):
    """Two mechanisms, one epsilon, two runs; of a made-up country, as anybody may know."""
    files = (folder / "flows.parquet", folder / "areas.csv")
    dataset = DataSet("tiny", *files, published="Tiny", public=public)
    facts = {"mechanisms": ("inftda", "stability-histogram"), "epsilons": (1.0,), "runs": 2}
    return Spec((dataset,), **{**facts, **changes})


def results_of(rows, **fixed):
    """A table of results from (mechanism, epsilon, run, level, measure, value)."""
    names = ("mechanism", "epsilon", "run", "level", "measure", "value")
    facts = {"dataset": "tiny", "setting": "ours", **fixed}
    table = []
    for row in rows:
        given = dict(zip(names, row, strict=True))
        name = "" if given["level"] < 0 else f"level {given['level']}"
        table.append({**facts, "level_name": name, **given})
    return pa.Table.from_pylist(table, schema=SCHEMA)
