"""`inftda verify`: check a release without trusting who made it."""

from pathlib import Path
from typing import Annotated

import typer

from inftda.cli import output


def command(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE", help="Folder of a release.")],
    *,
    key: Annotated[
        Path | None,
        typer.Option(metavar="PUBLIC.pem", help="Public key that it must be signed with."),
    ] = None,
) -> None:
    """Recompute the guarantee from the manifest and check the published table."""
    from inftda.publication.release import open_release  # noqa: PLC0415
    from inftda.publication.trust import counting_note, warnings  # noqa: PLC0415 - instant help
    from inftda.publication.verify import verify  # noqa: PLC0415

    for line in verify(folder, key=key):
        output.say(f"ok  {output.printable(line)}")  # one line each
    release = open_release(folder)
    if words := counting_note(release):
        output.say(f"Note: {words}. Guarantees are about what was counted.")
    for words in warnings(release.manifest.plan, total=release.total):
        output.say(f"Careful: {words}")
    output.say(output.printable(f"{folder} is what it says it is."))  # one line, too
