"""`inftda demo`: the whole job on a made-up country."""

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inftda.cli import output
from inftda.cli.publishing import publishing, telling_what_is_published
from inftda.errors import InftdaError
from inftda.lab.cli.make import AREAS, FLOWS, check_folder, write_country

if TYPE_CHECKING:
    from inftda.lab.generators.country import Country

_RELEASE = "release"

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("demo")
@publishing
def command(
    out: Annotated[
        Path, typer.Option(help="Folder for the demo's files; nobody else's are replaced.")
    ] = Path("demo-output"),
) -> None:
    """Make a small country, release its trips, look at the result."""
    from inftda.bars import LevelProgress  # noqa: PLC0415 - help must be instant
    from inftda.cli.query import as_text  # noqa: PLC0415
    from inftda.cli.release import summary  # noqa: PLC0415
    from inftda.lab.generators.country import make_country  # noqa: PLC0415
    from inftda.publish import release  # noqa: PLC0415

    check_folder(out)
    country = make_country()
    _check_own(country, out)
    write_country(country, out)
    flows, areas, folder = out / FLOWS, out / AREAS, out / _RELEASE
    output.say(f"A made-up country: {country.areas!r}")
    output.say(f"Its confidential trips are in {flows}, its public areas in {areas}.\n")
    typed = [shlex.quote(str(path)) for path in (flows, areas, folder)]
    output.say(
        f"$ inftda release {typed[0]} --areas {typed[1]} --epsilon 1 --delta 1e-8 "
        f"--out {typed[2]} --force"
    )
    started = time.perf_counter()
    with telling_what_is_published(folder):
        with LevelProgress(shown=True) as progress:
            made = release(
                flows, areas, epsilon=1, delta=1e-8, out=folder, force=True, progress=progress
            )
        output.say(summary(made, folder))
        output.say(f"            ({time.perf_counter() - started:.1f} s)\n")
        output.say(
            f"$ inftda query {typed[2]} --origin-level region --destination-level region --top 5"
        )
        top = made.flows("region", "region").sort_by([("flow", "descending")]).slice(0, 5)
        output.say(as_text(top).rstrip("\n"))


def _check_own(country: "Country", out: Path) -> None:
    """Refuse files that an earlier demo did not make: they are recognised by their content."""
    from inftda.files import check_folder as check_release_folder  # noqa: PLC0415 - as above
    from inftda.publication.folder import check_release  # noqa: PLC0415 - help must be instant

    if out.exists():
        check_release_folder(out / _RELEASE, check=check_release, force=True)
    for name, is_own in {FLOWS: _has_flows, AREAS: _has_areas, _RELEASE: _is_release_of}.items():
        path = out / name
        if os.path.lexists(path) and not is_own(path, country):
            raise InftdaError(
                f"{str(path)!r} is not what the demo makes; it is not replaced, give another --out"
            )


def _has_flows(path: Path, country: "Country") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - help must be instant
    import pyarrow.parquet as pq  # noqa: PLC0415

    made = country.flows()
    plain = pa.schema({"origin": pa.string(), "destination": pa.string(), "count": pa.int64()})
    try:
        if pq.read_metadata(path).num_rows != made.num_rows:  # before all of it is read
            return False
        return bool(pq.read_table(path).cast(plain).equals(made.cast(plain)))
    except (OSError, ValueError, pa.ArrowException):
        return False


def _has_areas(path: Path, country: "Country") -> bool:
    from inftda.hierarchy import Hierarchy  # noqa: PLC0415 - help must be instant

    try:
        return Hierarchy.read(path).fingerprint == country.areas.fingerprint
    except InftdaError:
        return False


def _is_release_of(path: Path, country: "Country") -> bool:
    """Whether it is a release between the made-up areas; an empty folder will do."""
    from inftda.files import MANIFEST_FILE  # noqa: PLC0415 - help must be instant
    from inftda.publication.manifest import Manifest  # noqa: PLC0415

    if path.is_dir() and not any(path.iterdir()):
        return True
    try:
        axes = Manifest.read(path / MANIFEST_FILE).axes
    except InftdaError:
        return False
    return {axis.fingerprint for axis in axes} == {country.areas.fingerprint}
