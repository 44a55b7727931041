"""Tables x settings x mechanisms x epsilons x runs: one tidy Parquet file.

Noise is seeded: results can be repeated, and have no guarantee. Errors are computed from the true
counts, so results on a confidential table are as confidential as the table.
"""

import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from inftda_lab.baselines import MECHANISMS, PRODUCT, Budget
from inftda_lab.levels import NO_LEVEL, Flows, Release, levels_of, measure, totals_of
from inftda_lab.tables import ITALY, SYNTHETIC, Table

#: "ours" has the guarantee that it states. "published" is how the paper's figures were made.
OURS, PUBLISHED = "ours", "published"
#: All mechanisms by name: the paper's and the product's.
EVERY: Final = (*MECHANISMS, *PRODUCT)
SCHEMA: Final = pa.schema(
    [
        ("dataset", pa.string()),
        ("setting", pa.string()),
        ("mechanism", pa.string()),
        ("epsilon", pa.float64()),
        ("run", pa.int64()),
        ("level", pa.int64()),
        ("level_name", pa.string()),
        ("measure", pa.string()),
        ("value", pa.float64()),
    ]
)
#: VanillaGauss draws every possible cell, all at once.
MOST_CELLS: Final = 1 << 24


def run(
    tables: Sequence[Table],
    epsilons: Sequence[float],
    runs: int,
    out: Path | None = None,
    mechanisms: Collection[str] = EVERY,
) -> pa.Table:
    """All results of these mechanisms, written to `out` if it is given."""
    rows = [row for table in tables for row in _results(table, epsilons, runs, mechanisms)]
    results = pa.Table.from_pylist(rows, schema=SCHEMA)
    if out is not None:
        pq.write_table(results, out)
    return results


def _results(
    table: Table, epsilons: Sequence[float], runs: int, mechanisms: Collection[str]
) -> Iterator[dict[str, Any]]:
    levels = [*levels_of(table.areas), *totals_of(table.areas)]
    true = [level.summed(Flows(table.origin, table.destination, table.count)) for level in levels]
    for setting, name, mechanism in _mechanisms(table):
        if name not in mechanisms:
            continue
        _say(f"{table.name}, {setting}, {name}")
        for epsilon in epsilons:
            budget = Budget(epsilon, is_published=setting == PUBLISHED)
            for number in range(runs):
                started = time.process_time()
                made = mechanism(table, budget, number + 1)
                seconds = time.process_time() - started
                released = Release(made) if isinstance(made, Flows) else made
                fixed = {
                    "dataset": table.name, "setting": setting, "mechanism": name,
                    "epsilon": epsilon, "run": number,
                }  # fmt: skip
                yield fixed | {"level": NO_LEVEL, "measure": "time", "value": seconds}
                for level, truth in zip(levels, true, strict=True):
                    where = {"level": level.index, "level_name": level.name}
                    found = measure(truth, level.published(released), level.n_cells)
                    for of, value in found.items():
                        yield fixed | where | {"measure": of, "value": value}


def _mechanisms(
    table: Table,
) -> Iterator[tuple[str, str, Callable[[Table, Budget, int], Flows | Release]]]:
    """What a table is released with, in which setting; the paper's own tables in both."""
    n_cells = table.areas.n_areas(table.areas.depth) ** 2
    theirs = {
        name: mechanism
        for name, mechanism in MECHANISMS.items()
        if name != "vanilla-gauss" or n_cells <= MOST_CELLS
    }
    yield from ((OURS, name, mechanism) for name, mechanism in {**theirs, **PRODUCT}.items())
    if table.name in {*SYNTHETIC, ITALY}:
        yield from ((PUBLISHED, name, mechanism) for name, mechanism in theirs.items())


def _say(text: str) -> None:
    sys.stderr.write(f"{text} ...\n")
