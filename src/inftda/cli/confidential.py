"""`inftda evaluate` and `inftda compare`, whose output is CONFIDENTIAL."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from inftda.cli import output
from inftda.cli.command import Call, command
from inftda.confidential import compare as methods
from inftda.confidential import evaluate as evaluation
from inftda.confidential.compare import DISCLOSE, NO_GUARANTEE, MethodComparison
from inftda.errors import InftdaError
from inftda.options import Json, Quiet
from inftda.planning.accuracy import NOTICE
from inftda.util.screen import Formats, Grid, Part

#: Columns of the table of methods, with their formats.
_RESULTS: Final[Formats] = {
    "at the finest level": "{0.label}",
    "max error": lambda one: f"{one.levels[-1].max_abs_error:,}",
    "false": lambda one: f"{one.levels[-1].false_discovery_rate:.1%}",
    "lost": lambda one: f"{one.levels[-1].false_negative_rate:.1%}",
    "guarantee": lambda one: "yes" if one.is_guaranteed else "none",
}


@command(evaluation.evaluate)
def evaluate(call: Call, *, quiet: Quiet = False, json: Json = False) -> None:
    """Compare a release with the true counts. The output is CONFIDENTIAL."""
    _check_out(call)
    said: list[str] = []
    made = call.with_progress("levels", quiet=quiet, json=json, on_message=said.append)
    if json:
        output.say(output.as_json(made.to_dict()))
    elif not quiet:
        counted = ("Counted", "; ".join(said))
        output.show([NOTICE, "", counted, *made.shown(), *_files(made.files)])


@command(methods.compare)
def compare(call: Call, *, quiet: Quiet = False, json: Json = False) -> None:
    """Compare with other disclosure-control methods. The output is CONFIDENTIAL."""
    _check_out(call)
    said: list[str] = []
    made = call.with_progress("methods", quiet=quiet, json=json, on_message=said.append)
    if json:
        output.say(output.as_json(made.to_dict()))
    elif not quiet:
        output.show([*_methods(made), ("Counted", "; ".join(said)), *_files(made.files)])


def _check_out(call: Call) -> None:
    """Write confidential output to a folder, which must be named with `out=`."""
    if "out" not in call.given:
        raise InftdaError("give `out=`, a folder where confidential figures may be kept")


def _files(paths: Sequence[Path]) -> list[Part]:
    return ["", f"Confidential files written: {', '.join(map(str, paths))}"]


def _methods(compared: MethodComparison) -> list[Part]:
    """Accuracy at every level, and of totals, of every method."""
    labels = [one.label for one in compared.results]
    levels = [
        (name, *(f"{part:.4f}" for part in parts))
        for name, parts in compared.by_level("common_part")
    ]
    totals = [
        (name, *(f"{error:,.1f}" for error in errors)) for name, errors in compared.by_total()
    ]
    return [
        NOTICE,
        Grid(("common part*", *labels), levels),
        *([Grid(("mean error of totals of", *labels), totals)] if totals else []),
        Grid.of(compared.results, _RESULTS),
        *(f"{one.label}: {one.words}." for one in compared.results),
        "",
        "* common part of commuters: share of trips in which both tables agree; hidden is 0",
        NO_GUARANTEE,
        DISCLOSE,
    ]
