"""Countries of real size on the cores of this machine: what travels to tasks is large there.

In a process of its own, because the sessions differ: one that is started for the release, which
is encrypted, and one of the user's that is not.
"""

import os
import shutil
import subprocess
import sys

import pytest

from inftda.noise.bits import SeededSource
from inftda.pipeline import release

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda-od[spark]'")

has_java = shutil.which("java") is not None or "JAVA_HOME" in os.environ
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not has_java, reason="SPARK IS NOT TESTED: Java is missing"),
]

TRIPS = 1_000_000
#: Census sections.
SIZES = (20, 110, 8_092, 30_000, 362_292)
RELEASE = """
import sys
import warnings

import inftda
from inftda.noise.bits import SeededSource

session, *files, out = sys.argv[1:]
engine = "spark"
if session == "of the user, not encrypted":
    from pyspark.sql import SparkSession

    from inftda.spark import SparkEngine

    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    engine = SparkEngine(builder.config("spark.io.encryption.enabled", "false").getOrCreate())
inftda.release(*files, epsilon=1, delta=1e-8, engine=engine, out=out, source=SeededSource(1))
"""


@pytest.fixture(scope="module")
def country(tmp_path_factory):
    """Flows and areas, and the release of one machine."""
    out = tmp_path_factory.mktemp("country") / "made"
    sizes = ",".join(map(str, SIZES))
    command = ["demo", "--sizes", sizes, "--trips", str(TRIPS), "--out", str(out)]
    subprocess.run(
        [sys.executable, "-m", "inftda", *command], check=True, stdout=subprocess.DEVNULL
    )
    files = str(out / "flows.parquet"), str(out / "areas.csv")
    options = {"epsilon": 1, "delta": 1e-8, "source": SeededSource(1)}
    return files, release(*files, out=out / "alone", **options)


@pytest.mark.parametrize("session", ["of the release, encrypted", "of the user, not encrypted"])
def test_a_country_with_very_many_areas_is_released_as_on_one_machine(country, session, tmp_path):
    files, alone = country
    subprocess.run(
        [sys.executable, "-c", RELEASE, session, *files, tmp_path / "release"],
        check=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    there = tmp_path / "release" / "flows.parquet"
    assert there.read_bytes() == alone.table.read_bytes()
