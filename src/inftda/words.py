"""The words of the command line as functions: plan, query, verify, evaluate, report.

Each takes the options of its command under the same names; a release is given as it was opened
or as its folder. `inftda.release` has a home of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

from inftda.areas.clock import with_clocks
from inftda.areas.reader import Levels
from inftda.errors import InftdaError
from inftda.estimates import Estimate, open_estimate
from inftda.evaluation.evaluate import (
    Comparison,
    check_outside,
    compare,
    read_truth,
    write_comparison,
)
from inftda.evaluation.outlook import Outlook, balanced_areas
from inftda.privacy.bounds import guaranteed_errors
from inftda.privacy.plan import make_plan, share_or_default
from inftda.privacy.unit import Unit
from inftda.publication.query import FlowFormat, asked_for, converted_flows
from inftda.publication.release import Release, open_release
from inftda.publication.verify import verify as found_right
from inftda.reading.columns import Columns, end_of
from inftda.screen import Progress
from inftda.tree import DESTINATION, ORIGIN, build_tree


def plan(  # noqa: PLR0913 - the same options as a release
    areas: Any = None,
    *,
    sizes: str | Sequence[int] | None = None,
    origin_areas: Any = None,
    destination_areas: Any = None,
    levels: Levels | None = None,
    hour_of: str | None = None,
    weekday_of: str | None = None,
    axes: Mapping[str, Any] | None = None,
    order: Sequence[str] | None = None,
    tree: Literal["destination", "origin"] = "destination",
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | Fraction | None = None,
    neighbours: str = "substitute",
    trips: int = 1,
    exactly: bool | None = None,
    distinct: bool = False,
    accountant: str = "auto",
    split: Any = "uniform",
    across: float | Fraction | None = None,
    beta: float = 0.05,
) -> Outlook:
    """What a release would promise and how far off it would be. Needs no data, spends nothing.

    Args:
        areas: as for `inftda.release`, and so are all options that are not explained here.
        sizes: only the numbers of areas per level, coarse to fine, instead of areas.
        origin_areas: hierarchy of the origins, if it is not that of the destinations.
        destination_areas: likewise.
        levels: of areas that are polygons.
        hour_of: column of time stamps, for an axis of hours.
        weekday_of: likewise, for an axis of weekdays.
        axes: for other tables, and for further columns: column name to hierarchy.
        order: axis names in the order of refinement, one mention for each level.
        tree: which end is refined first.
        epsilon: strength of the guarantee; goes with `delta`.
        delta: probability that the guarantee does not hold.
        rho: strength in zero-concentrated differential privacy, instead of epsilon.
        neighbours: "substitute" or "add-remove".
        trips: the most trips of one person.
        exactly: whether every person has exactly `trips`.
        distinct: whether no person makes the same trip twice.
        accountant: "auto", "exact" or "zcdp".
        split: of the budget over levels.
        across: part of the budget that measures totals across the tree.
        beta: probability that a stated maximum error is exceeded.

    Raises:
        InftdaError: something is wrong with what was asked for.

    Example:
        >>> plan(sizes=[2, 10], epsilon=1, delta=1e-6).levels().column("level").to_pylist()[:2]
        ['all > all', 'all > level 1']
    """
    if sizes is not None and any(
        given is not None for given in (areas, origin_areas, destination_areas, axes or None)
    ):
        raise InftdaError("--sizes stands for the areas; give either sizes or files, not both")
    shape = build_tree(
        areas if sizes is None else balanced_areas(sizes),
        origin_areas=origin_areas,
        destination_areas=destination_areas,
        levels=levels,
        axes=with_clocks(axes, hour_of=hour_of, weekday_of=weekday_of),
        order=order,
        first=tree,
    )
    made = make_plan(
        shape,
        Unit(neighbours, trips, exactly=exactly, distinct=distinct),
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        accountant=accountant,
        split=split,
        across=share_or_default(across),
    )
    return Outlook(shape, made, guaranteed_errors(shape, made, beta=beta), beta)


def query(
    release: Release | str | Path,
    origin_level: str | None = None,
    destination_level: str | None = None,
    *,
    top: int | None = None,
    as_: FlowFormat = "arrow",
    **options: Any,
) -> Any:
    """Flows of a release between areas of any levels; see `Release.flows`.

    Args:
        release: the release, or its folder.
        origin_level: name of a level of the origins, or "all" to sum them up.
        destination_level: likewise of the destinations.
        top: only this many flows, the largest first.
        as_: "arrow", "pandas", "polars" or "geopandas".
        **options: the others of `Release.flows`.

    Raises:
        ReleaseError: as there, or there is no such release.
    """
    found = opened(release)
    flows = found.flows(origin_level, destination_level, **options)
    if top is not None:
        flows = flows.sort_by([("flow", "descending")]).slice(0, top)
    ends = {ORIGIN: origin_level, DESTINATION: destination_level}
    shown, _ = asked_for(found.tree, (ends, options.get("levels")), ({}, None))
    return converted_flows(flows, as_, found.tree, shown)


def verify(release: str | Path, *, key: str | Path | None = None) -> tuple[str, ...]:
    """Check a release without trusting who made it: guarantee, files, and the published table.

    Args:
        release: folder of a release.
        key: file of the publisher's public key (PEM), which the release must be signed with.

    Returns:
        What was found right, in words.

    Raises:
        ReleaseError: something is wrong; the message says what.
    """
    return tuple(found_right(release, key=key))


def evaluate(  # noqa: PLR0913 - the columns of the table, as for a release
    release: Release | str | Path,
    truth: Any,
    *,
    estimate: Estimate | str | Path | None = None,
    out: str | Path | None = None,
    html: bool = False,
    origin: str = ORIGIN,
    destination: str = DESTINATION,
    count: str | None = "auto",
    unplaceable: Any = None,
    origin_point: Sequence[str] | None = None,
    destination_point: Sequence[str] | None = None,
    hour_of: str | None = None,
    weekday_of: str | None = None,
    progress: Progress | None = None,
    say: Callable[[str], object] | None = None,
) -> Comparison:
    """Compare a release with the truth. What comes out is CONFIDENTIAL.

    Args:
        release: the release, or its folder.
        truth: the confidential table it was made from, anything `inftda.release` takes.
        estimate: one made from the release, or its folder, to be compared as well.
        out: folder for the measures, not in a release; without it nothing is written.
        html: write a page as well.
        origin: name of the column where trips start.
        destination: name of the column where they end.
        count: name of the column of counts, None for one row per trip; "auto" as for a release.
        unplaceable: rows with an unknown or missing area; by default as the release.
        origin_point: columns of longitude and latitude where trips start, as for a release.
        destination_point: likewise where they end.
        hour_of: column of time stamps, as for a release.
        weekday_of: likewise.
        progress: called with the name of the level, levels done and levels in all.
        say: called with what a row was taken for, one trip or a count.

    Raises:
        InftdaError: the table cannot be the truth of the release, the estimate was made from
            another one, or `out` is in a release.
    """
    if out is None and html:
        raise InftdaError("a page needs a folder to be written to; give out, or leave out html")
    found = opened(release)
    folder = found.table.parent if isinstance(found.table, Path) else None
    if out is not None:
        check_outside(Path(out), *([] if folder is None else [folder]))
    made = _opened_estimate(estimate)
    if made is not None:
        made.check_release(found)  # before the truth is read
    columns = Columns(
        origin=end_of(ORIGIN, origin, origin_point),
        destination=end_of(DESTINATION, destination, destination_point),
        hour=hour_of,
        weekday=weekday_of,
        count=count,
    )
    counts = read_truth(found, truth, columns, unplaceable=unplaceable, say=say)
    comparison = compare(found, counts, estimate=made, progress=progress)
    if out is not None:
        page = None
        if html:
            from inftda.pages.report import (  # noqa: PLC0415 - only for a page
                measures_by_level,
                write_confidential_page,
            )

            measures = measures_by_level(comparison)
            page = partial(write_confidential_page, found, counts, measures)
        files = write_comparison(comparison, out, release=folder, page=page)
        comparison = replace(comparison, files=files)
    return comparison


def report(  # noqa: PLR0913 - the release, the page, and what helps to read it
    release: Release | str | Path,
    out: str | Path,
    *,
    names: str | Path | None = None,
    centroids: str | Path | None = None,
    geojson: str | Path | None = None,
    estimate: Estimate | str | Path | None = None,
    **options: Any,
) -> Path:
    """Write a page with the guarantee, the errors to expect, and the flows to explore.

    Args:
        release: the release, or its folder.
        out: the HTML file to write, not in a release.
        names: names of areas: columns level, code, name.
        centroids: locations of areas, for a map: a column named after a level, lon, lat.
        geojson: outlines of areas, for a map, in degrees.
        estimate: one made from the release, or its folder, to be shown as well.
        **options: the others of `inftda report`: title, runs, seconds, force, keep_formulas; and
            progress, called with what is done, and how much of the work or time of 100.

    Returns:
        The file.

    Raises:
        InftdaError: a file cannot be read or does not fit the release, or `out` must not be
            written.
    """
    from inftda.pages.report import ReferenceFiles, write_report  # noqa: PLC0415 - only for a page

    given = (None if file is None else Path(file) for file in (names, centroids, geojson))
    files = ReferenceFiles(*given)
    made = _opened_estimate(estimate)
    return write_report(opened(release), out, files=files, estimate=made, **options)


def opened(release: Release | str | Path) -> Release:
    """A release as it is, or read from its folder."""
    return release if isinstance(release, Release) else open_release(release)


def _opened_estimate(estimate: Estimate | str | Path | None) -> Estimate | None:
    return open_estimate(estimate) if isinstance(estimate, str | Path) else estimate
