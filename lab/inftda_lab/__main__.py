"""`python -m inftda_lab --out FOLDER`: the paper's experiments, table and figures."""

import argparse
from pathlib import Path

from inftda_lab.experiment import run
from inftda_lab.report import write_report
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
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--published", type=Path, help="CSV of published figures, to compare with")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    tables = [make_synthetic(name) for name in given.synthetic]
    tables += [read_table(folder) for folder in given.table]
    tables += [read_istat(given.istat)] if given.istat else []
    results = run(tables, given.epsilons, given.runs, given.out / "results.parquet")
    write_report(results, tables, given.out, given.published)


if __name__ == "__main__":
    main()
