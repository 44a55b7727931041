"""The main job: from a confidential table and a public hierarchy to a release.

Data goes one way: tables, counts, plan, level steps, release. What is asked for is checked
before the data is touched, and the plan before any noise is drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from inftda.areas.clock import with_clocks
from inftda.areas.reader import Levels
from inftda.errors import InftdaError
from inftda.files import FLOWS_FILE, check_folder, private_folder, whole_folder
from inftda.ledger.ledger import Charge, Ledger
from inftda.mechanism.topdown import Keep, Outcome, release_counts
from inftda.noise.bits import RandomSource, SecureSource
from inftda.privacy.plan import Account, make_plan, share_or_default
from inftda.privacy.unit import Unit
from inftda.publication.folder import axis_entries, check_release, write_public_files
from inftda.publication.manifest import MEASUREMENTS_FILE, MECHANISM, Counting, Manifest, TreeEntry
from inftda.publication.measurements import (
    MeasurementsFile,
    check_publishable,
    planned_measurements,
    write_totals,
)
from inftda.publication.release import Release, open_release
from inftda.publication.signature import read_private_key
from inftda.publication.signature import sign as sign_manifest
from inftda.publication.tables import Flows, write_flows
from inftda.reading import Columns, Unplaceable, read_leaves
from inftda.reading.columns import end_of
from inftda.screen import Progress, following
from inftda.threads import available_cores
from inftda.tree import DESTINATION, ORIGIN, Tree, build_tree
from inftda.truth import Truth

#: With tens of thousands DuckDB runs out of memory, and ends the process.
MOST_THREADS = 1024

if TYPE_CHECKING:
    from inftda.spark import SparkEngine


def release(  # noqa: PLR0913 - one keyword for each thing a custodian may decide
    flows: Any,
    areas: Any = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | Fraction | None = None,
    out: str | Path | None = None,
    force: bool = False,
    sign: str | Path | None = None,
    origin: str = ORIGIN,
    destination: str = DESTINATION,
    count: str | None = "auto",
    person: str | None = None,
    origin_areas: Any = None,
    destination_areas: Any = None,
    axes: Mapping[str, Any] | None = None,
    levels: Levels | None = None,
    origin_point: Sequence[str] | None = None,
    destination_point: Sequence[str] | None = None,
    hour_of: str | None = None,
    weekday_of: str | None = None,
    order: Sequence[str] | None = None,
    tree: Literal["destination", "origin"] = "destination",
    neighbours: str = "substitute",
    trips: int = 1,
    exactly: bool | None = None,
    distinct: bool = False,
    accountant: str = "auto",
    split: Any = "uniform",
    across: float | Fraction | None = None,
    measurements: bool = False,
    unplaceable: Unplaceable | Mapping[str, str] = "error",
    threads: int | None = None,
    engine: "str | SparkEngine" = "local",
    source: RandomSource | None = None,
    progress: Progress | bool | None = None,
    say: Callable[[str], object] | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
) -> Release:
    """Publish a confidential table under differential privacy.

    Args:
        flows: trips (one row each) or flows (with a count column): a CSV or Parquet file,
            a folder or glob of Parquet files, any table that speaks Arrow, an `SqlQuery`, or
            a `CsvFile` for text in another encoding than UTF-8.
        areas: the public hierarchy of both ends: a file, a table or a `Hierarchy`, columns
            from coarse to fine; or polygons (GeoJSON, GeoPackage, shapefile, geopandas).
        epsilon: strength of the guarantee; goes with `delta`.
        delta: probability that the guarantee does not hold; far below 1 / number of people.
        rho: strength in zero-concentrated differential privacy, instead of epsilon.
        out: folder to write; without it the release stays in memory.
        force: replace a release that is there.
        sign: private key (PEM, see `inftda keygen`) to sign the manifest with.
        origin: name of the column where trips start.
        destination: name of the column where they end.
        count: name of the column of counts, None for one row per trip; "auto" takes `count`
            if there is such a column, and refuses another that looks like counts.
        person: name of the column that tells people apart; at most `trips` of each are kept.
        origin_areas: hierarchy of the origins, if it is not that of the destinations.
        destination_areas: likewise.
        axes: for other tables, and for further columns: column name to hierarchy.
        levels: the columns of `areas` that are the levels, from coarse to fine; as a mapping,
            with the column of the names of each.
        origin_point: columns of longitude and latitude where trips start, in degrees, instead
            of `origin`: points are placed into areas that have outlines, or are H3 cells.
        destination_point: likewise where they end.
        hour_of: column of time stamps; trips are counted by hour, too, in parts of the day.
        weekday_of: likewise by weekday.
        order: axis names in the order of refinement, one mention for each level.
        tree: which end is refined first.
        neighbours: "substitute" (one person replaced by another) or "add-remove".
        trips: the most trips of one person.
        exactly: whether every person has exactly `trips`; by default so for "substitute".
        distinct: whether no person makes the same trip twice.
        accountant: "auto", "exact" or "zcdp".
        split: of the budget over levels: "uniform", "geometric:1.3", or weights.
        across: part of the budget that measures totals across the tree, so that out- and
            in-totals of all areas are right within a few sigma; 0.08 by default, 0 for
            the paper's algorithm.
        measurements: whether to publish every noisy value that was drawn as well; it costs no
            privacy, and lets others make better estimates.
        unplaceable: rows with an unknown or missing area: "error", "outside" or "drop"; or axis
            name to "outside" for axes where there may be such rows.
        threads: how many; all cores by default.
        engine: "local", "spark" (the active session, or all cores of this machine) or a
            `SparkEngine`; Spark also takes its own frames and whatever it reads as `flows`.
        source: random bits; secure by default. A seeded source makes a release that
            promises nothing and says so.
        progress: called with level name, work done and work in all; True for a bar on the terminal
            or in a notebook.
        say: called with what a row of the table was taken for, one trip or a count.
        ledger: charge the release to a data set of this ledger before its noise is drawn;
            it stays charged whatever happens then.
        dataset: name of that data set.

    Returns:
        The release, opened.

    Raises:
        InftdaError: something is wrong with what was asked for or with the table.

    Privacy:
        (epsilon, delta)-differential privacy for the unit described by `neighbours`,
        `trips`, `exactly` and `distinct`; see docs/privacy-guarantee.md.
    """
    if sign is not None and out is None:
        raise InftdaError("only a folder can be signed; give out, or leave out sign")
    key = None if sign is None else read_private_key(sign)
    if out is not None:
        check_folder(Path(out), check=check_release, force=force)
    columns = Columns(
        origin=end_of(ORIGIN, origin, origin_point),
        destination=end_of(DESTINATION, destination, destination_point),
        hour=hour_of,
        weekday=weekday_of,
        count=count,
        person=person,
        unplaceable=unplaceable,
    )
    public = build_tree(
        areas,
        origin_areas=origin_areas,
        destination_areas=destination_areas,
        axes=with_clocks(axes, hour_of=hour_of, weekday_of=weekday_of),
        order=order,
        first=tree,
        outside=columns.outside,
        levels=levels,
    )
    public.check_numbers()
    unit = Unit(neighbours, trips, exactly=exactly, distinct=distinct)
    columns.check(public.axes, unit)
    plan = make_plan(
        public,
        unit,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        accountant=accountant,
        split=split,
        across=share_or_default(across),
    )
    published = planned_measurements(public, plan, only_totals=not measurements)
    check_publishable(published)
    random = source or SecureSource()
    charge = Charge.to(
        ledger, dataset, plan, is_private=random.is_secure, mechanism=MECHANISM, out=out
    )
    counting = Counting(bounded=person is not None, unplaceable=columns.policy)
    with following(progress) as report, _place(engine, threads) as place:
        # Read. The only door that the truth comes in by.
        truth = place.read(flows, columns, public, unit=unit, source=random, say=say)
        with _folder(out, force=force) as folder:
            path = folder / MEASUREMENTS_FILE
            writer = MeasurementsFile(path, public.axes) if measurements else None
            # Draw. Every noise scale comes from the account, each once.
            if charge is not None:
                # Now, and not when all is done: whoever sees a part of the noise has seen it.
                charge.pay()
            drawn = place.release(
                truth,
                plan.account(),
                random,
                progress=report,
                keep=None if writer is None else writer.keep,
            )
            # Publish. Nothing below has seen the truth.
            released = Flows(drawn.leaves.areas, drawn.leaves.value)
            write_flows(folder / FLOWS_FILE, public, released)
            if writer is not None:
                writer.close()
            else:
                write_totals(path, public, drawn.totals)
            manifest = Manifest(
                private=random.is_secure,
                guarantee=plan.to_dict(),
                tree=TreeEntry(axis_entries(public), public.order),
                total=released.total,
                n_flows=len(released.flow),
                measurements=("all" if measurements else "totals") if published else "none",
                counted=counting,
                seed=drawn.seed.hex(),
            )
            write_public_files(folder, public, manifest)
            if key is not None:
                sign_manifest(folder, key)
            # Read back before it is in place: what cannot be opened must not be published.
            made = _opened(folder, out)
    if charge is not None:
        charge.note_published()
    return made


@dataclass(frozen=True)
class _Machine:
    """One machine: where a release is read and drawn unless Spark is asked for."""

    threads: int

    def read(  # noqa: PLR0913 - the table, what it means, and what it is read for
        self,
        table: Any,
        columns: Columns,
        tree: Tree,
        *,
        unit: Unit,
        source: RandomSource,
        say: Callable[[str], object] | None,
    ) -> Truth:
        """The confidential table, counted per leaf and summed up level by level.

        Raises:
            InftdaError: it cannot be read as counts, or must not be read that way.
        """
        return Truth.of(
            tree,
            read_leaves(
                table,
                columns,
                tree.axes,
                unit=unit,
                random_source=source,
                say=say,
                threads=self.threads,
            ),  # not kept here: levels take the room
            threads=self.threads,
        )

    def release(
        self,
        truth: Truth,
        account: Account,
        source: RandomSource,
        *,
        progress: Progress,
        keep: Keep | None,
    ) -> Outcome:
        """Released leaves, and what else was drawn."""
        return release_counts(
            truth, account, source, threads=self.threads, progress=progress, keep=keep
        )


def _place(engine: "str | SparkEngine", threads: int | None) -> AbstractContextManager[Any]:
    """Where the release is carried out; in which form it keeps the truth is its own business."""
    if engine == "local":
        n = available_cores() if threads is None else threads
        if n < 1:
            raise InftdaError(f"threads must be at least 1, got {n}")
        if n > MOST_THREADS:
            raise InftdaError(f"threads must be at most {MOST_THREADS:,}, got {n:,}")
        return nullcontext(_Machine(n))
    if engine == "spark":
        from inftda.spark import SparkEngine  # noqa: PLC0415 - an optional library

        return SparkEngine().started()
    if isinstance(engine, str):
        raise InftdaError(f"engine must be 'local' or 'spark', got {engine!r}")
    return engine.started()


def _folder(out: str | Path | None, *, force: bool) -> AbstractContextManager[Path]:
    """The folder to fill: one that becomes `out`, or a private one for a release in memory."""
    if out is None:
        return private_folder(Path(gettempdir()), "inftda-release-")
    return whole_folder(Path(out), check=check_release, force=force)


def _opened(folder: Path, out: str | Path | None) -> Release:
    """The release in a folder, its tables in memory or where they will be: in `out`."""

    def table(name: str) -> pa.Table | Path:
        return pq.read_table(folder / name) if out is None else Path(out) / name

    opened = open_release(folder)
    measured = None if opened.measured is None else table(MEASUREMENTS_FILE)
    return replace(opened, table=table(FLOWS_FILE), measured=measured)
