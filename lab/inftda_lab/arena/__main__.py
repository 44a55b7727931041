"""`python -m inftda_lab.arena --table FOLDER --tools inftda,mbi --out FOLDER`."""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import inftda
from inftda_lab.arena.measures import measure
from inftda_lab.arena.page import write_page
from inftda_lab.arena.process import CommandError, Cost, run
from inftda_lab.arena.tools import DELTA, EPSILON, TOOLS, Tool, filled, python_of
from inftda_lab.tables import Table, read_table

#: Where environments of rivals are kept.
ENVIRONMENTS: Final = Path.home() / ".cache" / "inftda-arena"
#: A tool is run again while its runs together use less than this part of the limit.
AGAIN: Final = 0.1
#: Part of the limit that a fit may use.
FIT: Final = 0.8


def main(arguments: list[str] | None = None) -> None:
    """Run the tools on the tables; write the figures, the page and the picture."""
    parser = argparse.ArgumentParser(prog="inftda_lab.arena", description=__doc__)
    parser.add_argument(
        "--table",
        type=Path,
        nargs="+",
        required=True,
        metavar="FOLDER",
        help="flows.parquet, areas.csv and perhaps centroids.csv",
    )
    parser.add_argument(
        "--tools", default=",".join(TOOLS), help="by default all: %(default)s", metavar="A,B,..."
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="a file of figures for each table and tool, the page and the picture; figures that "
        "are there are not made again",
    )
    parser.add_argument("--runs", type=int, default=3, help="of tools that are quick")
    parser.add_argument("--limit", type=float, default=600, help="CPU seconds of one run")
    parser.add_argument("--page", type=Path, help="by default compared.md in the folder")
    parser.add_argument("--picture", type=Path, help="by default compared.svg in the folder")
    parser.add_argument(
        "--only-page", action="store_true", help="make no figures, only a page of those there are"
    )
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, metavar="FOLDER")
    given = parser.parse_args(arguments)
    names = given.tools.split(",")
    if unknown := [name for name in names if name not in TOOLS]:
        parser.error(f"no such tool: {', '.join(unknown)}; there are {', '.join(TOOLS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    for folder in given.table:
        table = read_table(folder)
        made = (given.out / table.name / f"{name}.json" for name in names)
        results = {
            path.stem: _result(path, table, folder, given)
            for path in made
            if path.exists() or not given.only_page
        }
        found[table.name] = {"table": described(table), "tools": results}
    page = given.page or given.out / "compared.md"
    write_page(found, page, given.picture or given.out / "compared.svg")


def described(table: Table) -> dict[str, Any]:
    """What the page says of a table."""
    depths = range(1, table.areas.depth + 1)
    return {
        "levels": [table.areas.level_name(depth) for depth in depths],
        "areas": [table.areas.n_areas(depth) for depth in depths],
        "trips": table.total,
        "pairs": len(table.count),
    }


def _result(path: Path, table: Table, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Figures of one tool on one table, made if they are not there."""
    if not path.exists():
        sys.stderr.write(f"{table.name}, {path.stem} ...\n")
        path.parent.mkdir(exist_ok=True)
        result = compared(TOOLS[path.stem], table, folder, given)
        path.write_text(json.dumps(result, indent=1), encoding="utf-8")
    result = json.loads(path.read_text(encoding="utf-8"))
    return dict(result)


def compared(tool: Tool, table: Table, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Runs of a tool: their measures and costs, or why there are none."""
    runs, limit = given.runs, given.limit
    result: dict[str, Any] = {
        "version": tool.version,
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
        "runs": [],
    }
    is_placed = any("centroids" in part for part in tool.commands[-1])
    if is_placed and not (folder / "centroids.csv").exists():
        return result | {"failed": "the table has no centroids"}
    try:
        python = python_of(tool, given.environments)
        total = 0.0
        with tempfile.TemporaryDirectory() as temporary:
            places = {"python": python, "table": folder, "input": Path(temporary) / "input"}
            write_input(table, places["input"], limit)
            while not result["runs"] or (len(result["runs"]) < runs and total < AGAIN * limit):
                places |= {"out": Path(temporary) / "out", "made": Path(temporary) / "made"}
                one = _run(tool, table, places, limit)
                total += one["cpu"]
                result["runs"].append(one)
    except CommandError as error:
        result["failed"] = str(error)
    return result


def _run(tool: Tool, table: Table, places: dict[str, Path], limit: float) -> dict[str, Any]:
    """One run: what it cost, and the measures of what it published."""
    for name in ("out", "made"):
        shutil.rmtree(places[name], ignore_errors=True)
        places[name].mkdir()
    cost = Cost(0, 0, 0)
    environment = {
        "PYTHONPATH": "" if tool.package else os.pathsep.join(sys.path),
        "PYTHONWARNINGS": "ignore",
        "PYSPARK_PYTHON": str(places["python"]),
    }
    for command in tool.commands:
        log = places["made"] / "log.txt"
        cost += run(filled(command, places), limit - cost.cpu, log, environment)
    if tool.is_ours:
        _gather(places["made"], places["out"])
    remark = places["out"] / "remark.txt"
    return {
        **vars(cost),
        **measure(table, places["out"]),
        "remark": remark.read_text(encoding="utf-8") if remark.exists() else "",
    }


def _gather(made: Path, out: Path) -> None:
    """Flows and published totals of a release or estimate, as those of all tools."""
    if (made / "estimate").exists():
        flows = inftda.open_estimate(made / "estimate").flows(intervals=False)
        pq.write_table(flows, out / "finest.parquet")
        return
    release = inftda.open_release(made / "release")
    hierarchy = release.tree.axes[0].hierarchy
    finest = hierarchy.level_name(hierarchy.depth)
    pq.write_table(release.flows(), out / "finest.parquet")
    for ends in ((finest, "all"), ("all", finest)):
        totals = release.flows(*ends)
        columns = {"origin": totals.column(0), "destination": totals.column(0)}
        pq.write_table(
            pa.table({**columns, "flow": totals["flow"]}), out / f"{'__'.join(ends)}.parquet"
        )


def write_input(table: Table, folder: Path, limit: float) -> None:
    """Files that tools read: areas, flows, trips in random order with a person each, settings."""
    folder.mkdir()
    flows = table.flows()
    pa_csv.write_csv(table.areas.to_table(), folder / "areas.csv")
    text = {end: flows[end].cast(pa.string()) for end in ("origin", "destination")}
    pq.write_table(pa.table({**text, "count": flows["count"]}), folder / "flows.parquet")
    pair = np.random.default_rng(1).permutation(np.repeat(np.arange(len(table.count)), table.count))
    ends = {name: column.take(pa.array(pair)) for name, column in text.items()}
    pq.write_table(pa.table({"person": np.arange(len(pair)), **ends}), folder / "trips.parquet")
    settings = json.dumps(converted(table.areas) | {"seconds": FIT * limit})
    (folder / "settings.json").write_text(settings, encoding="utf-8")


def converted(areas: inftda.Hierarchy) -> dict[str, Any]:
    """The budget in the units of every tool.

    Those that protect a row that is added or removed get what makes substitution, two such steps,
    cost epsilon and delta: half of rho (Gaussian counts of one row: the squared distance of two
    tables is 1 in place of 2), half of epsilon, and delta / (1 + e^(epsilon / 2)).
    """
    plan = inftda.make_plan(
        inftda.build_tree(areas), inftda.Unit(), method="paper", epsilon=EPSILON, delta=DELTA
    )
    tree = inftda.build_tree(areas)
    sigmas = {level.index: level.noise.sigma for level in plan.levels}
    even = plan.levels[0].noise.sigma
    rho = sum((level.noise.rho(2) for level in plan.levels), Fraction(0))
    return {
        "epsilon": float(EPSILON),
        "delta": float(DELTA),
        "sigmas": [sigmas.get(level.index, even) for level in tree.levels[1:]],
        "rho of a row": float(rho) / 2,
        "epsilon of a row": EPSILON / 2,
        "delta of a row": float(DELTA) / (1 + exp(EPSILON / 2)),
    }


if __name__ == "__main__":
    main()
