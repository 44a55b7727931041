"""Nanoseconds a draw, secure bits included, beside OpenDP in the same run on one core.

python benchmarks/noise.py [--quick] [--json]
"""

import argparse
import json
import sys
import time
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from inftda.noise.bits import SecureSource
from inftda.noise.distribution import Noise
from inftda.noise.ladder import gaussian_ladder
from inftda.noise.table import WordTable

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from opendp_noise import OpenDPGaussian

N_DRAWS = 1 << 22
N_OPENDP = 20_000
REPEATS = 7
SIGMAS = ("1", "20", "350")
MORE_SIGMAS = ("0.01", "2", "160", "2000", "10000", "200000")
LAPLACE_SCALES = ("7", "40000")
TABLE_SIGMAS = (2, 20, 160, 10_000, 200_000)


def best_seconds(run, repeats=REPEATS):
    """The shortest of several runs: what the work costs when nothing else interferes."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(law):
    """Nanoseconds and random bytes per draw."""
    out = np.empty(N_DRAWS, dtype=np.int64)
    bits = SecureSource().bits()
    law.fill(out, bits)  # compile, touch the memory
    seconds = best_seconds(partial(law.fill, out, bits))
    return {"ns_per_draw": seconds / N_DRAWS * 1e9, "bytes_per_draw": law.table().word_bits / 8}


def measure_opendp(sigma2):
    out = np.empty(N_OPENDP, dtype=np.int64)
    sampler = OpenDPGaussian(sigma2)
    sampler.fill(out[:100])
    return best_seconds(partial(sampler.fill, out), repeats=3) / N_OPENDP * 1e9


def measure_entropy():
    """Gigabytes of secure bits a second."""
    words, bits = np.empty(1 << 20, dtype=np.uint64), SecureSource().bits()
    fill = partial(bits.fill, words, np.zeros(1, np.int64), np.array([0, len(words)]))
    fill()
    return words.nbytes / best_seconds(fill) / 1e9


def measure_table(sigma):
    """Milliseconds to build the table of draws of this sigma, nothing cached."""
    word_bits = 32 if sigma <= 1024 else 64
    build = partial(WordTable, partial(gaussian_ladder, Fraction(sigma) ** 2), word_bits)
    return best_seconds(build, repeats=2 if sigma > 1000 else REPEATS) * 1e3


def run(*, quick):
    result = {"opendp": version("opendp"), "entropy_gb_per_s": measure_entropy(), "gaussian": {}}
    for sigma in SIGMAS if quick else (*SIGMAS, *MORE_SIGMAS):
        sigma2 = Fraction(sigma) ** 2
        row = measure(Noise.gaussian(sigma2))
        if sigma in SIGMAS:
            row["opendp_ns_per_draw"] = measure_opendp(sigma2)
            row["times_faster"] = row["opendp_ns_per_draw"] / row["ns_per_draw"]
        result["gaussian"][sigma] = row
    result["laplace"] = {scale: measure(Noise.laplace(scale)) for scale in LAPLACE_SCALES}
    tables = TABLE_SIGMAS[:2] if quick else TABLE_SIGMAS
    result["table_ms"] = {str(sigma): measure_table(sigma) for sigma in tables}
    return result


def show(result):
    print(f"secure bits: {result['entropy_gb_per_s']:.1f} GB/s")
    print(f"{'':>10} {'scale':>12} {'ns a draw':>10} {'bytes':>7} {'OpenDP ns':>10} {'times':>7}")
    for kind in ("gaussian", "laplace"):
        for scale, row in result[kind].items():
            line = f"{kind:>10} {scale:>12} {row['ns_per_draw']:10.2f} {row['bytes_per_draw']:7.2f}"
            if "times_faster" in row:
                line += f" {row['opendp_ns_per_draw']:10.0f} {row['times_faster']:7.0f}"
            print(line)
    for sigma, milliseconds in result["table_ms"].items():
        print(f"table for sigma {sigma:>7}: {milliseconds:8.2f} ms")
    print(f"(OpenDP {result['opendp']})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few scales")
    parser.add_argument("--json", action="store_true", help="print a JSON object instead")
    arguments = parser.parse_args()
    measured = run(quick=arguments.quick)
    if arguments.json:
        print(json.dumps(measured, indent=2))
    else:
        show(measured)
