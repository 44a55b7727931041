"""Spark at the size it is for: as many areas as there are US tracts, and census sections.

Each release in a process of its own, because the sessions differ: one that is started for the
release, which is encrypted, and one of the user's that is not.
"""

import os
import shutil
import subprocess
import sys
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda[spark]'")

has_java = shutil.which("java") is not None or "JAVA_HOME" in os.environ
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not has_java, reason="SPARK IS NOT TESTED: Java is missing"),
]

TRIPS = 1_000_000
SIZES = {
    "US tracts": (51, 2_261, 64_506),
    "census sections": (20, 110, 8_092, 30_000, 362_292),
}
RELEASE = """
import sys
import warnings

import inftda

session, *files, out = sys.argv[1:]
engine = "spark"
if session == "of the user, not encrypted":
    from pyspark.sql import SparkSession

    from inftda.spark import SparkEngine

    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    engine = SparkEngine(builder.config("spark.io.encryption.enabled", "false").getOrCreate())
inftda.release(*files, epsilon=1, delta=1e-8, engine=engine, out=out)
"""


class Country(NamedTuple):
    """Files of a made-up country."""

    flows: str
    areas: str
    n_areas: int


@pytest.fixture(scope="module", params=SIZES)
def country(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("country") / "made"
    sizes = SIZES[request.param]
    inftda("make", "country", "--sizes", ",".join(map(str, sizes)), "--trips", TRIPS, "--out", out)
    return Country(str(out / "flows.parquet"), str(out / "areas.csv"), sizes[-1])


def inftda(*arguments):
    command = [sys.executable, "-m", "inftda", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("session", ["of the release, encrypted", "of the user, not encrypted"])
def test_a_country_with_very_many_areas_is_released(country, session, tmp_path):
    out = tmp_path / "release"
    subprocess.run(
        [sys.executable, "-c", RELEASE, session, country.flows, country.areas, out],
        check=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    inftda("verify", out)
    flows = pq.read_table(out / "flows.parquet")
    assert sum(flows["flow"].to_pylist()) == TRIPS
    assert len(flows) < TRIPS
    assert (out / "areas.csv").read_text().count("\n") == country.n_areas + 1
