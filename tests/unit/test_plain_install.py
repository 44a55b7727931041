"""What needs nothing but the package and what it depends on: `make lowest` runs this as well."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

#: Libraries that come with the extras only.
EXTRAS = ("pandas", "polars", "pyspark", "matplotlib", "cvxpy")

RELEASE = f"""
import sys

class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())

import pyarrow
import inftda
from inftda.publication.verify import verify

areas = {{"region": ["N", "N", "S"], "town": ["01", "02", "03"]}}
trips = pyarrow.table({{
    "who": [1, 1, 1, 2, 3],
    "origin": ["01", "01", "02", "03", "03"],
    "destination": ["02", "02", "03", "03", "01"],
}})
made = inftda.release(
    trips, areas, rho=3000, out=sys.argv[1],
    columns=inftda.Columns(person="who"), unit=inftda.Unit(trips=2, exactly=False),
)
assert sum(made.flows("region", "region")["flow"].to_pylist()) == 4
assert list(verify(sys.argv[1]))
"""


def test_a_release_needs_no_extras(tmp_path):
    subprocess.run([sys.executable, "-c", RELEASE, str(tmp_path / "release")], check=True)
