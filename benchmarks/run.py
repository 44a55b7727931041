"""Run the benchmarks, save the figures with machine and versions, write docs/performance.md.

python benchmarks/run.py [--quick]

A quick run shows that all of them work; its figures are meaningless, so none are written. Figures
are saved after each benchmark: a full run that failed goes on where it was, on the same day.
"""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import measure

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
RESULTS = HERE / "results"
#: Name to options that make it quick, and those of a full run.
BENCHMARKS = {
    "whole_release": (["--quick"], []),
    "readers": (["--quick"], []),
    "growth": (["--quick"], []),
    "reading": (["--rows", "200000"], ["--rows", "100000000"]),
    "bounding": (["--bounded", "--rows", "200000"], ["--bounded", "--rows", "20000000"]),
    "spark": (["--quick"], []),
    "noise": (["--quick"], []),
}
#: Benchmarks that another script runs.
SCRIPTS = {"bounding": "reading"}
RELEASES = """\
Both run as processes, from Parquet file to Parquet file, start-up included; the shortest of five \
runs each.
DuckDB looks up every code, sorts the rows and writes them: any program that reads a table, checks \
its codes and writes it in order has to do this.
A release also counts, plans, draws noise and optimises.
Delta is 1e-8, and kernels were compiled before."""
READERS = """\
Processes at epsilon 1, start-up included; with locations where the table has them.
Processor time of each command over that of the release in the same run, and in brackets its peak \
memory over that of the release.
"Beside totals only" is a release with all measurements over one with `--measurements totals`."""
READING = """\
Where rows have persons, at most five trips of each are kept, beside a GROUP BY of person, origin \
and destination.
The ratios are those of seconds, of processor time and of peak memory."""
SPARK = """\
All cores of the same machine, epsilon 1.
The command line starts an encrypted session and ends it.
The second table shows the phases of the second release in a session.
Tasks and shuffles are seconds summed over all cores, by Spark's metrics."""


def text_of(name, *options):
    """What one benchmark prints, run as a process of its own."""
    print(f"{name} {' '.join(options)} ...", file=sys.stderr, flush=True)
    command = [sys.executable, HERE / f"{SCRIPTS.get(name, name)}.py", *options]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def run(*, quick):
    """The figures of all benchmarks, with date and machine."""
    today = datetime.now(UTC).date().isoformat()
    results, saved = {"date": today, "machine": measure.machine()}, RESULTS / f"{today}.json"
    if not quick and saved.exists():
        known = json.loads(saved.read_text())
        results = known if known["machine"] == results["machine"] else results
    for name, (fast, full) in BENCHMARKS.items():
        if name not in results:
            results[name] = json.loads(text_of(name, *(fast if quick else full)))
        if not quick:
            RESULTS.mkdir(exist_ok=True)
            saved.write_text(json.dumps(results, indent=1) + "\n")
    return results


def main():
    if measure.options(__doc__, "tiny tables; print, write nothing").parse_args().quick:
        print(page(run(quick=True)))
        return
    PAGE.write_text(page(run(quick=False)), encoding="utf-8")
    print(PAGE)


def page(results):
    """The page, every ratio of two things measured in the same run."""
    parts = [
        "# Performance",
        _where(results),
        *_releases(results["whole_release"]),
        *_readers(**results["readers"]),
        *_growth(results["growth"]["rows"]),
        *_reading(results["reading"], results["bounding"]),
        *_spark(results["spark"]["rows"]),
        *_noise(results["noise"]),
    ]
    return "\n\n".join(parts) + "\n"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def _where(results):
    machine = results["machine"]
    return (
        f"Made by `make bench` on {results['date']}: {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory_gb']} GB, Python {machine['python']}, "
        f"numpy {machine['numpy']}, numba {machine['numba']}, DuckDB {machine['duckdb']}, "
        f"pyarrow {machine['pyarrow']}.\n"
        "A ratio compares two times of the same run."
    )


