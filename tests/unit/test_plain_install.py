"""What needs nothing but the package and what it depends on: `make lowest` runs this as well."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import inftda

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


#: What Windows lacks, and its libraries do without. Those that are loaded first may use it here.
WINDOWS = f"""
import os, pkgutil, signal, sys
import click, cryptography.hazmat.primitives.ciphers, duckdb, flint, jinja2, msgspec, numba
import pyarrow.parquet

for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for home, names in {{
    os: "O_DIRECTORY O_NOFOLLOW O_NONBLOCK chown fork geteuid getuid sched_getaffinity",
    signal: "ITIMER_REAL SIGALRM SIGHUP SIGKILL alarm setitimer",
}}.items():
    for name in names.split():
        delattr(home, name)

from inftda.errors import LedgerError, MissingExtraError
import inftda

for module in pkgutil.walk_packages(inftda.__path__, "inftda.", onerror=lambda _: None):
    try:
        if module.name != "inftda.__main__":
            __import__(module.name)
    except MissingExtraError:
        pass
    except ModuleNotFoundError as missing:  # the server of `inftda app`
        assert missing.name in ("starlette", "uvicorn"), missing
from inftda.cli.main import run
from inftda.privacy.ledger import Ledger
{RELEASE[RELEASE.index("import pyarrow") :]}
assert inftda.open_release(sys.argv[1]).total == 4
assert sorted(os.listdir(os.path.dirname(sys.argv[1]))) == ["release"]
assert run(["query", sys.argv[1]]) == 0
try:
    Ledger.create("office.ledger")
except LedgerError as refused:
    assert "WSL" in str(refused)
else:
    raise AssertionError("a ledger on Windows")
"""


def test_what_windows_lacks_is_needed_by_no_import_and_no_release(tmp_path):
    """The user's home is around the package, so that kernels which are compiled are found."""
    home = str(Path(inftda.__file__).parents[1])
    command = [sys.executable, "-c", WINDOWS, str(tmp_path / "release")]
    subprocess.run(command, check=True, env={**os.environ, "HOME": home})
