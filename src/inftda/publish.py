"""The main job: from a confidential table and a public hierarchy to a release.

Data goes one way: tables, counts, plan, level steps, release. What is asked for is checked
before the data is touched, and the plan before any noise is drawn.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from inftda.errors import InftdaError, TreeError
from inftda.hierarchy import Hierarchy, read_hierarchy
from inftda.privacy.ledger import Charge, Ledger
from inftda.privacy.plan import Plan
from inftda.privacy.stability import StabilityPlan
from inftda.privacy.unit import PrivacyUnit
from inftda.publication.folder import (
    FLOWS_FILE,
    FlowsWriter,
    areas_files,
    as_table,
    check_writable,
    write_public_files,
    writing,
)
from inftda.publication.manifest import AxisEntry, Manifest
from inftda.publication.release import Release, open_release
from inftda.tree import DESTINATION, ORIGIN, Axis, Tree, default_order

if TYPE_CHECKING:
    from inftda.counts import Counts
    from inftda.mechanisms.base import (
        Cluster,
        Engine,
        Flows,
        Mechanism,
        Progress,
        Setting,
        StartedCluster,
    )
    from inftda.noise.entropy import RandomSource

NoiseSource = Literal["table", "opendp"]


def release(  # noqa: PLR0913 - one keyword for each thing a custodian may decide
    flows: Any,
    areas: Any = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | Fraction | None = None,
    out: str | Path | None = None,
    force: bool = False,
    origin: str = ORIGIN,
    destination: str = DESTINATION,
    count: str | None = "auto",
    person: str | None = None,
    origin_areas: Any = None,
    destination_areas: Any = None,
    axes: Mapping[str, Any] | None = None,
    order: Sequence[str] | None = None,
    tree: Literal["destination", "origin"] = "destination",
    neighbours: str = "substitute",
    trips: int = 1,
    exactly: bool | None = None,
    distinct: bool = False,
    accountant: str = "auto",
    split: Any = "uniform",
    unplaceable: str = "error",
    mechanism: str = "inftda",
    noise: NoiseSource = "table",
    threads: int | None = None,
    engine: "str | Engine | Cluster" = "local",
    source: "RandomSource | None" = None,
    progress: "Progress | None" = None,
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
            from coarse to fine.
        epsilon: strength of the guarantee; goes with `delta`.
        delta: odds that the guarantee does not hold; far below 1 / number of people.
        rho: strength in zero-concentrated differential privacy, instead of epsilon.
        out: folder to write; without it the release stays in memory.
        force: replace a release that is there.
        origin: name of the column where trips start.
        destination: name of the column where they end.
        count: name of the column of counts, None for one row a trip; "auto" takes `count`
            if there is such a column, and refuses another that looks like counts.
        person: name of the column that tells people apart; at most `trips` of each are kept.
        origin_areas: hierarchy of the origins, if it is not that of the destinations.
        destination_areas: likewise.
        axes: for other tables, and for further columns: column name to hierarchy.
        order: axis names in the order of refinement, one mention for each level.
        tree: which end is refined first.
        neighbours: "substitute" (one person replaced by another) or "add-remove".
        trips: the most trips of one person.
        exactly: whether every person has exactly `trips`; by default so for "substitute".
        distinct: whether no person makes the same trip twice.
        accountant: "auto", "exact", "pld", "zcdp" or "paper".
        split: of the budget over levels: "uniform", "geometric:1.3", or weights.
        unplaceable: rows with an unknown or missing area: "error", "outside" or "drop".
        mechanism: how to release; "inftda" unless you compare.
        noise: "table" (exact and fast) or "opendp".
        threads: how many; all cores by default.
        engine: "local", "spark" (the active session, or all cores of this machine) or a
            `SparkEngine`; Spark also takes its own frames and whatever it reads as `flows`.
        source: random bits; secure by default. A seeded source makes a release that
            promises nothing and says so.
        progress: called with level name, work done and work in all.
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
    if out is not None:
        check_writable(Path(out), force=force)
    shape = build_tree(
        areas,
        origin_areas=origin_areas,
        destination_areas=destination_areas,
        axes=axes,
        order=order,
        first=tree,
        outside=unplaceable == "outside",
    )
    unit = PrivacyUnit(neighbours, trips, exactly=exactly, distinct=distinct)
    chosen = _mechanism(mechanism)
    plan = chosen.plan(
        shape, unit, epsilon=epsilon, delta=delta, rho=rho, accountant=accountant, split=split
    )
    if noise != "table" and not isinstance(plan, Plan):
        raise InftdaError(f"{mechanism} draws its own noise; leave out noise={noise!r}")
    charge = Charge.to(
        ledger,
        dataset,
        plan,
        is_private=source is None or source.is_secure,
        mechanism=chosen.name,
        out=out,
    )
    local, cluster = _engines(engine, threads)
    if cluster is not None:
        cluster.check(chosen)
        if out is None:
            raise InftdaError("a release by Spark does not fit into memory; give out, a folder")
    with nullcontext() if cluster is None else cluster.started() as started:
        job = _Job(shape, plan, chosen, noise, local, started, threads, source, progress, charge)
        columns = {ORIGIN: origin, DESTINATION: destination}
        counts = job.read(
            flows, columns, count=count, person=person, unit=unit, unplaceable=unplaceable, say=say
        )
        return job.publish(counts, out, force=force)


def build_tree(  # noqa: PLR0913 - the ways to describe the public tree
    areas: Any = None,
    *,
    origin_areas: Any = None,
    destination_areas: Any = None,
    axes: Mapping[str, Any] | None = None,
    order: Sequence[str] | None = None,
    first: Literal["destination", "origin"] = "destination",
    outside: bool = False,
) -> Tree:
    """The public tree from whatever describes it; see `release` for the arguments.

    Raises:
        TreeError: no hierarchy is given for an end, or the order does not fit.
    """
    if first not in {ORIGIN, DESTINATION}:
        raise TreeError(f"tree must be 'destination' or 'origin', got {first!r}")
    given: dict[str, Any] = {}
    if areas is not None or origin_areas is not None or destination_areas is not None:
        given = {
            ORIGIN: areas if origin_areas is None else origin_areas,
            DESTINATION: areas if destination_areas is None else destination_areas,
        }
    given |= dict(axes or {})
    for name, source in given.items():
        if source is None:
            raise TreeError(f"there is no hierarchy for the {name}; give areas for both ends")
    if not given:
        raise TreeError("there is no hierarchy; give areas (or axes for other tables)")
    # Origins and destinations mostly have the same areas, which are then read once.
    read: dict[int, Hierarchy] = {}
    for source in given.values():
        if id(source) not in read:
            read[id(source)] = _hierarchy(source, outside=outside)
    built = [Axis(name, read[id(source)]) for name, source in given.items()]
    return Tree.build(built, order or default_order(built, first=first))


def _hierarchy(source: Any, *, outside: bool) -> Hierarchy:
    hierarchy = read_hierarchy(source)
    return hierarchy.with_outside() if outside else hierarchy


def _mechanism(name: str) -> "Mechanism":
    from inftda.mechanisms.catalogue import mechanism_named  # noqa: PLC0415 - compiled kernels

    return mechanism_named(name)


def _engines(
    engine: "str | Engine | Cluster", threads: int | None
) -> "tuple[Engine, Cluster | None]":
    """Where blocks of work are carried out, and the cluster that does the rest if there is one."""
    from inftda.engines.local import LocalEngine  # noqa: PLC0415 - an engine is chosen late
    from inftda.mechanisms.base import Cluster  # noqa: PLC0415 - compiled kernels

    local = LocalEngine() if threads is None else LocalEngine(threads)
    if engine == "local":
        return local, None
    if engine == "spark":
        from inftda.engines.spark import SparkEngine  # noqa: PLC0415 - an optional library

        return local, SparkEngine()
    if isinstance(engine, str):
        raise InftdaError(f"engine must be 'local' or 'spark', got {engine!r}")
    return (local, engine) if isinstance(engine, Cluster) else (engine, None)


@dataclass(frozen=True)
class _Job:
    """One release under way: everything is decided, nothing is drawn yet."""

    tree: Tree
    plan: Plan | StabilityPlan
    mechanism: "Mechanism"
    noise: NoiseSource
    engine: "Engine"
    cluster: "StartedCluster | None"
    threads: int | None
    source: "RandomSource | None"
    progress: "Progress | None"
    charge: Charge | None

    def read(
        self,
        flows: Any,
        columns: Mapping[str, str],
        *,
        say: Callable[[str], object] | None,
        **options: Any,
    ) -> Any:
        """The truth: counts, or what the cluster has instead."""
        from inftda.counts import Counts  # noqa: PLC0415 - compiled kernels
        from inftda.reading import TableSpec, read_leaves  # noqa: PLC0415 - DuckDB

        axes = tuple((columns.get(axis.name, axis.name), axis.hierarchy) for axis in self.tree.axes)
        spec = TableSpec(axes=axes, **options)
        if self.cluster is not None:
            return self.cluster.read(flows, spec, random_source=self.random_source, say=say)
        leaves = read_leaves(
            flows, spec, random_source=self.random_source, say=say, threads=self.threads
        )
        return Counts.from_leaves(self.tree, leaves.areas, leaves.counts, threads=self.threads)

    def publish(self, counts: Any, out: str | Path | None, *, force: bool) -> Release:
        published = self._publish(counts, out, force=force)
        if self.charge is not None:
            self.charge.note_published()
        return published

    def _publish(self, counts: Any, out: str | Path | None, *, force: bool) -> Release:
        if out is None:
            blocks = list(self.run(counts))
            table = as_table(self.tree, [(block.areas, block.value) for block in blocks])
            total = sum(int(block.value.sum()) for block in blocks)
            return Release(self.manifest(total, table.num_rows), self.tree, table)
        with writing(Path(out), force=force) as folder:
            total, n_flows = self.write(counts, folder / FLOWS_FILE)
            write_public_files(folder, self.tree, self.manifest(total, n_flows))
            # Read back before it is in place: what cannot be opened must not be published.
            written = open_release(folder)
        return replace(written, table=Path(out) / FLOWS_FILE)

    def write(self, counts: Any, to: Path) -> tuple[int, int]:
        """Draw and write the flows; returns their sum and number."""
        if self.cluster is not None:
            setting = self.setting()
            written = self.cluster.write(
                counts,
                to,
                tree=self.tree,
                plan=self.plan,
                mechanism=self.mechanism,
                setting=setting,
            )
            setting.spending.finish()
            return written
        writer = FlowsWriter(to, self.tree)
        for block in self.run(counts):
            writer.write(block.areas, block.value)
        writer.close()
        return writer.total, writer.n_flows

    def run(self, counts: "Counts") -> "Iterator[Flows]":
        setting = self.setting()
        yield from self.mechanism.run(counts, setting)
        # Checked here too, so that no mechanism can publish what it did not pay for.
        setting.spending.finish()

    def setting(self) -> "Setting":
        """What the mechanism may draw on; from here on the release is paid for."""
        from inftda.mechanisms.base import Setting, no_progress  # noqa: PLC0415

        setting = Setting(
            spending=self.plan.spending(),
            make_sampler=_sampler_maker(self.noise),
            source=self.random_source,
            engine=self.engine,
            progress=self.progress or no_progress,
        )
        if self.charge is not None:
            # Now, and not when all is done: whoever sees a part of the noise has seen it.
            self.charge.pay()
        return setting

    @property
    def random_source(self) -> "RandomSource":
        from inftda.noise.entropy import SecureSource  # noqa: PLC0415

        return self.source or SecureSource()

    def noise_option(self) -> dict[str, str]:
        """Where noise came from, if the mechanism lets it be chosen."""
        return {"noise": self.noise} if isinstance(self.plan, Plan) else {}

    def manifest(self, total: int, n_flows: int) -> Manifest:
        files = areas_files(self.tree)
        axes = tuple(
            AxisEntry(
                axis.name,
                axis.hierarchy.level_names,
                files[axis.name],
                axis.hierarchy.fingerprint,
            )
            for axis in self.tree.axes
        )
        return Manifest(
            private=self.random_source.is_secure,
            mechanism=self.mechanism.name,
            options={**self.noise_option(), **self.mechanism.options},
            guarantee=self.plan.to_dict(),
            axes=axes,
            order=self.tree.order,
            total=total,
            n_flows=n_flows,
        )


def _sampler_maker(noise: NoiseSource) -> Any:
    if noise == "table":
        from inftda.noise.discrete_gaussian import DiscreteGaussian  # noqa: PLC0415

        return DiscreteGaussian
    if noise == "opendp":
        from inftda.noise.opendp import OpenDPGaussian  # noqa: PLC0415

        return OpenDPGaussian
    raise InftdaError(f"noise must be 'table' or 'opendp', got {noise!r}")
