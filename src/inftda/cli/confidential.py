"""`inftda evaluate` and `inftda compare`: what comes out is CONFIDENTIAL."""

from inftda.cli import output
from inftda.cli.command import Call, Json, Quiet, command
from inftda.disclosure import compare as methods
from inftda.disclosure.compare import DISCLOSE, MethodComparison, summary_sentence
from inftda.errors import InftdaError
from inftda.evaluation.evaluate import NOTICE, Comparison
from inftda.evaluation.intervals import LEAST, lowest_coverage, overall
from inftda.pages import evaluate as evaluation
from inftda.publication.release import open_release
from inftda.publication.trust import counting_note


@command(evaluation.evaluate)
def evaluate(call: Call, *, quiet: Quiet = False, json: Json = False) -> None:
    """Compare a release with the truth; what comes out is CONFIDENTIAL."""
    _check_out(call)
    said: list[str] = []
    made = call.with_progress("levels", shown=not (quiet or json), on_message=said.append)
    if json:
        output.say(output.as_json(made.to_dict()))
    elif not quiet:
        output.say(_evaluation_text(made, counted="; ".join(said)))
        if words := counting_note(open_release(call.given["release"])):
            output.say(f"What the release counts: {words}.")
        output.say(f"\nConfidential files written: {', '.join(map(str, made.files))}")


@command(methods.compare)
def compare(call: Call, *, quiet: Quiet = False, json: Json = False) -> None:
    """Compare what offices do today with what is promised; what comes out is CONFIDENTIAL."""
    _check_out(call)
    made = call.with_progress("methods", shown=not (quiet or json))
    if json:
        output.say(output.as_json(made.to_dict()))
    elif not quiet:
        output.say(_methods_text(made))
        output.say(f"\nConfidential files written: {', '.join(map(str, made.files))}")


def _check_out(call: Call) -> None:
    """What is confidential goes to a folder that somebody has named."""
    if "out" not in call.given:
        raise InftdaError("give `out=`, a folder where confidential figures may be kept")


def _evaluation_text(comparison: Comparison, *, counted: str) -> str:
    """The main measures of every level, side by side; `counted` says what a row was taken for."""
    parts = [NOTICE, "", *_measures(comparison)]
    notes = [
        "*  over cells that are not zero in both tables",
        "** mean relative error of the 100 largest true flows",
        f"How the truth was counted: {counted}.",
    ]
    if comparison.estimate is not None:
        parts += ["", "The estimate that was made from it:", "", *_measures(comparison.estimate)]
    return "\n".join([*parts, "", *notes])


def _measures(comparison: Comparison) -> list[str]:
    """Levels, totals across the tree, and intervals."""
    head = ("level", "cells", "max error", "mean error*", "FDR", "FNR", "common part", "top 100**")
    rows = [
        (
            level.name,
            f"{level.n_cells:,}",
            f"{level.max_abs_error:,}",
            f"{level.mean_abs_error_nonzero:,.1f}",
            f"{level.false_discovery_rate:.1%}",
            f"{level.false_negative_rate:.1%}",
            f"{level.common_part:.4f}",
            f"{level.top_mean_relative_error:.2%}",
        )
        for level in comparison.levels
    ]
    return [*output.aligned(head, rows), *_totals(comparison), *_intervals(comparison)]


def _totals(comparison: Comparison) -> list[str]:
    """Totals of areas across the tree, if it has any."""
    head = (
        "total across the tree",
        "areas",
        "max error",
        "mean error",
        "bias of largest",
        "in interval",
    )
    rows = [
        (
            f"{total.axis} {total.level}",
            f"{total.n_areas:,}",
            f"{total.max_abs_error:,}",
            f"{total.mean_abs_error:,.1f}",
            f"{total.bias_of_largest:+.2%}",
            "not measured" if total.in_interval is None else f"{total.in_interval:.1%}",
        )
        for total in comparison.totals
    ]
    return ["", *output.aligned(head, rows)] if rows else []


def _intervals(comparison: Comparison) -> list[str]:
    """Coverage of the intervals, if there are any; it is stated as 95 %."""
    head = ("intervals (95 %)", "numbers", "in interval", "mean width", "lowest of any size")
    rows = []
    for name in dict.fromkeys(one.name for one in comparison.intervals):
        here = [one for one in comparison.intervals if one.name == name]
        every, lowest = overall(here), lowest_coverage(here)
        rows.append(
            (
                name,
                f"{every.n_numbers:,}",
                f"{every.in_interval:.1%}",
                f"{every.mean_width:,.1f}",
                f"fewer than {LEAST:,}"
                if lowest is None
                else f"{lowest.in_interval:.1%} of {lowest.smallest:,} to "
                + ("any" if lowest.largest is None else f"{lowest.largest:,}"),
            )
        )
    return ["", *output.aligned(head, rows)] if rows else []


def _methods_text(compared: MethodComparison) -> str:
    """Accuracy at every level, then disclosure, of every method."""
    labels = [one.label for one in compared.results]
    levels = [
        (name, *(f"{part:.4f}" for part in parts))
        for name, parts in compared.by_level("common_part")
    ]
    totals = [
        (name, *(f"{error:,.1f}" for error in errors)) for name, errors in compared.by_total()
    ]
    tables = output.aligned(("trips in the right place*", *labels), levels)
    if totals:
        tables += ["", *output.aligned(("mean error of totals of", *labels), totals)]
    head = ("at the finest level", "max error", "false", "lost", "exact cells", "persons seen")
    rows = []
    for one in compared.results:
        finest, found = one.levels[-1], one.attack
        rows.append(
            (
                one.label,
                f"{finest.max_abs_error:,}",
                f"{finest.false_discovery_rate:.1%}",
                f"{finest.false_negative_rate:.1%}",
                "-" if found is None else f"{found.exact_with_totals:,}",
                "-" if found is None else f"{found.n_reidentified:,}",
            )
        )
    tables += ["", *output.aligned(head, rows)]
    said = [f"{one.label}: {one.words}." for one in compared.results]
    seen = [f"{one.label}: {one.finding}." for one in compared.results if one.attack is not None]
    notes = [
        "* part of the trips, hidden cells counted as 0",
        "A person is taken to have one trip.",
        DISCLOSE,
    ]
    summary = [summary_sentence(compared), ""] if summary_sentence(compared) else []
    return "\n".join([NOTICE, "", *tables, "", *summary, *said, "", *seen, "", *notes])
