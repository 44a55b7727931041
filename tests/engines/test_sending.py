"""What executors are sent arrives, however large, where everything on disk is encrypted."""

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda[spark]'")

from patience import PATIENCE

pytestmark = pytest.mark.slow

#: A session as a release starts it; twice as many tasks as cores, so that processes serve again.
SEND = """
from inftda.spark.session import opened, sent
from inftda.hierarchy import Hierarchy

def main():
    areas = Hierarchy.read({"area": [f"{i:06d}" for i in range(30_000)]})
    with opened("local[2]") as session, sent(session, (areas, b"x")) as box:
        print(session.sparkContext.getConf().get("spark.io.encryption.enabled"))
        def look(number):
            hierarchy, mark = box.value
            assert box.value is box.value
            return hierarchy.n_areas(1), hierarchy.codes(1)[number].as_py(), mark
        found = session.sparkContext.parallelize(range(4), 4).map(look).collect()
    print(found == [(30_000, f"{i:06d}", b"x") for i in range(4)])

main()
"""


def test_a_hierarchy_of_many_areas_arrives_encrypted():
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("SPARK IS NOT TESTED: Java is missing (install a JRE, version 17 or newer)")
    done = subprocess.run(
        [sys.executable, "-c", SEND], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.stdout.split() == ["true", "True"], done.stderr[-2000:]