def _releases(found):
    start, plain = found["start_up"], "with `--cross-tables 0`"
    start_up = (
        f"Start-up (`inftda --help`) takes {start['help_seconds']:.2f} s.\n"
        "The first release on a new machine, with nothing compiled, takes "
        f"{start['first_seconds']:.1f} s, the second {start['second_seconds']:.1f} s."
    )
    return (
        "## A whole release beside DuckDB sorting and writing the same table",
        RELEASES,
        table(
            ("table", "epsilon", "pairs in", "flows out", "release", plain, "DuckDB", "ratio",
             plain, "peak memory", plain, "of DuckDB"),
            [
                (r["case"], r["epsilon"], f"{r['pairs']:,}", f"{r['flows']:,}",
                 f"{r['seconds']:.2f} s", f"{r['plain_seconds']:.2f} s",
                 f"{r['sort_seconds']:.2f} s", f"**{r['ratio']:.2f}**",
                 f"**{r['plain_ratio']:.2f}**",
                 f"{r['peak_gb']:.2f} GB", f"{r['plain_peak_gb']:.2f} GB",
                 f"{r['sort_peak_gb']:.2f} GB")
                for r in found["rows"]
            ],
        ),
        start_up,
    )  # fmt: skip


def _readers(rows, targets, measured, memory):
    return (
        "## What readers run beside the release",
        READERS,
        table(
            ("table", "measurements", "their file", "release", "peak memory", "beside totals only",
             *targets),
            [
                (r["case"], f"{r['measurements']:,}", f"{r['measurements_mb']:.1f} MB",
                 f"{r['release_cpu_seconds']:.1f} s", f"{r['release_peak_gb']:.2f} GB",
                 f"{r['measured']:.2f}",
                 *(f"**{r['cpu'][name]:.2f}** ({r['peak'][name]:.2f})" for name in targets))
                for r in rows
            ] + [("at most", "", "", "", "", measured,
                  *(f"{most:g} ({memory})" for most in targets.values()))],
        ),
    )  # fmt: skip


def _growth(rows):
    return (
        "## Growth",
        "Releases at epsilon 1, start-up included.",
        table(
            ("trips", "geographic levels", "areas", "pairs in", "flows out", "seconds",
             "peak memory"),
            [
                (f"{r['trips']:,}", r["levels"], f"{r['areas']:,}", f"{r['pairs']:,}",
                 f"{r['flows']:,}", f"{r['seconds']:.2f}", f"{r['peak_gb']:.2f} GB")
                for r in rows
            ],
        ),
    )  # fmt: skip


def _reading(plain, bounded):
    return (
        "## Trip rows to counts beside a plain GROUP BY of the same file",
        READING,
        table(
            ("rows", "areas", "grouped by", "GROUP BY", "reading", "ratio", "processor time",
             "peak memory", "ratio"),
            [
                (f"{r['rows']:,}", f"{r['areas']:,}", "person, areas" if r["bounded"] else "areas",
                 f"{r['plain']['seconds']:.2f} s", f"{r['read']['seconds']:.2f} s",
                 *(f"**{r['read'][name] / r['plain'][name]:.2f}**"
                   for name in ("seconds", "processor_seconds")),
                 f"{r['read']['peak_gb']:.2f} GB",
                 f"**{r['read']['peak_gb'] / r['plain']['peak_gb']:.2f}**")
                for r in (plain, bounded)
            ],
        ),
    )  # fmt: skip


def _spark(rows):
    return (
        "## On Spark",
        SPARK,
        table(
            ("table", "pairs in", "one machine", "command line on Spark"),
            [
                (r["case"], f"{r['pairs']:,}", f"{r['local_process_seconds']:.1f} s",
                 f"{r['spark_process_seconds']:.1f} s")
                for r in rows
            ],
        ),
        table(
            ("table", "session", "start-up", "release", "reading", "levels on the driver",
             "on the executors", "writing", "tasks", "shuffle written",
             "writing and waiting for it"),
            [
                (r["case"], name, f"{r[name]['start_up_seconds']:.1f} s",
                 *_spark_phases(r[name]["second"]))
                for r in rows for name in ("encrypted", "plain")
            ],
        ),
    )  # fmt: skip


def _spark_phases(spent):
    """Seconds of a release by phase."""
    names = ("reading", "on the driver", "on the executors", "writing")
    phases = [spent["phases"].get(name, 0) for name in names]
    shuffling = spent["shuffle_write_seconds"] + spent["shuffle_wait_seconds"]
    seconds = (spent["seconds"], *phases, spent["task_seconds"])
    return (
        *(f"{one:.1f} s" for one in seconds), f"{spent['shuffle_gb']:.2f} GB", f"{shuffling:.1f} s"
    )  # fmt: skip


def _noise(noise):
    return (
        "## Noise",
        f"Secure bits come at {noise['entropy_gb_per_s']:.1f} GB per second and core.",
        table(
            ("noise", "scale", "ns per draw", "random bytes per draw", "OpenDP", "times faster"),
            _scales(noise),
        ),
    )


def _scales(noise):
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


if __name__ == "__main__":
    main()
