"""The main job: from a confidential table and a public hierarchy to a release.

Data goes one way: tables, counts, plan, level steps, release. Options are checked before the data
is read, and the plan before any noise is drawn.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any, Literal

from inftda.errors import InftdaError
from inftda.mechanism.topdown import Outcome, release_counts
from inftda.noise.bits import RandomSource, SecureSource, SeededSource
from inftda.options import (
    RUN,
    Accountant,
    AllowLargeDelta,
    AreasFile,
    AxisFiles,
    CrossTables,
    Delta,
    Doc,
    Epsilon,
    Group,
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
from inftda.privacy.ledger import Charge, Ledger
from inftda.privacy.measurement import Measurement
from inftda.privacy.noise_plan import Account, check_delta, make_plan
from inftda.privacy.unit import UNIT, Unit
from inftda.publication import parquet as tables
from inftda.publication.agreement import Agreement
from inftda.publication.folder import axis_entries, check_release, write_public_files
from inftda.publication.manifest import (
    ALGORITHM,
    FORMAT,
    MEASUREMENTS_FILE,
    Counting,
    Manifest,
    checked_edition,
    software_versions,
)
from inftda.publication.measurements import (
    check_publishable,
    noisy_table,
    planned_measurements,
    write_measurements,
)
from inftda.publication.release import Release, open_release
from inftda.publication.reliability import misfit_warnings
from inftda.publication.signature import read_private_key
from inftda.publication.signature import sign as sign_manifest
from inftda.reading import Columns, Flows, Request, read_leaves
from inftda.reading.columns import COLUMNS
from inftda.reading.truth import Truth
from inftda.tree import Tree
from inftda.util.files import FLOWS_FILE, naming, private_folder
from inftda.util.screen import Progress, following
from inftda.util.stores import check_output, is_remote, output_folder
from inftda.util.threads import available_cores

#: Largest number of threads: with tens of thousands, DuckDB runs out of memory and ends the
#: process.
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
        Option("For tests: repeatable noise. The release has NO guarantee.", panel=RUN),
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
    unit: Annotated[Unit, Doc("The privacy unit."), Group(Unit)] = UNIT,
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
    rho: Rho = None,
    method: Method = "inftda",
    split: Split = None,
    cross_tables: CrossTables = None,
    accountant: Accountant = "auto",
    allow_large_delta: AllowLargeDelta = False,
    measurements: Annotated[
        Literal["all", "totals"],
        Option(
            "Noisy values to publish: all, which uses no budget and gives readers an interval for "
            "each number, or totals of areas only, for a small folder.",
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
            "Random bits; secure by default. A `SeededSource` makes a release without a "
            "guarantee, which states so."
        ),
        Group(_source_of),
    ] = None,
    ledger: Annotated[
        str | Path | Ledger | None,
        Option(
            "Ledger to charge before the noise is drawn. The charge stays if the release fails.",
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
        InftdaError: an option or the table is invalid.

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
        series = _new_series(out, period)
        check_output(series or out, check=check_release, force=force)
    tree = columns.tree(areas, axis=axis, levels=levels, order=order, unit=unit)
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
        cross_tables=cross_tables,
    )
    if not unit.root_is_public:
        check_delta(plan, total=None, allowed=allow_large_delta)
    published = planned_measurements(tree, plan, only_totals=measurements == "totals")
    check_publishable(published)
    random = source or SecureSource()
    charge = Charge.to(ledger, dataset, plan, is_private=random.is_secure, out=out, period=period)
    attempt = _Attempt(charge)
    with attempt.explained(), following(progress) as report, _place(engine, threads) as place:
        # Read the confidential table.
        truth = place.read(flows, tree, Request(columns, unit, random, on_message))
        if unit.root_is_public:  # or the total must decide nothing
            check_delta(plan, total=truth.total, allowed=allow_large_delta)
        is_public = random.is_secure
        with _folder(out, period, force=force, is_public=is_public, tell=attempt.tell) as folder:
            # Draw. Every noise scale comes from the account, each once.
            if charge is not None:
                # Before any noise is drawn, because a part of it may be seen even if the release
                # fails.
                charge.pay()
            drawn = place.release(truth, plan.account(), random, progress=report)
            # Publish. No code below sees true counts.
            released = drawn.leaves
            with naming(folder / FLOWS_FILE):
                tables.write_flows(folder / FLOWS_FILE, tree, released)
            _write_measured(folder, tree, drawn, published)
            manifest = Manifest(
                format=FORMAT,
                requires={},
                private=random.is_secure,
                edition=period,
                counted=Counting(columns.person is not None, columns.policy, noun),
                total=int(released.value.sum()),
                n_flows=len(released.value),
                guarantee=plan.stated(),
                axes=axis_entries(tree),
                order=tree.order,
                measurements=measurements if published else "none",
                algorithm=ALGORITHM,
                division_seed=drawn.seed.hex(),
                files={},
                software=software_versions(),
            )
            write_public_files(folder, tree, manifest)
            if key is not None:
                sign_manifest(folder, key)
            # Read back before it is in place: a folder that cannot be opened must not be published.
            made = _opened(folder, out)
        if charge is not None:
            charge.note_published()
        _tell_misfits(made, drawn, on_message)
    return made


@dataclass
class _Attempt:
    """Progress of a release, for the note on an error.

    Attributes:
        charge: to the ledger, if there is one.
        where: the release, in words, once it is in place or kept elsewhere.
    """

    charge: Charge | None
    where: str = ""

    def tell(self, where: str) -> None:
        """Note where the release is."""
        self.where = where

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Add a note to any exception: published and charged amounts, files left on disk, remedy.

        An `InftdaError` explains itself, so it gets notes only about a release that is there and
        about a charge.
        """
        try:
            yield
        except InftdaError as problem:
            if self.where not in str(problem):
                problem.add_note(self.where)
            if self.charge is not None and self.charge.number is not None:
                problem.add_note(self._charged())
            raise
        except BaseException as problem:
            is_clean = not getattr(problem, "__notes__", ())
            left = "nothing was published" + " and nothing is left on disk" * is_clean
            problem.add_note(f"{self.where or left}; {self._charged()}")
            raise

    def _charged(self) -> str:
        words = "no ledger was charged" if self.charge is None else self.charge.describe()
        if self.where:
            return words
        is_paid = self.charge is not None and self.charge.number is not None
        again = "costs its budget again" if is_paid else "is safe"
        return f"{words}. Running the release again {again}"


