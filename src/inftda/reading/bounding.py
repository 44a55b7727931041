# ruff: noqa: S608 - the SQL here is made of names that this package gives, never of input
"""Contribution bounding: no person moves the counts by more than the privacy unit says.

Bounding comes after rows are placed or dropped, so it applies to what is kept: a trip that is
dropped must not push out one that could be counted, and one that is put into the outside area
is a trip like any other.

A person's trips are chosen uniformly at random. DuckDB's own random numbers are not secure,
and fetching every person's rows into Python would not scale; so each trip of a person with
more than m is given the rank of

    first 128 bits of SHA-256(secret, areas, copy, person)

and the m trips that come first are kept; where a person has one trip for each area of an axis, the
first of each area. The secret is 128 fresh bits from the secure source
and is discarded after the query. To anyone who does not know it, SHA-256 with a secret in front is
a pseudorandom function: its values at different inputs are as good as independent uniform
numbers, so every set of m trips of a person is equally likely (two trips of a person have
the same value with probability below 2^-80). Numbering the copies of equal trips, from 0, makes all
inputs different. No value of the hash ever leaves the query, so its extension property does no
harm. The choice does not depend on the order of rows, nor on the trips of anybody else, so a
seeded source repeats it, on one machine and on any number of them.

Copies of a trip are written out one by one before they are ordered. Of a person with more
than `MAX_COPIES` trips, each leaf's copies are first scaled down in proportion, to about that
many in all and at least one. That changes which of this one person's trips are kept, never
how many, so the guarantee holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from inftda.reading.meaning import MAX_INT64, Flaw
from inftda.truth import MAX_TOTAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from inftda.noise.bits import RandomSource
    from inftda.privacy.unit import Unit
    from inftda.reading.workspace import Workspace

#: Trips of one person that are written out one by one; more are scaled down to these.
MAX_COPIES: Final = 1_000_000
#: Label of the stream that the secret is taken from ("bound" in ASCII).
STREAM_LABEL: Final = 0x626F756E64


def draw_secret(source: RandomSource) -> str:
    """128 fresh random bits as text, for one table."""
    return source.bits(STREAM_LABEL).words(2).tobytes().hex()


def gathered(placed: str, areas: Sequence[str], unit: Unit) -> str:
    """SQL for each person's trips between the same areas: `person`, areas and `n`.

    Applying it to parts of the table and again to the results gives the same as applying it once.
    `placed` is SQL for rows as `Rows.placed` gives them.
    """
    leaf = ", ".join(areas)
    most = 1 if unit.distinct else MAX_INT64
    trips = f"CASE WHEN {areas[0]} < 0 THEN sum(n) ELSE least(sum(n), {most}) END"
    return (
        f"SELECT person, {leaf}, CAST({trips} AS BIGINT) AS n FROM ({placed}) "
        f"GROUP BY person, {leaf}"
    )


def merged(rows: str, areas: Sequence[str]) -> str:
    """SQL for the counts per leaf, capped just above the largest total."""
    leaf = ", ".join(areas)
    total = f"CAST(least(sum(n), {MAX_TOTAL + 1}) AS BIGINT)"
    return f"SELECT {leaf}, {total} AS n FROM ({rows}) GROUP BY {leaf}"


def fetch_bounded(  # noqa: PLR0913 - rows, what they are bounded to, and where
    placed: str,
    areas: Sequence[str],
    *,
    once: str | None,
    workspace: Workspace,
    unit: Unit,
    secret: str,
) -> pa.Table:
    """Count trips per leaf, at most `unit.trips` of each person; all rows of a person are `placed`.

    `once` is the column of the axis that a person has one trip for each area of, if there is one.
    Flawed rows are passed through; persons without exactly the unit's number of trips, or with two
    where there may be one, are counted as `Flaw.INEXACT` if the total is public.

    Privacy:
        Each person adds at most `unit.trips` to the sum of all counts, to different leaves if
        the unit is `distinct`, and to one for each area of `once`; whether a trip is kept depends
        on the same person's trips only, so bounding is 1-stable and costs no budget.
    """
    personal = gathered(placed, areas, unit)
    if unit.root_is_public:
        kept, parameters = _exact(areas, unit.trips, once), []
    else:
        kept, parameters = _chosen(areas, unit.trips, once), [secret] * (1 if once is None else 2)
    workspace.run(f"CREATE OR REPLACE TEMP TABLE personal AS {personal}")
    return workspace.fetch(merged(kept, areas), parameters)


def _exact(areas: Sequence[str], trips: int, once: str | None) -> str:
    """SQL for all trips, and the number of persons who do not have exactly `trips` of them."""
    leaf, twice = ", ".join(areas), "" if once is None else f" OR count(*) > count(DISTINCT {once})"
    inexact = [f"{-Flaw.INEXACT:d}", *("0" for _ in areas[1:])]
    return (
        f"SELECT {leaf}, least(n, {trips:d}) AS n FROM personal WHERE person IS NOT NULL "
        f"UNION ALL SELECT {leaf}, n FROM personal WHERE person IS NULL "
        f"UNION ALL SELECT {', '.join(inexact)}, count(*) FROM (SELECT person FROM personal "
        f"WHERE person IS NOT NULL GROUP BY person HAVING sum(n) <> {trips:d}{twice}) "
        "HAVING count(*) > 0"
    )


def _chosen(areas: Sequence[str], most: int, once: str | None) -> str:
    """SQL for the trips that are kept; the secret is its parameter, twice with `once`."""
    leaf, source = ", ".join(areas), "personal"
    limit = max(MAX_COPIES, most)
    scaled = f"CAST((CAST(n AS HUGEINT) * {limit:d} + total - 1) // total AS BIGINT)"
    copies = f"CASE WHEN total <= {limit:d} THEN n ELSE {scaled} END"
    # The person comes last, after numbers only, so different trips give different text.
    text = ", ',', ".join(["?", *areas, "copy", "person"])
    # As 32 hexadecimal digits, which sort like the number; DuckDB 1 cannot convert them.
    order = f"left(sha256(concat({text})), 32)"
    first = ""
    if once is not None:  # each trip is there once
        source = "single"
        first = (
            "single AS MATERIALIZED (SELECT * EXCLUDE copy FROM (SELECT *, 0 AS copy FROM "
            "personal) QUALIFY person IS NULL OR row_number() OVER "
            f"(PARTITION BY person, {once} ORDER BY {order}) = 1), "
        )
    return (
        f"WITH {first}busy AS MATERIALIZED (SELECT person, sum(n) AS total FROM {source} "
        f"GROUP BY person HAVING sum(n) > {most:d}) "
        f"SELECT {leaf}, n FROM {source} ANTI JOIN busy USING (person) "
        "UNION ALL "
        f"SELECT {leaf}, 1 AS n FROM (SELECT person, {leaf}, unnest(range({copies})) AS copy "
        f"FROM {source} JOIN busy USING (person)) "
        f"QUALIFY row_number() OVER (PARTITION BY person ORDER BY {order}) <= {most:d}"
    )
