"""One country, its release and its estimate, for all tests that only read; the same every time."""

import pytest

import inftda
from inftda.demo import make_country
from inftda.noise.bits import SeededSource


@pytest.fixture(scope="session")
def country():
    return make_country((3, 8, 30), 20_000)


@pytest.fixture(scope="session")
def od(country):
    """Origin and destination over the same three levels."""
    budget = {"epsilon": 1, "delta": 1e-6, "source": SeededSource(1)}
    return inftda.release(country.flows(), country.areas, **budget)


@pytest.fixture(scope="session")
def measured(country):
    """The same with its measurements."""
    budget = {"epsilon": 1, "delta": 1e-6, "source": SeededSource(3)}
    return inftda.release(country.flows(), country.areas, **budget)


@pytest.fixture(scope="session")
def estimated(measured):
    return inftda.estimate(measured)
