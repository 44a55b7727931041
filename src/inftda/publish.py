"""The main job: from a confidential table and a public hierarchy to a release.

Data goes one way: tables, counts, plan, level steps, release. What is asked for is checked
before the data is touched, and the plan before any noise is drawn.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any, Literal

from inftda.errors import InftdaError
from inftda.files import FLOWS_FILE, private_folder
from inftda.inference.agreement import Agreement, TableFit
from inftda.inference.measured import NoisyTable
from inftda.ledger.ledger import Charge, Ledger
from inftda.mechanism.topdown import Outcome, release_counts
from inftda.noise.bits import RandomSource, SecureSource, SeededSource
from inftda.options import (
    RUN,
    Accountant,
    Across,
    AreasFile,
    AxisFiles,
    Delta,
    Doc,
    Epsilon,
    Group,
    ImpossibleAreas,
    Levels,
    Method,
    Notified,
    Option,
    Order,
    Rho,
    Split,
    Threads,
    documented,
)
from inftda.privacy.plan import Account, Plan, make_plan
from inftda.privacy.unit import UNIT, Unit
from inftda.publication import tables
from inftda.publication.folder import axis_entries, check_release, write_public_files
from inftda.publication.manifest import (
    MEASUREMENTS_FILE,
    Counting,
    Manifest,
    TreeEntry,
    checked_edition,
)
from inftda.publication.measurements import (
    PlannedTable,
    check_publishable,
    planned_measurements,
    write_measurements,
)
from inftda.publication.release import Release, open_release
from inftda.publication.signature import read_private_key
from inftda.publication.signature import sign as sign_manifest
from inftda.reading import Columns, Flows, read_leaves
from inftda.reading.columns import COLUMNS
from inftda.screen import Progress, following
from inftda.stores import check_output, is_remote, output_folder
from inftda.threads import available_cores
from inftda.tree import Tree
from inftda.truth import Truth

#: With tens of thousands DuckDB runs out of memory, and ends the process.
MOST_THREADS = 1024

#: A panel of help.
PAYS = "Ledger"


def _engine_of(
    name: str = "local",
    *,
    master: Annotated[
        str | None,
        Option("Spark cluster; by default all cores of this machine.", metavar="URL", panel=RUN),
    ] = None,
) -> Any:
    if name == "spark":
        from inftda.spark import SparkEngine  # noqa: PLC0415 - an optional library

        return SparkEngine(master=master)
    if master is not None:
        raise InftdaError("`master=` needs `engine='spark'`")
    return name


def _source_of(
    not_private_seed: Annotated[
        int | None,
        Option("For tests: repeatable noise. The release promises NOTHING and says so.", panel=RUN),
    ] = None,
) -> RandomSource | None:
    return None if not_private_seed is None else SeededSource(not_private_seed)


@documented
def release(  # noqa: PLR0913 - one keyword for each thing a custodian may decide
    flows: Flows,
    areas: AreasFile = None,
    *,
    epsilon: Epsilon = None,
    delta: Delta = None,
    out: Annotated[
        str | Path | None,
        Option(
            "Folder to write, on this machine or in a store (s3://, gs://, abfs://). In Python, "
            "without it the release stays in memory."
        ),
    ] = None,
    columns: Annotated[Columns, Doc("What to read from the table."), Group(Columns)] = COLUMNS,
    unit: Annotated[Unit, Doc("Who is protected."), Group(Unit)] = UNIT,
    counts: Annotated[
        str | None,
        Option(
            "What the numbers count, in the plural, such as people, patients or jobs; by default "
            "trips, or entries where there is no origin and destination.",
            metavar="WORD",
        ),
    ] = None,
    edition: Annotated[
        str | None,
        Option(
            "The period that the table is about, such as 2024 or 2024-05. Releases with the same "
            "areas and different editions make a series, and a ledger may have a budget for each.",
            metavar="PERIOD",
        ),
    ] = None,
    axis: AxisFiles = None,
    levels: Levels = None,
    order: Order = None,
    impossible: ImpossibleAreas = None,
    rho: Rho = None,
    method: Method = "inftda",
    split: Split = None,
    across: Across = None,
    accountant: Accountant = "auto",
    measurements: Annotated[
        Literal["all", "totals"],
        Option(
            "Noisy values to publish: all, which costs no privacy and tells readers how far to "
            "trust each number, or totals of areas only, for a small folder.",
            metavar="all|totals",
            panel=RUN,
        ),
    ] = "all",
    threads: Threads = None,
    engine: Annotated[
        Any,
        Option(
            "Where to run: on this machine, or on Spark for tables beyond one machine. In Python "
            "also a `SparkEngine`.",
            metavar="local|spark",
            panel=RUN,
        ),
        Group(_engine_of),
    ] = "local",
    source: Annotated[
        RandomSource | None,
        Doc(
            "Random bits; secure by default. A `SeededSource` makes a release that promises "
            "nothing, and says so."
        ),
        Group(_source_of),
    ] = None,
    ledger: Annotated[
        str | Path | Ledger | None,
        Option(
            "Ledger to charge the release to before its noise is drawn; it stays charged whatever "
            "happens then.",
            metavar="FILE",
            panel=PAYS,
        ),
    ] = None,
    dataset: Annotated[str | None, Option("Data set of that ledger.", panel=PAYS)] = None,
    sign: Annotated[
        str | Path | None,
        Option("Private key to sign the release with; inftda keygen makes one.", "KEY.pem"),
    ] = None,
    force: Annotated[bool, Option("Replace a release that is there.")] = False,
    progress: Annotated[
        Progress | bool | None,
        Doc("Called with level, work done and work to do; True for a bar."),
    ] = None,
    on_message: Notified = None,
) -> Release:
    """Publish a confidential table under differential privacy.

    Raises:
        InftdaError: something is wrong with what was asked for or with the table.

    Privacy:
        (epsilon, delta)-differential privacy for the unit; see docs/guarantee.md.
    """
    # Decide. All of this is public, and checked before a row is read.
    if sign is not None and out is None:
        raise InftdaError("only a folder can be signed; give `out=`, or leave out `sign=`")
    if measurements not in {"all", "totals"}:
        raise InftdaError(f"`measurements=` must be all or totals, got {measurements!r}")
    key = None if sign is None else read_private_key(sign)
    period = checked_edition(edition)
    if out is not None:
        if period and not is_remote(out):  # the first edition makes the folder of the series
            Path(out).absolute().parent.mkdir(exist_ok=True)
        check_output(out, check=check_release, force=force)
    tree = columns.tree(
        areas, axis=axis, levels=levels, order=order, impossible=impossible, unit=unit
    )
    tree.check_numbers()
    columns.check(tree.axes, unit)
    noun = Counting.noun(counts, tree)
    plan = make_plan(
        tree,
        unit,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        accountant=accountant,
        method=method,
        split=split,
        across=across,
    )
    published = planned_measurements(tree, plan, only_totals=measurements == "totals")
    check_publishable(published)
    random = source or SecureSource()
    charge = Charge.to(ledger, dataset, plan, is_private=random.is_secure, out=out, period=period)
    with following(progress) as report, _place(engine, threads) as place:
        # Read. The only door that the truth comes in by.
        truth = place.read(flows, columns, tree, unit=unit, source=random, say=on_message)
        with _folder(out, force=force) as folder:
            # Draw. Every noise scale comes from the account, each once.
            if charge is not None:
                # Now, and not when all is done: whoever sees a part of the noise has seen it.
                charge.pay()
            drawn = place.release(truth, plan.account(), random, progress=report)
            # Publish. Nothing below has seen the truth.
            released = tables.Flows(drawn.leaves.areas, drawn.leaves.value)
            tables.write_flows(folder / FLOWS_FILE, tree, released)
            fits = _write_measured(folder, tree, plan, drawn, published)
            manifest = Manifest(
                private=random.is_secure,
                guarantee=plan.to_dict(),
                tree=TreeEntry(axis_entries(tree), tree.order),
                total=released.total,
                n_flows=len(released.flow),
                measurements=measurements if published else "none",
                counted=Counting(columns.person is not None, columns.policy, noun),
                edition=period,
                seed=drawn.seed.hex(),
            )
            write_public_files(folder, tree, manifest)
            if key is not None:
                sign_manifest(folder, key)
            # Read back before it is in place: what cannot be opened must not be published.
            made = replace(_opened(folder, out), known_fits=fits)
    if charge is not None:
        charge.note_published()
    return made


def _write_measured(
    folder: Path, tree: Tree, plan: Plan, drawn: Outcome, published: Sequence[PlannedTable]
) -> tuple[TableFit, ...]:
    """Write the noisy values that are published, and compare all of them with the flows."""
    noise = {table.depths: table.noise for table in planned_measurements(tree, plan)}
    wanted = {table.depths for table in published}
    agreement = Agreement(tree, drawn.leaves.areas, drawn.leaves.value)

    def compared() -> Iterator[NoisyTable]:
        for noisy in drawn.noisy:
            table = NoisyTable(noisy.depths, noise[noisy.depths], noisy.cells(), noisy.value)
            agreement.compare(table)
            if table.depths in wanted:
                yield table

    if published:
        write_measurements(folder / MEASUREMENTS_FILE, tree, compared())
    else:
        list(compared())  # none
    return agreement.fits()


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
                impossible=tree.impossible,
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
    ) -> Outcome:
        """Released leaves, and what else was drawn."""
        return release_counts(truth, account, source, threads=self.threads, progress=progress)


def _place(engine: Any, threads: int | None) -> AbstractContextManager[Any]:
    """Where the release is carried out; in which form it keeps the truth is its own business."""
    if engine == "local":
        n = available_cores() if threads is None else threads
        if n < 1:
            raise InftdaError(f"`threads=` must be at least 1, got {n}")
        if n > MOST_THREADS:
            raise InftdaError(f"`threads=` must be at most {MOST_THREADS:,}, got {n:,}")
        return nullcontext(_Machine(n))
    if engine == "spark":
        engine = _engine_of("spark")
    if isinstance(engine, str):
        raise InftdaError(f"`engine=` must be local or spark, got {engine!r}")
    started: AbstractContextManager[Any] = engine.started()
    return started


def _folder(out: str | Path | None, *, force: bool) -> AbstractContextManager[Path]:
    """The folder to fill: one that becomes `out`, or a private one for a release in memory."""
    if out is None:
        return private_folder(Path(gettempdir()), "inftda-release-")
    return output_folder(out, check=check_release, force=force)


def _opened(folder: Path, out: str | Path | None) -> Release:
    """The release in a folder, its tables in memory or where they will be: in `out`."""
    opened = open_release(folder)
    if out is None or is_remote(out):
        return opened.in_memory()
    measured = None if opened.measured is None else Path(out) / MEASUREMENTS_FILE
    return replace(opened, table=Path(out) / FLOWS_FILE, measured=measured)
