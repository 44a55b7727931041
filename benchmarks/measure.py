"""What the benchmarks share: options, tables to run on, processes timed from outside, the machine.

They use what a user has: the command line, or the public names of the package `inftda`.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda.demo import make_country

#: Epsilon 1 unless a benchmark says otherwise.
BUDGET = {"epsilon": 1, "delta": 1e-8}


def options(text, quick="a tiny table, once"):
    """A parser of options: what a script does, by its text, and how it is run quickly."""
    parser = argparse.ArgumentParser(description=text.strip().partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


class Country(NamedTuple):
    """A table to release: its public name here, and what a made-up one of its size is made of."""

    title: str
    sizes: tuple[int, ...]
    trips: int
    data_set: str | None = None


#: Like the semi-synthetic Italy, commuters between US tracts, and Italy's census sections.
MUNICIPALITIES = Country("Italy", (20, 110, 8_092), 28_800_000, "italy_semisynthetic")
TRACTS = Country("US tracts", (51, 2_261, 64_506), 66_774_362, "us_lodes2018_intracounty")
SECTIONS = Country("census sections", (20, 110, 8_092, 30_000, 362_292), 28_800_000)
#: To see that a benchmark runs at all.
TINY = Country("a tiny country", (3, 9, 60), 20_000)


class Table(NamedTuple):
    """Files of a confidential table and its public areas."""

    title: str
    flows: Path
    areas: Path

    @property
    def pairs(self):
        return pq.ParquetFile(self.flows).metadata.num_rows


def table(country, folder):
    """The real table below $INFTDA_DATA, or a made-up one of its size, in `folder`."""
    if country.data_set and (place := os.environ.get("INFTDA_DATA")):
        real = Path(place) / country.data_set
        if (real / "flows.parquet").exists():
            return Table(country.title, real / "flows.parquet", real / "areas.csv")
    out = Path(folder) / country.title.replace(" ", "-")
    if not out.exists():
        # In a process of its own: the peak memory of a process counts that of what started it.
        made = get_context("spawn").Process(target=_make, args=(country, out))
        made.start()
        made.join()
        assert made.exitcode == 0
    title = f"{country.title} (made up)" if country.data_set else country.title
    return Table(title, out / "flows.parquet", out / "areas.csv")


def _make(country, out):
    """Write a made-up table into a new folder."""
    made = make_country(country.sizes, country.trips)
    out.mkdir(parents=True)
    pq.write_table(made.flows(), out / "flows.parquet", compression="zstd")
    pa_csv.write_csv(made.areas.to_table(), out / "areas.csv")


class Spent(NamedTuple):
    """What a process took: seconds by the clock, processor time, peak memory in GB."""

    seconds: float
    cpu_seconds: float
    peak_gb: float


def run(*arguments, **variables):
    """Run `inftda` as a process."""
    return timed([sys.executable, "-m", "inftda", *map(str, arguments)], **variables)


def release(given, out, *arguments, epsilon=BUDGET["epsilon"], **variables):
    """Release a table into a folder, as a process."""
    shutil.rmtree(out, ignore_errors=True)
    return run(
        "release", given.flows, "--areas", given.areas, "--epsilon", epsilon,
        "--delta", BUDGET["delta"], "--out", out, "--quiet", *arguments, **variables,
    )  # fmt: skip


def timed(command, **variables):
    """Run a process with further variables. Fails if it fails."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, **variables})
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed with {process.returncode}")
    # Kibibytes on Linux, bytes on macOS.
    unit = 1 if platform.system() == "Darwin" else 1024
    return Spent(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e9)


def machine():
    """Where and with what this was measured."""
    libraries = ("numpy", "numba", "duckdb", "pyarrow", "cryptography", "opendp")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
    }


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
