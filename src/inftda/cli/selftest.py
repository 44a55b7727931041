"""`inftda selftest`: does this installation do what it says?"""

from typing import Annotated

import typer

from inftda.cli import output


def command(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check samplers, optimiser and accountants of the installed build, in seconds."""
    import json  # noqa: PLC0415 - help must be instant

    from inftda.selftest import self_test  # noqa: PLC0415

    results = list(self_test())
    if as_json:
        output.say(json.dumps([result._asdict() for result in results]))
    else:
        for result in results:
            verdict = "ok    " if result.ok else "FAILED"
            output.say(f"{verdict}  {result.name}: {result.detail}")
    if not all(result.ok for result in results):
        output.say("This build must not be used for releases.", err=True)
        raise typer.Exit(1)
    if not as_json:
        output.say("All checks passed: this build draws, optimises and accounts as it says.")
