"""Run the benchmarks, save the figures with date and machine, write docs/performance.md.

python benchmarks/run.py [--quick] [NAME ...]

By default all of them. Figures are saved after each benchmark, and those of benchmarks that are not
run stay; the page says when and where each was measured. A quick run shows that they work; its
figures are meaningless, so none are written.
"""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import measure

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
RESULTS = HERE / "results.json"
#: Name to options that make it quick, and those of a full run.
BENCHMARKS = {
    "whole_release": (["--quick"], []),
    "readers": (["--quick"], []),
    "growth": (["--quick"], []),
    "reading": (["--rows", "200000"], ["--rows", "100000000"]),
    "bounding": (["--bounded", "--rows", "200000"], ["--bounded", "--rows", "20000000"]),
    "noise": (["--quick"], []),
    "spark": (["--quick"], []),
}
#: Benchmarks that another script runs.
SCRIPTS = {"bounding": "reading"}
RELEASES = """\
Both run as processes, from Parquet file to Parquet file, start-up included; the shortest of three \
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
BOUNDING = "At most five trips of each person are kept; the GROUP BY also has a column for persons."
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


def measured(name, *, quick):
    """The figures of one benchmark, with date and machine."""
    found = json.loads(text_of(name, *BENCHMARKS[name][0 if quick else 1]))
    where = {"date": datetime.now(UTC).date().isoformat(), "machine": measure.machine()}
    return where | {"found": found}


def main():
    parser = measure.options(__doc__, "tiny tables; print, write nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    given = parser.parse_args()
    names = given.names or list(BENCHMARKS)
    if given.quick:
        print(page({name: measured(name, quick=True) for name in names}))
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names:
        results[name] = measured(name, quick=False)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page(results), encoding="utf-8")
    print(PAGE)


def page(results):
    """The page, every ratio of two things measured in the same run."""
    parts = [
        "# Performance",
        "Made by `make bench`.\nA ratio compares two times of the same run.",
    ]
    for name, lines in SECTIONS.items():
        if name in results:
            title, *text = lines(results[name]["found"])
            parts += [title, _where(**results[name]), *text]
    return "\n\n".join(parts) + "\n"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def _where(date, machine, **_):
    return (
        f"*{date}: {machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"Python {machine['python']}, numpy {machine['numpy']}, numba {machine['numba']}, "
        f"DuckDB {machine['duckdb']}, pyarrow {machine['pyarrow']}.*"
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


def _readers(found):
    targets, memory = found["targets"], found["memory"]
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
                for r in found["rows"]
            ] + [("at most", "", "", "", "", found["measured"],
                  *(f"{most:g} ({memory})" for most in targets.values()))],
        ),
    )  # fmt: skip


def _growth(found):
    return (
        "## Growth",
        "Releases at epsilon 1, start-up included.",
        table(
            ("trips", "geographic levels", "areas", "pairs in", "flows out", "seconds",
             "peak memory"),
            [
                (f"{r['trips']:,}", r["levels"], f"{r['areas']:,}", f"{r['pairs']:,}",
                 f"{r['flows']:,}", f"{r['seconds']:.2f}", f"{r['peak_gb']:.2f} GB")
                for r in found["rows"]
            ],
        ),
    )  # fmt: skip


def _reading(found):
    return (
        "## Trip rows to counts beside a plain GROUP BY of the same file",
        "Both group by origin and destination.",
        _counts(found),
    )


def _bounding(found):
    return (
        "## Trips of persons to counts beside a plain GROUP BY",
        BOUNDING,
        _counts(found),
    )


def _counts(found):
    plain, read = found["plain"], found["read"]
    return table(
        ("rows", "areas", "GROUP BY", "reading", "ratio", "processor time", "peak memory", "ratio"),
        [
            (f"{found['rows']:,}", f"{found['areas']:,}", f"{plain['seconds']:.2f} s",
             f"{read['seconds']:.2f} s",
             *(f"**{read[name] / plain[name]:.2f}**" for name in ("seconds", "processor_seconds")),
             f"{read['peak_gb']:.2f} GB", f"**{read['peak_gb'] / plain['peak_gb']:.2f}**")
        ],
    )  # fmt: skip


def _spark(found):
    rows = found["rows"]
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


#: Name of a benchmark to the lines of its section, in the order of the page.
SECTIONS = {
    "whole_release": _releases,
    "readers": _readers,
    "growth": _growth,
    "reading": _reading,
    "bounding": _bounding,
    "spark": _spark,
    "noise": _noise,
}


if __name__ == "__main__":
    main()
