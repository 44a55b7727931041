"""Trips of three towns, read from a database."""

import pytest

from inftda.reading import Columns, SqlQuery, read_leaves
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy

TOWNS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["001", "002", "003"]})
AXES = (Axis("origin", TOWNS), Axis("destination", TOWNS))


@pytest.fixture(scope="session")
def read():
    """Reads the trips of a query."""

    def call(query, database, unit=None, axes=AXES, **options):
        return read_leaves(SqlQuery(query, database), Columns(**options), axes, unit=unit)

    return call
