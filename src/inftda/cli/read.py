"""`inftda query`, `change`, `verify` and `keygen`: commands for readers of a release."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda.cli import output
from inftda.cli.command import Call, command
from inftda.errors import InftdaError, UncheckedError
from inftda.estimates.estimate import ESTIMATE, open_estimate
from inftda.options import Force, Group, KeepFormulas, Option, OutFile, Released
from inftda.pages import change as editions
from inftda.publication import verify as checks
from inftda.publication.manifest import TRIPS
from inftda.publication.query import FLOW, LISTED
from inftda.publication.release import Release, open_release
from inftda.publication.reliability import counting_note, listed_note, warnings
from inftda.publication.signature import make_keys
from inftda.publication.summary import release_guarantee
from inftda.series.series import is_series, joined, open_series
from inftda.tree import DESTINATION, ORIGIN
from inftda.util.files import check_file, whole_file
from inftda.util.tabular import disarmed_table

#: Formats of tables.
FORMATS: Final = ("table", "csv", "json", "parquet")
#: Rows of changes on the screen, at most.
_MOST_LINES = 40


@dataclass(frozen=True)
class Answer:
    """Options of commands with a table as output: its file and its format."""

    format_: Annotated[
        str | None,
        Option("Format; by default that of the file's ending, else a table.", "|".join(FORMATS)),
    ] = None
    out: OutFile = None
    force: Force = False
    keep_formulas: KeepFormulas = False

    @property
    def kind(self) -> str:
        """The format given by --format, else by the ending of --out; on the screen a table.

        Raises:
            InftdaError: there is no such format, the two contradict each other, or none is given.
        """
        if self.format_ is not None and self.format_ not in FORMATS:
            raise InftdaError(f"--format must be one of {', '.join(FORMATS)}, got {self.format_!r}")
        if self.out is None:
            return self.format_ or FORMATS[0]
        ending = self.out.suffix.lower().removeprefix(".")
        ended = ending if ending in FORMATS else None
        if self.format_ is not None and ended is not None and self.format_ != ended:
            raise InftdaError(
                f"--format {self.format_} contradicts the ending of {str(self.out)!r}; leave one "
                "of them out"
            )
        kind = self.format_ or ended
        if kind is None:
            endings = ", ".join(f".{known}" for known in FORMATS[1:])
            raise InftdaError(
                f"the ending of {str(self.out)!r} does not give a format; give one of "
                f"{endings}, or give --format"
            )
        return kind

    def check(self) -> None:
        """Refuse a file that cannot be written, before any work is done."""
        if self.kind == "parquet" and self.out is None:
            raise InftdaError("parquet cannot be printed; give a file with `out=`")
        if self.out is not None:
            check_file(self.out, force=self.force)

    @property
    def is_for_people(self) -> bool:
        """Whether it is shown on the screen as a table."""
        return self.kind == "table" and self.out is None

    def give(self, table: pa.Table) -> None:
        """Print or write an Arrow table."""
        if self.kind == "parquet" and self.out is not None:
            with whole_file(self.out) as partial:
                pq.write_table(table, partial)
        elif self.kind == "csv":
            output.give(_as_csv(table if self.keep_formulas else disarmed_table(table)), self.out)
        elif self.kind == "json":
            output.give(output.as_json(table.to_pylist()) + "\n", self.out)
        else:
            output.give(output.as_text(table), self.out)


def _as_csv(table: pa.Table) -> str:
    pa_csv.write_csv(table, sink := pa.BufferOutputStream())
    return sink.getvalue().to_pybytes().decode()  # type: ignore[no-any-return] # untyped library


ON_SCREEN: Final = Answer()


@command(Release.flows)
def query(
    call: Call,
    *,
    release: Released,
    estimate: Annotated[
        Path | None, Option("Estimate to show in place of released flows.", "FOLDER", Path)
    ] = None,
    fit: Annotated[
        bool,
        Option(
            "Instead of flows, the agreement of their sums with each measured table: rms_z is the "
            "difference in standard deviations of the noise, expected at 1 or less, and "
            "beyond_3 the percentage of cells where it is above 3, expected at 0.3 or less."
        ),
    ] = False,
    answer: Annotated[Answer, Group(Answer)] = ON_SCREEN,
) -> None:
    """Sum up the flows of a release by areas of any level."""
    answer.check()
    if fit and (call.given or estimate):
        raise InftdaError("`fit=True` shows all measured tables; leave out levels and filters")
    if estimate is not None and is_series(release):
        raise InftdaError("`estimate=` is of one release; ask for one edition")
    opened = open_series(release).editions if is_series(release) else {"": open_release(release)}
    notes, tables = defaultdict[str, list[str]](list), {}
    for edition, found in opened.items():
        if estimate is not None:
            flows = _estimated(call, found, estimate)
        else:
            flows = found.fit() if fit else call(found)
        for words in filter(None, _notes(call, found, flows)):
            notes[words].append(edition)
        tables[edition] = flows
    answer.give(joined(tables) if is_series(release) else tables[""])
    for words, which in notes.items():
        whose = "" if len(which) == len(opened) else f"{', '.join(which)}: "
        output.say(f"Note:       {whose}{words}", err=True)


@command(editions.change)
def change(call: Call, *, answer: Annotated[Answer, Group(Answer)] = ON_SCREEN) -> None:
    """Compare two editions of a table: intervals and verdicts from the noise of both."""
    answer.check()
    found = call()
    table, left = found.table, 0
    if answer.is_for_people:  # the rest is for a file
        left = max(0, len(table) - _MOST_LINES)
        table = table.slice(0, _MOST_LINES)
    answer.give(table)
    if left:
        output.say(f"... and {left:,} more; `out='changes.csv'` has all", err=True)
    page = [("Page", str(call.given["html"]))] if "html" in call.given else []
    output.show([*found.notes(), *page], err=True)


def _estimated(call: Call, release: Release, folder: Path) -> Any:
    """Flows of an estimate at the levels that were asked for."""
    made, given = open_estimate(folder), {"intervals": False} | call.given
    made.check_release(release)
    return made.flows(release=release, **given)


def _notes(call: Call, release: Release, flows: Any) -> list[str]:
    """Notes and warnings for readers of an answer; some may be empty."""
    notes = [counting_note(release)]
    if (what := release.manifest.counted.what) != TRIPS:
        notes.append(f"numbers count {what}")
    if ESTIMATE in flows.column_names:
        notes.append("model-based estimates: good on average, but a listed flow need not exist")
    elif FLOW in flows.column_names and "zones" not in call.given:
        use = release.use_at(_depths(release, call))
        notes.append("" if use is None or use.is_all else use.describe())
    if LISTED in flows.column_names:
        notes.append(listed_note(release.flows(**call.given | {"intervals": True})))
    return notes


def _depths(release: Release, call: Call) -> list[int]:
    """The level of each axis that was asked for."""
    ends = {
        ORIGIN: call.given.get("origin_level"),
        DESTINATION: call.given.get("destination_level"),
    }
    named = {name: level for name, level in ends.items() if level is not None}
    named |= call.given.get("level", {})
    return [
        axis.hierarchy.level_of(named.get(axis.name, axis.hierarchy.level_names[-1]))
        for axis in release.tree.axes
    ]


@command(checks.verify)
def verify(call: Call) -> None:
    """Check a release without trusting its publisher: guarantee, files and published tables."""
    found: list[str] = []
    unchecked = None
    try:
        checks = call(on_message=found.append)
    except UncheckedError as problem:
        checks, unchecked = problem.passed, problem
    folder = call.given["release"]
    release = open_release(folder)
    plan, note = release.manifest.plan, counting_note(release)
    output.show([
        release_guarantee(release),
        *([("Note", f"{note}. The guarantee is about the counted rows.")] if note else []),
        *(("Warning", words) for words in (*warnings(plan, total=release.total), *found)),
        "",
        *(f"ok  {words}" for words in checks),
    ])  # fmt: skip
    if unchecked is not None:
        raise unchecked
    output.show([f"{folder}: verified ({len(checks)} checks passed)"])


@command()
def keygen(
    key: Annotated[
        Path, Option("File to write the private key to.", "KEY.pem", Path, is_argument=True)
    ],
) -> None:
    """Make a key pair: the private key signs releases, the public key checks them."""
    public = make_keys(key)
    output.show([
        ("Private", f"{key} (keep it to yourself; inftda release --sign)"),
        ("Public", f"{public} (for everybody; inftda verify --key)"),
    ])  # fmt: skip
