"""What the benchmarks share: data to run on, processes timed from outside, the machine."""

import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda.lab.generators.country import make_country

#: Municipalities of a country of 60 million people, and its census sections.
MUNICIPALITIES, SECTIONS = (20, 110, 8_092), (20, 110, 8_092, 30_000, 362_292)
TRIPS = 28_800_000


def data_set(name, folder):
    """(flows, areas) of a data set below $INFTDA_DATA, or of a made-up country of its size."""
    real = Path(os.environ.get("INFTDA_DATA", "")) / name
    if os.environ.get("INFTDA_DATA") and (real / "flows.parquet").exists():
        return real / "flows.parquet", real / "areas.csv"
    return write_country(Path(folder) / f"made-up-{name}", MUNICIPALITIES, TRIPS)


def write_country(folder, sizes, trips):
    """Write a made-up country; returns the paths of its flows and areas."""
    flows, areas = folder / "flows.parquet", folder / "areas.csv"
    if not flows.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # By a process of its own: the peak memory of a child is never below its parent's.
        subprocess.run([sys.executable, __file__, folder, str(trips), *map(str, sizes)], check=True)
    return flows, areas


def run(*arguments, env=None):
    """Run `inftda` as a process: (seconds, peak memory in GB). Fails if it fails."""
    command = [sys.executable, "-m", "inftda", *map(str, arguments)]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env={**os.environ, **(env or {})}
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    # Kibibytes on Linux, bytes on macOS.
    unit = 1 if platform.system() == "Darwin" else 1024
    return seconds, usage.ru_maxrss * unit / 1e9


def machine():
    """Where and with what this was measured."""
    libraries = ("inftda", "numpy", "numba", "duckdb", "pyarrow", "cryptography", "opendp")
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


def main():
    folder, trips, *sizes = sys.argv[1:]
    made = make_country(tuple(map(int, sizes)), int(trips), seed=1)
    pa_csv.write_csv(made.areas.to_table(), Path(folder) / "areas.csv")
    pq.write_table(made.flows(), Path(folder) / "flows.parquet")


if __name__ == "__main__":
    main()
