"""Nanoseconds a draw, secure bits included, beside OpenDP in the same run on one core.

python benchmarks/noise.py [--quick]
"""

import json
import sys
import time
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

import measure
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


def measure_noise(law):
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
        row = measure_noise(Noise.gaussian(sigma2))
        if sigma in SIGMAS:
            row["opendp_ns_per_draw"] = measure_opendp(sigma2)
            row["times_faster"] = row["opendp_ns_per_draw"] / row["ns_per_draw"]
        result["gaussian"][sigma] = row
    result["laplace"] = {scale: measure_noise(Noise.laplace(scale)) for scale in LAPLACE_SCALES}
    tables = TABLE_SIGMAS[:2] if quick else TABLE_SIGMAS
    result["table_ms"] = {str(sigma): measure_table(sigma) for sigma in tables}
    return result


if __name__ == "__main__":
    is_quick = measure.options(__doc__, "few scales").parse_args().quick
    print(json.dumps(run(quick=is_quick), indent=1))
