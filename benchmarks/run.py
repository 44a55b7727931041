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
LOOP = """\
Bare sampling includes the secure bits and runs on as many threads.
What the loop takes beyond it is adding the truth, optimising, and writing survivors down.
That is paid by the parent more than by the draw: parents of municipalities have about a hundred \
children, parents of sections a dozen."""
GROWTH = """\
Work is pairs in plus draws.
The last column is the time beyond that of the smallest case, which is mostly start-up."""
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
    return (
        "## The level loop beside bare sampling of as many draws",
        LOOP,
        table(
            ("case", "epsilon", "threads", "draws", "ns a draw", "bare", "ratio", "seconds"),
            [
                (
                    r["case"],
                    r["epsilon"],
                    r["threads"],
                    f"{r['draws']:,}",
                    f"{r['loop_ns_per_draw']:.2f}",
                    f"{r['bare_ns_per_draw']:.2f}",
                    f"{r['loop_over_bare']:.2f}",
                    f"{r['loop_seconds']:.3f}",
                )
                for r in rows
            ],
        ),
        "All cores beside one (median of neighbouring runs), and the same of bare sampling:",
        table(("case", "epsilon", "threads", "speed-up", "of bare sampling"), _speed_ups(rows)),
    )


def _speed_ups(rows):
    for r in rows:
        if r["threads"] > 1:
            times = (f"{r[name]:.2f}" for name in ("loop_speed_up", "bare_speed_up"))
            yield r["case"], r["epsilon"], r["threads"], *times


def _growth(rows):
    least = min(r["seconds"] for r in rows)
    return (
        "## Growth",
        GROWTH,
        table(
            ("trips", "geographic levels", "pairs in", "flows out", "seconds", "peak memory",
             "work", "ns for each unit more"),
            [
                (f"{r['trips']:,}", r["levels"], *_sizes(r), *_work(r, least))
                for r in rows
            ],
        ),
    )  # fmt: skip


def _work(row, least):
    work = row["pairs"] + row["draws"]
    more = row["seconds"] - least
    return f"{work:,}", f"{more / work * 1e9:.0f}" if more else ""


def _rest(results):
    return (
        "## Noise",
        f"Secure bits come at {results['noise']['entropy_gb_per_s']:.1f} GB a second a core.",
        table(("noise", "scale", "ns a draw", "random bytes a draw", "OpenDP", "times faster"),
              _noise(results["noise"])),
        "## Leaf pairs to counts in tree order",
        table(("case", "levels of the tree", "areas", "pairs", "seconds", "peak memory"),
              _counts(results["counts"]["cases"])),
        "## Trip rows to counts beside a plain GROUP BY of the same file",
        table(("rows", "areas", "pairs", "GROUP BY", "reading", "ratio", "peak memory"),
              [_reading(results["reading"])]),
        "## The optimisers",
        f"```text\n{results['optimize']}```",
    )  # fmt: skip


def _noise(noise):
    for name in ("gaussian", "laplace"):
        for scale, row in sorted(noise[name].items(), key=lambda item: float(item[0])):
            opendp = row.get("opendp_ns_per_draw")
            yield (
                name,
                f"{float(scale):,g}" if float(scale) < 1 else f"{float(scale):,.0f}",
                f"{row['ns_per_draw']:.2f}",
                f"{row['bytes_per_draw']:.1f}",
                f"{opendp:,.0f} ns" if opendp else "",
                f"{row['times_faster']:,.0f}" if opendp else "",
            )


def _counts(cases):
    for r in cases:
        sizes = f"{r['areas']:,}", f"{r['pairs']:,}", f"{r['seconds']:.2f}"
        yield r["case"], r["depth"], *sizes, f"{r['peak_gb']:.2f} GB"


def _reading(r):
    sizes = (f"{r[name]:,}" for name in ("rows", "areas", "pairs"))
    seconds = f"{r['plain_seconds']:.2f} s", f"{r['read_seconds']:.2f} s"
    return *sizes, *seconds, f"{r['ratio']:.2f}", f"{r['peak_gb']:.2f} GB"


if __name__ == "__main__":
    main()
