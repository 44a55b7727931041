# ruff: noqa: S608 - the SQL here is made of names that this package gives, never of input
"""Contribution bounding: no person moves the counts by more than the privacy unit says.

Bounding comes after rows are placed or dropped, so it applies to what is kept: a trip that is
dropped must not push out one that could be counted, and one that is put into the outside area
is a trip like any other.

A person's trips are chosen uniformly at random. DuckDB's own random numbers are not secure,
and fetching every person's rows into Python would not scale; so each trip of a person with
more than m is given the place

    first 128 bits of SHA-256(secret, areas, copy, person)

and the m trips that come first are kept. The secret is 128 fresh bits from the secure source
and is gone after the query. To anyone who does not know it, SHA-256 with a secret in front is
a pseudorandom function: its values at different inputs are as good as independent uniform
numbers, so every set of m trips of a person is equally likely (two trips of a person share a
place with odds below 2^-80). Numbering the copies of equal trips makes all inputs different.
No value of the hash ever leaves the query, so its extension property does no harm. The choice
does not depend on the order of rows, so a seeded source repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from inftda.errors import IngestError

if TYPE_CHECKING:
    import pyarrow as pa

    from inftda.ingest.sources import Input
    from inftda.ingest.workspace import Workspace
    from inftda.noise.entropy import RandomSource
    from inftda.privacy.unit import PrivacyUnit

#: More trips of one person between the same areas than this are a mistake in the table, and
#: would be written out one by one.
MAX_COPIES: Final = 1_000_000
#: Label of the stream that the secret is taken from ("bound" in ASCII).
STREAM_LABEL: Final = 0x626F756E64


@dataclass(frozen=True, slots=True)
class Bounding:
    """How many trips of a person are kept, and where the choice comes from."""

    unit: PrivacyUnit
    random_source: RandomSource

    def secret(self) -> str:
        """128 fresh random bits as text."""
        return self.random_source.stream(STREAM_LABEL).words(2).tobytes().hex()


def fetch_bounded(
    placed: str,
    areas: list[str],
    *,
    table: Input,
    workspace: Workspace,
    bounding: Bounding,
) -> pa.Table:
    """Count trips per leaf, at most `unit.trips` of each person.

    Args:
        placed: SQL for rows with `person`, the columns of `areas`, and `n` trips; rows with a
            flaw have minus the flaw as first area.
        areas: names of the area columns.
        table: what is read, for messages.
        workspace: where it is read.
        bounding: how many trips of a person to keep.

    Returns:
        The columns of `areas` and `n`; flawed rows are passed through.

    Raises:
        IngestError: a person has another number of trips than the unit says exactly.

    Privacy:
        Each person adds at most `unit.trips` to the sum of all counts, and to different
        leaves if the unit is `distinct`; whether a trip is kept depends on the same person's
        trips only, so bounding is 1-stable and costs no budget.
    """
    unit = bounding.unit
    leaf = ", ".join(areas)
    table.attempt(lambda: workspace.run(_gathered(placed, leaf, areas[0], unit)))
    flaws = workspace.fetch(f"SELECT {leaf}, n FROM personal WHERE {areas[0]} < 0")
    if flaws.num_rows:
        return flaws
    _check_copies(table, workspace)
    if unit.root_is_public:
        _check_exactly(unit, table, workspace)
        kept, parameters = f"SELECT {leaf}, n FROM personal", []
    else:
        kept, parameters = _chosen(leaf, areas, unit.trips), [bounding.secret()]
    sql = f"SELECT {leaf}, CAST(sum(n) AS BIGINT) AS n FROM ({kept}) GROUP BY {leaf}"
    return table.attempt(lambda: workspace.fetch(sql, parameters))


def _gathered(placed: str, leaf: str, first: str, unit: PrivacyUnit) -> str:
    """SQL that gathers each person's equal trips in the table `personal`."""
    most = 1 if unit.distinct else MAX_COPIES + 1
    trips = f"CASE WHEN {first} < 0 THEN sum(n) ELSE least(sum(n), {most}) END"
    nobody = f"CASE WHEN {first} < 0 THEN NULL ELSE person END"
    return (
        f"CREATE TEMP TABLE personal AS SELECT person, {leaf}, CAST({trips} AS BIGINT) AS n "
        f"FROM (SELECT {nobody} AS person, {leaf}, n FROM ({placed})) GROUP BY person, {leaf}"
    )


def _chosen(leaf: str, areas: list[str], most: int) -> str:
    """SQL for the trips that are kept; its one parameter is the secret."""
    # The person comes last and all before it are numbers: different trips, different text.
    text = ", ',', ".join(["?", *areas, "copy", "person"])
    # As 32 hexadecimal digits: these sort like the number, which DuckDB 1 cannot make of them.
    place = f"left(sha256(concat({text})), 32)"
    return (
        "WITH busy AS MATERIALIZED "
        f"(SELECT person FROM personal GROUP BY person HAVING sum(n) > {most:d}) "
        f"SELECT {leaf}, n FROM personal ANTI JOIN busy USING (person) "
        "UNION ALL "
        f"SELECT {leaf}, 1 AS n FROM (SELECT person, {leaf}, unnest(range(n)) AS copy "
        "FROM personal SEMI JOIN busy USING (person)) "
        f"QUALIFY row_number() OVER (PARTITION BY person ORDER BY {place}) <= {most:d}"
    )


def _check_copies(table: Input, workspace: Workspace) -> None:
    if workspace.fetch(f"FROM personal WHERE n > {MAX_COPIES} LIMIT 1").num_rows:
        raise IngestError(copies_message(table.label))


def _check_exactly(unit: PrivacyUnit, table: Input, workspace: Workspace) -> None:
    others = f"SELECT 1 FROM personal GROUP BY person HAVING sum(n) <> {unit.trips:d} LIMIT 1"
    if workspace.fetch(others).num_rows:
        raise IngestError(exactly_message(unit, table.label))


def copies_message(label: str) -> str:
    """For a person with so many equal trips that it must be a mistake."""
    return (
        f"one person of {label} has more than {MAX_COPIES:,} trips between the same "
        "areas; check the person column and the count column"
    )


def exactly_message(unit: PrivacyUnit, label: str) -> str:
    """For persons with another number of trips than the unit says exactly."""
    trips = "different trips" if unit.distinct else "trips"
    return (
        f"the unit says exactly {unit.trips} {trips} a person, but {label} has persons "
        "with another number; mend the table, or choose a unit with at most so many trips"
    )
