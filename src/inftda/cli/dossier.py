"""`inftda dossier`: what an office hands to those who review a release or list it."""

from pathlib import Path
from typing import Annotated

import typer

from inftda.cli import options, output
from inftda.errors import InftdaError
from inftda.screen import Meter


def command(  # noqa: PLR0913 - one option for each thing an office may decide
    folder: Annotated[
        Path | None, typer.Argument(metavar="RELEASE", help="Folder of a release.")
    ] = None,
    *,
    about: Annotated[
        Path | None, typer.Option(help="What only you know about it, as TOML; see --template.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write; with --template, the file.")
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="Write a file to fill in, and nothing else.")
    ] = False,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger it was charged to; goes with --dataset.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Its data set in the ledger.")] = None,
    selftest: Annotated[
        bool, typer.Option("--selftest/--no-selftest", help="Check this build as well.")
    ] = True,
    runs: Annotated[int, typer.Option(min=1, help="Simulations for typical errors, at most.")] = 20,
    seconds: Annotated[float, typer.Option(min=0.0, help="Time for these simulations.")] = 20.0,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a dossier that is there.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a registry entry and a summary for reviewers."""
    if template:
        _write_template(folder, about, out, force=force)
        return
    if folder is None or about is None or out is None:
        raise InftdaError(
            "give a RELEASE, --about FILE and --out FOLDER; --template writes a FILE to fill in"
        )
    from inftda.dossiers.dossier import FILES, dossier  # noqa: PLC0415 - help must be instant

    with Meter("%", shown=not quiet) as progress:
        dossier(
            folder,
            about=about,
            out=out,
            ledger=ledger,
            dataset=dataset,
            selftest=selftest,
            runs=runs,
            seconds=seconds,
            force=force,
            progress=progress,
        )
    if not quiet:
        for name in FILES:
            output.say(output.printable(f"Written:    {out / name}"))


def _write_template(
    folder: Path | None, about: Path | None, out: Path | None, *, force: bool
) -> None:
    from inftda.dossiers.registry import template  # noqa: PLC0415 - help must be instant

    if folder is not None or about is not None:
        raise InftdaError("--template does not read a release; leave out RELEASE and --about")
    output.check_out(out, force=force)
    output.give(template(), out)
