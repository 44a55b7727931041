"""Releases of every kind, made when first asked for and shared by all tests of a process."""

import pytest

from engines.conftest import spark  # noqa: F401 - a fixture
from matrix.kinds import Made


@pytest.fixture(scope="session")
def made(tmp_path_factory, request):
    """Give the release of a kind, by its name."""
    known = {}

    def give(name):
        if name not in known:
            if name == "spark":
                request.getfixturevalue("spark")  # the session that releases use
            known[name] = Made(name, tmp_path_factory.mktemp(name))
        return known[name]

    return give
