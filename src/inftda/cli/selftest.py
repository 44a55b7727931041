"""`inftda selftest`: does this installation do what it says?"""

from typing import TYPE_CHECKING, Annotated

import typer

from inftda.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inftda.checks import Check


def command(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check samplers, optimiser and accountants of the installed build, in seconds."""
    import json  # noqa: PLC0415 - help must be instant

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


def self_test() -> "Iterator[Check]":
    """Check samplers, optimiser and accountants with fresh random bits.

    Together the statistical checks raise a false alarm less than once in a million runs.
    """
    from inftda.noise.selfcheck import self_check_samplers  # noqa: PLC0415 - compiled kernels
    from inftda.optimize.selfcheck import self_check_optimizer  # noqa: PLC0415
    from inftda.privacy.selfcheck import self_check_accounting  # noqa: PLC0415

    for check in (self_check_samplers, self_check_optimizer, self_check_accounting):
        yield from check()
