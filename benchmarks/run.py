"""Run every benchmark, save the figures with machine and versions, write docs/performance.md.

python benchmarks/run.py [--quick]
"""

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import measure

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"


def text_of(name, *options):
    """What one benchmark prints, run as a process of its own."""
    print(f"{name} {' '.join(options)} ...", file=sys.stderr, flush=True)
    command = [sys.executable, HERE / f"{name}.py", *options]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def run(name, *options):
    """Its figures."""
    return json.loads(text_of(name, *options, "--json"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out census and growth")
    quick = parser.parse_args().quick
    large = () if quick else ("--census",)
    results = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": measure.machine(),
        "noise": run("noise"),
        "engine": run("engine", *large),
        "end_to_end": run("end_to_end", *large, *(() if quick else ("--growth",))),
        "counts": run("counts"),
        "reading": run("reading", "--rows", "20000000" if quick else "100000000"),
        "optimize": text_of("optimize", "--quick"),
    }
    saved = HERE / "results" / f"{results['date']}.json"
    saved.parent.mkdir(exist_ok=True)
    saved.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page(results), encoding="utf-8")
    print(f"{saved}\n{PAGE}")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def page(results):
    """The page: every line measured in one run beside its reference."""
    end = results["end_to_end"]
    parts = ["# Performance", _where(results), *_processes(end), *_loop(results["engine"]["rows"])]
    if "growth" in end:
        parts += _growth(end["growth"])
    return "\n\n".join([*parts, *_rest(results)]) + "\n"


def _where(results):
    machine = results["machine"]
    return (
        f"Made by `make bench` on {results['date']}: {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory_gb']} GB, Python {machine['python']}, "
        f"numpy {machine['numpy']}, numba {machine['numba']}, DuckDB {machine['duckdb']}, "
        f"pyarrow {machine['pyarrow']}.\n"
        "Ratios are of two things measured in the same run."
    )


def _processes(end):
    cases = [(name, end[name]) for name in ("italy_semisynthetic", "us_lodes2018_intracounty")]
    cases += [(f"census sections, epsilon {r['epsilon']}", r) for r in end.get("census", [])]
    cold = end["cold"]
    first_run = (
        f"Start-up (`inftda --help`) takes {end['start_up_seconds']:.2f} s.\n"
        "The first run on a new machine, with nothing compiled, takes "
        f"{cold['first_seconds']:.1f} s, {cold['extra_seconds']:.1f} s more than the second."
    )
    return (
        "## A release as a process, from Parquet to folder",
        "Delta 1e-8, epsilon 1 unless stated, compiled kernels cached.",
        table(
            ("case", "pairs in", "flows out", "seconds", "peak memory"),
            [(name, *_sizes(row)) for name, row in cases],
        ),
        first_run,
    )


def _sizes(row):
    pairs, flows = f"{row['pairs']:,}", f"{row['flows']:,}"
    return pairs, flows, f"{row['seconds']:.2f}", f"{row['peak_gb']:.2f} GB"


def _loop(rows):
    names = ("loop_ns_per_draw", "bare_ns_per_draw", "loop_over_bare", "loop_seconds")
    return (
        "## The level loop beside bare sampling of as many draws",
        "Bare sampling includes the secure bits and runs on as many threads.",
        table(
            ("case", "epsilon", "threads", "draws", "ns a draw", "bare", "ratio", "seconds"),
            [
                (
                    r["case"],
                    r["epsilon"],
                    r["threads"],
                    f"{r['draws']:,}",
                    *(f"{r[name]:.3f}" for name in names),
                )
                for r in rows
            ],
        ),
    )


def _growth(rows):
    return (
        "## Growth",
        table(
            ("trips", "geographic levels", "pairs in", "flows out", "seconds", "peak memory"),
            [(f"{r['trips']:,}", r["levels"], *_sizes(r)) for r in rows],
        ),
    )


def _rest(results):
    yield "## The rest, as measured"
    for name, what in (
        ("noise", "Noise beside OpenDP"),
        ("counts", "Leaf pairs to counts in tree order"),
        ("reading", "Trip rows to counts beside a plain GROUP BY"),
    ):
        yield f"{what}:\n\n```json\n{json.dumps(results[name], indent=1)}\n```"
    yield f"The optimisers:\n\n```text\n{results['optimize']}```"


if __name__ == "__main__":
    main()
