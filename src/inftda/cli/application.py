"""`inftda app`: the steps from a table to a verified release, in a browser."""

import os
from pathlib import Path
from typing import Annotated

from inftda.cli import output
from inftda.cli.command import command
from inftda.errors import InftdaError, MissingExtraError
from inftda.options import Option


@command()
def app(
    folder: Annotated[
        Path,
        Option(
            "Folder with the table and its areas; no file outside of it is used. By default the "
            "current one.",
            "FOLDER",
            Path,
            is_argument=True,
        ),
    ] = Path(),
    *,
    browser: Annotated[bool, Option("Open the browser.", spelling="--browser/--no-browser")] = True,
) -> None:
    """Work in a browser on this machine: from a table to a verified release."""
    try:
        from inftda.app.server import serve  # noqa: PLC0415 - optional libraries
    except ModuleNotFoundError:
        raise MissingExtraError(
            "`inftda app` needs Starlette and uvicorn: pip install 'inftda-od[app]'"
        ) from None
    if not folder.is_dir():
        raise InftdaError(f"there is no folder {str(folder)!r}; check the path")
    os.chdir(folder)

    def tell(address: str) -> None:
        output.say(f"Open        {address}")
        output.say("It is for you alone, and can be opened once. Ctrl-C ends the app.")

    said = serve(Path.cwd().resolve(), say=tell, browser=browser)
    output.say(f"Interrupted: {said}" if said else "The app has ended.", err=True)
