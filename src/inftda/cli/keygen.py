"""`inftda keygen`: keys to sign releases with."""

from pathlib import Path
from typing import Annotated

import typer

from inftda.cli import output


def command(
    key: Annotated[
        Path, typer.Argument(metavar="KEY.pem", help="File to write the private key to.")
    ],
) -> None:
    """Make a key to sign releases with, and the public key to check them."""
    from inftda.publication.signature import make_keys  # noqa: PLC0415 - help must be instant

    public = make_keys(key)
    output.say(output.printable(f"Private:    {key} (keep it to yourself; inftda release --sign)"))
    output.say(output.printable(f"Public:     {public} (for everybody; inftda verify --key)"))
