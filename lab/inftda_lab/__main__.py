"""`python -m inftda_lab --out FOLDER`: the paper's experiments, table and figures."""

import argparse
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from inftda_lab.experiment import EVERY, run
from inftda_lab.guide import fill, write_csv
from inftda_lab.report import means_of, write_report
from inftda_lab.tables import SYNTHETIC, make_synthetic, read_istat, read_table


def main(arguments: list[str] | None = None) -> None:
    """Run what is asked for; everything by default."""
    parser = argparse.ArgumentParser(prog="inftda_lab", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--synthetic", nargs="*", default=list(SYNTHETIC), choices=list(SYNTHETIC))
    parser.add_argument(
        "--table", type=Path, nargs="*", default=[], help="folders with flows.parquet, areas.csv"
    )
    parser.add_argument("--istat", type=Path, help="ISTAT's matrix of 2011, the zip as downloaded")
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.1, 1.0, 10.0])
    parser.add_argument("--mechanisms", nargs="*", default=list(EVERY), choices=EVERY)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--published", type=Path, help="CSV of published figures, to compare with")
    parser.add_argument(
        "--results", type=Path, nargs="*", default=[], help="earlier results to report as well"
    )
    parser.add_argument("--page", type=Path, help="page whose figures are to be replaced")
    parser.add_argument("--csv", type=Path, help="file for the means of all figures")
    given = parser.parse_args(arguments)
    if (given.page or given.csv) and not given.published:
        parser.error("--page and --csv need --published")
    given.out.mkdir(parents=True, exist_ok=True)
    tables = [make_synthetic(name) for name in given.synthetic]
    tables += [read_table(folder) for folder in given.table]
    tables += [read_istat(given.istat)] if given.istat else []
    results = run(
        tables, given.epsilons, given.runs, given.out / "results.parquet", given.mechanisms
    )
    every = pa.concat_tables([results, *map(pq.read_table, given.results)])
    with means_of(every, given.published) as db:
        write_report(db, tables, given.out, has_published=given.published is not None)
        if given.page:
            fill(db, given.page)
        if given.csv:
            write_csv(db, given.csv)


if __name__ == "__main__":
    main()
