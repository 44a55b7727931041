"""Checks of a release that need nothing but its folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from inftda.errors import InftdaError, ReleaseError
from inftda.hierarchy import Hierarchy
from inftda.privacy.spending import ReleasePlan
from inftda.publication.digest import digest
from inftda.publication.manifest import Manifest
from inftda.publication.query import FLOW, open_database, open_flows, quoted
from inftda.publication.release import Release, open_release
from inftda.publication.totals import TOTALS_FILE, check_totals


def verify(path: str | Path) -> Iterator[str]:
    """Check a release folder; yields what was found right.

    Raises:
        ReleaseError: something is wrong; the message says what.
    """
    release = open_release(path)
    yield "areas are the ones the manifest states"
    yield _check_guarantee(release)
    yield from _check_flows(release)
    yield _check_digest(release)
    yield from _check_totals(release, Path(path))


def _check_guarantee(release: Release) -> str:
    """The plan is recomputed: levels against the tree, noise against the promise."""
    if not release.manifest.private:
        raise ReleaseError("this release was made with a seed: it promises nothing")
    try:
        plan = release.manifest.plan
        _check_measured(release.manifest, plan)
        plan.verify(release.tree)
    except InftdaError as problem:
        raise ReleaseError(f"the guarantee does not hold: {problem}") from None
    if plan.to_dict() != dict(release.manifest.guarantee):
        raise ReleaseError(
            "the manifest states figures that do not follow from its noise; it was edited"
        )
    return f"guarantee follows from the noise of each level: {plan.describe()}"


def _check_measured(manifest: Manifest, plan: ReleasePlan) -> None:
    """A guarantee for less than the mechanism measures would be too good."""
    if manifest.description.measures != plan.scope:
        raise ReleaseError(
            f"the mechanism {manifest.mechanism!r} measures {manifest.description.measures}, not "
            f"{plan.scope}; the manifest was edited, or written by another version of inftda"
        )


def _check_flows(release: Release) -> Iterator[str]:
    """Known areas, positive integers, no cell twice, total and number of rows as stated."""
    with open_database() as connection:
        flows = open_flows(connection, release.table)
        flows.create_view("flows")
        names = [axis.name for axis in release.tree.axes]
        if flows.columns != [*names, FLOW]:
            raise ReleaseError(
                f"flows.parquet has the columns {', '.join(flows.columns)}; "
                f"the manifest says {', '.join([*names, FLOW])}"
            )
        if str(flows.types[-1]) != "BIGINT":
            raise ReleaseError(f"flows must be 64-bit integers, got {flows.types[-1]}")
        columns = ", ".join(quoted(name) for name in names)
        yield _one(connection, *_SIGNS[release.manifest.description.values])
        for axis in release.tree.axes:
            connection.register("areas", _codes(axis.hierarchy))
            column = quoted(axis.name)
            yield _one(
                connection,
                f"every {axis.name} is a known area",
                f"SELECT count(*) = 0 FROM flows ANTI JOIN areas ON flows.{column} = areas.code",  # noqa: S608 - quoted
            )
        yield _one(
            connection,
            "no cell stands twice",
            f"SELECT (SELECT count(*) FROM (SELECT DISTINCT {columns} FROM flows)) "  # noqa: S608 - quoted
            "= (SELECT count(*) FROM flows)",
        )
        manifest = release.manifest
        yield _one(
            connection,
            f"total is {manifest.total:,} in {manifest.n_flows:,} rows, as stated",
            f"SELECT coalesce(sum({FLOW}), 0) = {manifest.total} "  # noqa: S608 - integers
            f"AND count(*) = {manifest.n_flows} FROM flows",
        )


_SIGNS = {
    "positive": (
        "flows are integers above 0",
        f"SELECT coalesce(min({FLOW}) > 0, true) FROM flows",  # noqa: S608 - constant
    ),
    "any sign": (
        "flows are integers other than 0",
        f"SELECT count(*) FILTER ({FLOW} = 0) = 0 FROM flows",  # noqa: S608 - constant
    ),
}


def _check_digest(release: Release) -> str:
    """The flows are, to the bit, those that the manifest was written for."""
    if isinstance(release.table, Path) and digest(release.table) != release.manifest.flows_sha256:
        raise ReleaseError(
            f"{release.table.name} is not what the manifest was written for; it was damaged or "
            "changed: get the release again from its publisher"
        )
    return "flows are to the bit the ones the manifest states"


def _check_totals(release: Release, folder: Path) -> Iterator[str]:
    """Measured totals are there if the plan has any, for the areas and noise that it states."""
    plan = release.manifest.plan
    if not plan.tables:
        if release.totals is not None or release.manifest.totals_sha256:
            raise ReleaseError(
                f"the release has {TOTALS_FILE}, but its guarantee has no tables across the tree; "
                "these numbers were not accounted for"
            )
        return
    if release.totals is None:
        raise ReleaseError(
            f"the release has no {TOTALS_FILE}, but totals were measured across the tree; "
            "get it again from its publisher"
        )
    check_totals(release.totals, release.tree, plan)
    yield "measured totals are those of every area, with the noise that the manifest states"
    if digest(folder / TOTALS_FILE) != release.manifest.totals_sha256:
        raise ReleaseError(
            f"{TOTALS_FILE} is not what the manifest was written for; it was damaged or changed: "
            "get the release again from its publisher"
        )
    yield "measured totals are to the bit the ones the manifest states"


def _codes(hierarchy: Hierarchy) -> pa.Table:
    return pa.table({"code": hierarchy.codes(hierarchy.depth)})


def _one(connection: Any, claim: str, query: str) -> str:
    row = connection.sql(query).fetchall()[0]
    if not row[0]:
        raise ReleaseError(f"not true of this release: {claim}")
    return claim
