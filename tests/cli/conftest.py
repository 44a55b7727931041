"""A small country on disk, and the command line called in this process."""

import shutil
from types import SimpleNamespace

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from inftda.cli.main import run
from inftda.demo import make_country


@pytest.fixture(scope="session")
def country(tmp_path_factory):
    folder = tmp_path_factory.mktemp("country")
    made = make_country((3, 6, 24), 5_000, seed=3)
    pq.write_table(made.flows(), folder / "flows.parquet")
    pa_csv.write_csv(made.areas.to_table(), folder / "areas.csv")
    return SimpleNamespace(
        flows=str(folder / "flows.parquet"), areas=str(folder / "areas.csv"), made=made
    )


@pytest.fixture
def cli(capsys):
    """Runs a command; gives exit code, standard output and standard error."""

    def call(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return SimpleNamespace(code=code, out=printed.out, err=printed.err)

    return call


@pytest.fixture(scope="session")
def a_release(country, tmp_path_factory):
    """A release of the small country, made once."""
    out = tmp_path_factory.mktemp("released") / "release"
    given = ("--areas", country.areas, "--epsilon", "1", "--delta", "1e-8")
    assert run(["release", country.flows, *given, "--out", str(out), "--quiet"]) == 0
    return out


@pytest.fixture
def released(a_release, tmp_path):
    """A copy of it, to do with as one likes."""
    return shutil.copytree(a_release, tmp_path / "release")
