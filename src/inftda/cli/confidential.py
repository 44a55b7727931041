"""`inftda evaluate` and `inftda compare`, whose output is CONFIDENTIAL."""

from inftda.cli import output
from inftda.cli.command import Call, command
from inftda.confidential import compare as methods
from inftda.confidential import evaluate as evaluation
from inftda.errors import InftdaError
from inftda.options import Json, Quiet
from inftda.planning.accuracy import NOTICE


@command(evaluation.evaluate)
def evaluate(call: Call, *, quiet: Quiet = False, json: Json = False) -> None:
    """Compare a release with the true counts. The output is CONFIDENTIAL."""
    _compare(call, "levels", quiet=quiet, json=json)


@command(methods.compare)
def compare(call: Call, *, quiet: Quiet = False, json: Json = False) -> None:
    """Compare with other disclosure-control methods. The output is CONFIDENTIAL."""
    _compare(call, "methods", quiet=quiet, json=json)


def _compare(call: Call, unit: str, *, quiet: bool, json: bool) -> None:
    """Make a comparison, whose files go to a folder that must be named, and show it."""
    if "out" not in call.given:
        raise InftdaError("give `out=`, a folder where confidential figures may be kept")
    said: list[str] = []
    made = call.with_progress(unit, quiet=quiet, json=json, on_message=said.append)
    parts = [
        NOTICE,
        "",
        *made.shown(),
        ("Counted", "; ".join(said)),
        "",
        f"Confidential files written: {', '.join(map(str, made.files))}",
    ]
    output.result(made, parts, quiet=quiet, json=json)
