"""What Spark writes to disk while a release is made is encrypted, and then gone."""

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec

import canaries
import pytest

from patience import PATIENCE

pytestmark = [
    pytest.mark.slow,
    # Java takes its time to start, and the machine can do with one of it.
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(
        find_spec("pyspark") is None or not (shutil.which("java") or "JAVA_HOME" in os.environ),
        reason="SPARK IS NOT TESTED: pyspark or Java is missing",
    ),
]

RELEASE = [
    "release", "trips.csv", "--areas", "areas.csv", "--person", "person", "--neighbours",
    "add-remove", "--epsilon", "0.5", "--delta", "1e-8", "--out", "out", "--engine", "spark",
]  # fmt: skip
#: For short-lived Java processes with little work: compile less.
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture
def place(tmp_path):
    """A folder for work, and one for temporary files of Python and Java."""
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    (work / "areas.csv").write_text(canaries.AREAS)
    (work / "trips.csv").write_text(canaries.trips_csv(300))
    return tmp_path


def run_python(place, *arguments, **variables):
    """Runs Python in a fresh process, with nothing masked; what it printed."""
    unwanted = {"INFTDA_DEBUG", "SPARK_LOCAL_DIRS", "SPARK_SUBMIT_OPTS"}
    environment = {
        **{name: value for name, value in os.environ.items() if name not in unwanted},
        "TMPDIR": str(place / "temporary"),
        # For Java does not heed TMPDIR.
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={place / 'temporary'} {LIGHT}",
        **variables,
    }
    done = subprocess.run(
        [sys.executable, *arguments], cwd=place / "work", env=environment, umask=0, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def wait_until_empty(folder):
    """Java ends after Python, and removes what it has made."""
    end = time.monotonic() + PATIENCE
    while any(folder.iterdir()) and time.monotonic() < end:
        time.sleep(0.1)
    assert list(folder.iterdir()) == []


def test_working_files_of_a_release_are_gone_afterwards_and_its_words_name_nobody(place):
    said = run_python(place, "-m", "inftda", *RELEASE)
    assert canaries.PERSON not in said
    wait_until_empty(place / "temporary")
    assert {path.name for path in (place / "work").iterdir()} == {"areas.csv", "out", "trips.csv"}


#: Two sessions in one process; for each whether its blocks are where they should be, after a
#: shuffle and a broadcast of canaries, the files with canaries, and the addresses where Java
#: listens.
SESSIONS = """
import os
from pathlib import Path
from pyspark import SparkContext
from pyspark.sql.functions import lit
from inftda.spark.session import broadcast, opened, quarter_of_memory

def listening(process):
    sockets = set()
    for link in Path(f"/proc/{process}/fd").iterdir():
        try:
            sockets.add(os.readlink(link))
        except OSError:
            pass
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                yield fields[1].split(":")[0]

for _ in range(2):
    canary = os.environ["CANARY"]
    with opened(None) as session, broadcast(session, canary * 1000):
        session.range(1000).withColumn("person", lit(canary)).repartition(3).foreach(lambda _: None)
        folders = os.listdir(os.environ["WATCHED"])
        print("blocks", any(folder.startswith("blockmgr-") for folder in folders))
        files = [path for path in Path(os.environ["WATCHED"]).rglob("*") if path.is_file()]
        print("found", sum(canary.encode() in path.read_bytes() for path in files), len(files) > 3)
        if Path("/proc/net/tcp").exists():
            print("listens", *listening(SparkContext._gateway.proc.pid))
        print("authenticates", session.sparkContext.getConf().get("spark.authenticate"))
        heap = session._jvm.java.lang.Runtime.getRuntime().maxMemory()
        print("heap", heap * 5 > quarter_of_memory() << 22)
"""

#: 127.0.0.1 as Linux writes it: alone, and within IPv6.
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}


def test_blocks_are_encrypted_where_the_user_wants_them_and_nobody_else_can_connect(place):
    disk, settings = place / "disk", place / "settings"
    settings.mkdir()
    # As an administrator may have set it for clusters.
    lines = [f"spark.local.dir {place / 'open'}", "spark.driver.bindAddress 0.0.0.0"]
    (settings / "spark-defaults.conf").write_text("\n".join(lines))
    variables = {"WATCHED": str(disk), "SPARK_CONF_DIR": str(settings), "CANARY": canaries.PERSON}
    variables["SPARK_LOCAL_DIRS"] = str(disk)
    said = run_python(place, "-c", SESSIONS, **variables).splitlines()
    assert said.count("blocks True") == 2
    assert said.count("found 0 True") == 2
    assert said.count("authenticates true") == 2
    assert said.count("heap True") == 2, "a country does not fit into Spark's default of 1 GiB"
    for line in said:
        if line.startswith("listens"):
            assert {*line.split()[1:]} <= LOOPBACK, line
    assert not (place / "open").exists()
    wait_until_empty(disk)
    wait_until_empty(place / "temporary")
