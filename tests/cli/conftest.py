"""A small country, a release and an estimate of it, made once; commands run in this process."""

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


@pytest.fixture(scope="session")
def given(country, tmp_path_factory):
    """What commands read, by the words that stand for it."""
    folder = tmp_path_factory.mktemp("given")
    names = {
        name: str(folder / name.lower()) for name in ("RELEASE", "TOTALS", "MEASURED", "ESTIMATE")
    }
    words = {"FLOWS": country.flows, "AREAS": country.areas, "LEDGER": str(folder / "l.db")} | names
    for line in (
        "release FLOWS --areas AREAS --epsilon 1 --delta 1e-8 --out RELEASE",
        "release FLOWS --areas AREAS --rho 1/40 --measurements totals --out TOTALS",
        "release FLOWS --areas AREAS --rho 1/40 --not-private-seed 5 --out MEASURED",
        "estimate MEASURED --quiet --out ESTIMATE",
        "ledger create LEDGER census --rho 1",
    ):
        assert run([words.get(word, word) for word in line.split()]) == 0
    return words


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
def typed(cli, given, tmp_path, monkeypatch):
    """Runs a line in an empty folder, with words for what is given."""
    monkeypatch.chdir(tmp_path)
    return lambda line, *more: cli(*(given.get(word, word) for word in line.split()), *more)


@pytest.fixture
def done(typed):
    """Likewise, if it must succeed; gives what it prints."""

    def call(line, *more):
        found = typed(line, *more)
        assert found.code == 0, found.err
        return found.out

    return call


@pytest.fixture
def copied(given, tmp_path):
    """Copies what is given, to do with as one likes."""
    return lambda name: shutil.copytree(given[name], tmp_path / name.lower())


@pytest.fixture
def snapshot(tmp_path):
    """All files of the folder, with what is in them."""
    return lambda: {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
