"""A small country on disk, and the command line called in this process."""

from types import SimpleNamespace

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from inftda.cli.main import run
from inftda.lab.generators.country import make_country


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


@pytest.fixture
def released(country, cli, tmp_path):
    """A fresh release of the small country."""
    out = tmp_path / "release"
    done = cli(
        "release", country.flows, "--areas", country.areas,
        "--epsilon", 1, "--delta", 1e-8, "--out", out, "--quiet",
    )  # fmt: skip
    assert done.code == 0, done.err
    return out
