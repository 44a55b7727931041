"""A small release with places, for the tests of exports."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from inftda.demo import make_country
from inftda.exports.export import export
from inftda.noise.bits import SeededSource
from inftda.pipeline import release


@pytest.fixture(scope="session")
def country(tmp_path_factory):
    """A release in memory, the same without its measurements, and where municipalities lie."""
    made = make_country((3, 6, 24), 5_000, seed=3)
    budget = {"epsilon": 1, "delta": 1e-8, "source": SeededSource(1)}
    released = release(made.flows(), made.areas, **budget)
    small = release(made.flows(), made.areas, **budget, measurements="totals")
    codes = made.areas.codes(made.areas.depth)
    numbers = np.arange(len(codes))
    centroids = tmp_path_factory.mktemp("places") / "centroids.csv"
    table = {
        "municipality": codes,
        "lon": 9 + numbers % 6 / 5,
        "lat": 44 + numbers // 6 / 5,
        "name": [f"Town {code}" for code in codes.to_pylist()],
    }
    pa_csv.write_csv(pa.table(table), centroids)
    return SimpleNamespace(release=released, small=small, areas=made.areas, centroids=centroids)


@pytest.fixture
def exported(country, tmp_path):
    """Exports the small release."""

    def call(kind, **options):
        source = options.pop("source", country.release)
        options = {"centroids": country.centroids} | options
        return export(source, to=kind, out=tmp_path / kind, **options)

    return call