def _write_measured(
    folder: Path, tree: Tree, drawn: Outcome, published: Sequence[Measurement]
) -> None:
    """Write the noisy values that are published, if any are."""
    if published:
        wanted = {table.depths for table in published}
        tables = (noisy_table(one) for one in drawn.noisy if one.depths in wanted)
        with naming(folder / MEASUREMENTS_FILE):
            write_measurements(folder / MEASUREMENTS_FILE, tree, tables)


def _tell_misfits(made: Release, drawn: Outcome, tell: Notified) -> None:
    """Warn of sums of flows that disagree with noisy values, if these are not published."""
    if tell is None or made.has_measurements:
        return
    agreement = Agreement(made.tree, drawn.leaves.areas, drawn.leaves.value)
    for one in drawn.noisy:
        agreement.compare(noisy_table(one))
    for words in misfit_warnings(made, agreement.fits()):
        tell(words)


@dataclass(frozen=True)
class _Machine:
    """Engine that reads and draws on this machine; the default."""

    threads: int

    def read(self, table: Any, tree: Tree, request: Request) -> Truth:
        """The confidential table, counted per leaf and summed up level by level.

        Raises:
            InftdaError: it cannot be read as counts, or must not be read that way.
        """
        return Truth.of(
            tree,
            read_leaves(
                table,
                request.columns,
                tree.axes,
                unit=request.unit,
                random_source=request.source,
                say=request.say,
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
        """Draw the release: released leaves and noisy counts."""
        return release_counts(truth, account, source, threads=self.threads, progress=progress)


def _place(engine: Any, threads: int | None) -> AbstractContextManager[Any]:
    """Choose the engine that reads and draws."""
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


def _new_series(out: str | Path, period: str) -> Path | None:
    """The folder of a series, if this first edition must create it; otherwise None."""
    if not period or is_remote(out) or (parent := Path(out).absolute().parent).exists():
        return None
    return parent


@contextmanager
def _folder(
    out: str | Path | None,
    period: str,
    *,
    force: bool,
    is_public: bool,
    tell: Callable[[str], object],
) -> Iterator[Path]:
    """The folder to fill: one that becomes `out`, or a private one for a release in memory.

    `tell` is called with where the release is, once it is there.
    """
    if out is None:
        with private_folder(Path(gettempdir()), "inftda-release-") as folder:
            yield folder
        return
    if (series := _new_series(out, period)) is not None:
        series.mkdir(exist_ok=True)
    try:
        with output_folder(
            out, check=check_release, force=force, is_public=is_public, tell=tell
        ) as folder:
            yield folder
    finally:
        if series is not None:
            with suppress(OSError):  # only an empty one
                series.rmdir()


def _opened(folder: Path, out: str | Path | None) -> Release:
    """The release in a folder, its tables in memory or where they will be: in `out`."""
    opened = open_release(folder)
    if out is None or is_remote(out):
        return opened.in_memory()
    measured = None if opened.measured is None else Path(out) / MEASUREMENTS_FILE
    return replace(opened, table=Path(out) / FLOWS_FILE, measured=measured)
