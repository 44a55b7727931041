"""A small release that was charged to a ledger."""

from types import SimpleNamespace

import pytest

from inftda.demo import make_country
from inftda.documents.dossier import dossier
from inftda.pipeline import release
from inftda.privacy.budget import Budget
from inftda.privacy.ledger import Ledger
from inftda.privacy.unit import Unit


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """A release on disk that was charged to a ledger, after another."""
    folder = tmp_path_factory.mktemp("published")
    country = make_country((3, 6, 24), 5_000, seed=3)
    ledger = Ledger.create(folder / "office.ledger")
    ledger.add("commuting", Unit(), Budget.make(epsilon="3", delta="1e-7"))
    for name in ("first", "second"):
        made = release(
            country.flows(),
            country.areas,
            epsilon=1,
            delta=1e-8,
            out=folder / name,
            ledger=folder / "office.ledger",
            dataset="commuting",
        )
    return SimpleNamespace(folder=folder / "second", release=made, ledger=folder / "office.ledger")


@pytest.fixture
def made(published, tmp_path):
    """Makes a dossier as quickly as it goes, and gives its files as texts."""

    def call(**options):
        defaults = {"selftest": False, "out": tmp_path / "dossier"}
        source = options.pop("source", published.folder)
        folder = dossier(source, **{**defaults, **options})
        return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}

    return call
