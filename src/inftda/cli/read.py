"""`inftda query`, `change`, `verify` and `keygen`: what readers of a release use."""

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda.cli import output
from inftda.cli.command import Call, Force, OutFile, command
from inftda.editions.series import is_series, open_series, with_edition
from inftda.errors import InftdaError
from inftda.estimates import ESTIMATE, open_estimate
from inftda.files import check_file, whole_file
from inftda.options import KeepFormulas, Option, Released
from inftda.pages import editions
from inftda.publication import verify as checks
from inftda.publication.manifest import TRIPS
from inftda.publication.query import FLOW, LISTED
from inftda.publication.release import Release, open_release
from inftda.publication.signature import make_keys
from inftda.publication.trust import counting_note, listed_note, warnings
from inftda.tables import disarmed_table
from inftda.tree import DESTINATION, ORIGIN

_FORMATS = ("table", "csv", "json", "parquet")
_Format = Annotated[
    str | None,
    Option("How to write it; by default as the file ends, else a table.", "|".join(_FORMATS)),
]
#: Rows of changes on the screen, at most.
_MOST_LINES = 40


@command(Release.flows)
def query(  # noqa: PLR0913 - where the answer goes
    call: Call,
    *,
    release: Released,
    estimate: Annotated[
        Path | None,
        Option("Estimate made from the release: show it in place of released flows.", "FOLDER"),
    ] = None,
    fit: Annotated[
        bool,
        Option(
            "Instead of flows, how their sums agree with each measured table: rms_z is their "
            "difference in noise scales, right at about 1 or less, and beyond_3 the percentage of "
            "cells where it is above 3, right at about 0.3 or less."
        ),
    ] = False,
    format_: _Format = None,
    out: OutFile = None,
    force: Force = False,
    keep_formulas: KeepFormulas = False,
) -> None:
    """Sum up the flows of a release between areas of any levels."""
    out = None if out is None else Path(out)
    kind = output.kind_of(_FORMATS, format_, out)
    if out is not None:
        check_file(out, force=force)
    if fit and (call.given or estimate):
        raise InftdaError("`fit=True` shows all measured tables; leave out levels and filters")
    if estimate is not None and is_series(release):
        raise InftdaError("`estimate=` is of one release; ask for one edition")
    opened = open_series(release).editions if is_series(release) else {"": open_release(release)}
    notes: dict[str, None] = {}
    tables = []
    for edition, found in opened.items():
        if estimate is not None:
            flows = _estimated(call, found, estimate)
        else:
            flows = found.fit() if fit else call(found)
        notes |= dict.fromkeys(filter(None, _notes(call, found, flows)))
        tables.append(with_edition(flows, edition) if edition else flows)
    _give(pa.concat_tables(tables), kind, out, keep_formulas=keep_formulas)
    for words in notes:
        output.say(f"Note:       {words}", err=True)


@command(editions.change)
def change(
    call: Call,
    *,
    format_: _Format = None,
    out: OutFile = None,
    keep_formulas: KeepFormulas = False,
) -> None:
    """What changed between two editions: intervals and verdicts from the noise of both."""
    out = None if out is None else Path(out)
    kind = output.kind_of(_FORMATS, format_, out)
    if out is not None:
        check_file(out, force=bool(call.given.get("force")))
    found = call()
    table, left = found.table, 0
    if kind == "table" and out is None:  # the rest is for a file
        left = max(0, len(table) - _MOST_LINES)
        table = table.slice(0, _MOST_LINES)
    _give(table, kind, out, keep_formulas=keep_formulas)
    if left:
        output.say(f"... and {left:,} more; `out='changes.csv'` has all", err=True)
    output.say(f"In words:   {found.describe()}", err=True)
    if "html" in call.given:
        output.say(f"Page:       {call.given['html']}", err=True)


def _give(table: pa.Table, kind: str, out: Path | None, *, keep_formulas: bool) -> None:
    """Print or write an answer."""
    if kind == "parquet" and out is None:
        raise InftdaError("parquet cannot be printed; give a file with `out=`")
    if kind == "parquet" and out is not None:
        with whole_file(out) as partial:
            pq.write_table(table, partial)
    elif kind == "csv":
        output.give(_as_csv(table if keep_formulas else disarmed_table(table)), out)
    elif kind == "json":
        output.give(output.as_json(table.to_pylist()) + "\n", out)
    else:
        output.give(output.as_text(table), out)


def _estimated(call: Call, release: Release, folder: Path) -> Any:
    """What was asked for, of an estimate."""
    made, given = open_estimate(folder), {"intervals": False} | call.given
    made.check_release(release)
    return made.flows(release=release, **given)


def _notes(call: Call, release: Release, flows: Any) -> list[str]:
    """What readers of an answer must know; some may be empty."""
    notes = [counting_note(release)]
    if (what := release.manifest.counted.what) != TRIPS:
        notes.append(f"numbers count {what}")
    if ESTIMATE in flows.column_names:
        notes.append("estimates are of a model: good on average, not a list of existing flows")
    elif FLOW in flows.column_names and "zones" not in call.given:
        use = release.use_at(_depths(release, call))
        notes.append("" if use is None or use.is_all else use.describe())
    if LISTED in flows.column_names:
        call.given["intervals"] = True
        notes.append(listed_note(call(release)))
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


def _as_csv(flows: Any) -> str:
    sink = pa.BufferOutputStream()
    pa_csv.write_csv(flows, sink)
    return sink.getvalue().to_pybytes().decode()  # type: ignore[no-any-return] # untyped library


@command(checks.verify)
def verify(call: Call) -> None:
    """Recompute the guarantee from the manifest and check the published tables."""
    careful: list[str] = []
    for line in call(on_message=careful.append):
        output.say(f"ok  {output.printable(line)}")  # one line each
    folder = call.given["release"]
    release = open_release(folder)
    if words := counting_note(release):
        output.say(f"Note: {words}. Guarantees are about what was counted.")
    for words in (*warnings(release.manifest.plan, total=release.total), *careful):
        output.say(f"Careful: {words}")
    output.say(output.printable(f"{folder} is what it says it is."))  # one line, too


@command()
def keygen(
    key: Annotated[
        Path, Option("File to write the private key to.", metavar="KEY.pem", is_argument=True)
    ],
) -> None:
    """Make a key to sign releases with, and the public key to check them."""
    public = make_keys(Path(key))
    output.say(output.printable(f"Private:    {key} (keep it to yourself; inftda release --sign)"))
    output.say(output.printable(f"Public:     {public} (for everybody; inftda verify --key)"))
