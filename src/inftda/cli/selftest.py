"""`inftda selftest`: does this installation do what it says?"""

from typing import Annotated

import typer


def command(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check samplers, optimiser and accountants of the installed build, in seconds."""
    import json  # noqa: PLC0415 - help must be instant

    from inftda.selftest import self_test  # noqa: PLC0415

    results = list(self_test())
    if as_json:
        typer.echo(json.dumps([result._asdict() for result in results]))
    else:
        for result in results:
            verdict = "ok    " if result.ok else "FAILED"
            typer.echo(f"{verdict}  {result.name}: {result.detail}")
    if not all(result.ok for result in results):
        typer.echo("This build must not be used for releases.", err=True)
        raise typer.Exit(1)
    if not as_json:
        typer.echo("All checks passed: this build draws, optimises and accounts as it says.")
