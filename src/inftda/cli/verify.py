"""`inftda verify`: check a release without trusting who made it."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE", help="Folder of a release.")],
) -> None:
    """Recompute the guarantee from the manifest and check the published table."""
    from inftda.publication.verify import verify  # noqa: PLC0415 - help must be instant

    for line in verify(folder):
        typer.echo(f"ok  {line}")
    typer.echo(f"{folder} is what it says it is.")
