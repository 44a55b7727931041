"""`inftda demo` and `inftda make country`: the whole job, and a table to try things out with."""

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inftda.cli import options, output
from inftda.cli.publishing import publishing, telling_what_is_published
from inftda.errors import InftdaError
from inftda.files import check_folder, check_unpublished, whole_file
from inftda.screen import Meter

if TYPE_CHECKING:
    from inftda.demo import Country

FLOWS, AREAS, _RELEASE = "flows.parquet", "areas.csv", "release"

make = typer.Typer(
    help="Make a table to try things out with.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@publishing
def command(
    out: Annotated[
        Path, typer.Option(help="Folder for the demo's files; nobody else's are replaced.")
    ] = Path("demo-output"),
) -> None:
    """Make a small country, release its trips, look at the result."""
    from inftda.cli.query import as_text  # noqa: PLC0415 - help must be instant
    from inftda.cli.release import summary  # noqa: PLC0415
    from inftda.demo import make_country  # noqa: PLC0415
    from inftda.publish import release  # noqa: PLC0415

    country = make_country()
    files = _files(country)
    _check_own(files, out)
    _write(files, out)
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
        with Meter("draws", shown=True) as progress:
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


@make.callback()
def _group() -> None:
    """Make a table to try things out with."""


@make.command("country")
def country_command(
    *,
    out: Annotated[
        Path, typer.Option(help=f"Folder for {FLOWS} and {AREAS}, which are not replaced.")
    ],
    sizes: Annotated[
        str, typer.Option(metavar="N,N,...", help="Number of areas of each level, coarse to fine.")
    ] = "5,25,300",
    trips: Annotated[int, typer.Option(help="Number of trips.")] = 250_000,
    seed: Annotated[int, typer.Option(help="Same seed, same data.")] = 1,
    quiet: options.Quiet = False,
) -> None:
    """A made-up country: its areas, and trips between them that nobody made."""
    from inftda.demo import make_country  # noqa: PLC0415 - help must be instant

    _check_folder(out)
    for path in (out / FLOWS, out / AREAS):
        if os.path.lexists(path):
            raise InftdaError(
                f"{str(path)!r} exists already; it is not replaced, give another --out or move it"
            )
    with Meter("trips", shown=not quiet) as progress:
        numbers = options.whole_numbers("--sizes", sizes)
        made = make_country(numbers, trips, seed=seed, progress=progress)
    _write(_files(made), out)
    if quiet:
        return
    flows, areas = (shlex.quote(str(out / name)) for name in (FLOWS, AREAS))
    output.say(f"Made:  {len(made.count):,} flows, {int(made.count.sum()):,} trips in all")
    output.say(f"Areas: {made.areas!r}")
    output.say(
        f"Next:  inftda release {flows} --areas {areas} --epsilon 1 --delta 1e-8 --out RELEASE"
    )


def _check_folder(out: Path) -> None:
    """Refuse a folder that cannot be written to or is a release.

    Raises:
        InftdaError: give another one.
    """
    if out.exists() and not out.is_dir():
        raise InftdaError(f"{str(out)!r} is not a folder; give another --out")
    check_unpublished(out)


def _check_own(files: dict[str, bytes], out: Path) -> None:
    """Refuse to replace anything that an earlier demo did not write.

    Raises:
        InftdaError: give another folder.
    """
    from inftda.publication.folder import check_release  # noqa: PLC0415 - help must be instant

    _check_folder(out)
    if out.exists():
        check_folder(out / _RELEASE, check=check_release, force=True)
    is_own = {name: _holds(out / name, content) for name, content in files.items()}
    for name in (*files, _RELEASE):
        path = out / name
        if os.path.lexists(path) and not is_own.get(name, any(is_own.values())):
            raise InftdaError(
                f"{str(path)!r} is not what the demo makes; it is not replaced, give another --out"
            )


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes() == content


def _files(made: "Country") -> dict[str, bytes]:
    """Name to content of what is written for a country."""
    import pyarrow as pa  # noqa: PLC0415 - help must be instant
    import pyarrow.csv as pa_csv  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    flows, areas = pa.BufferOutputStream(), pa.BufferOutputStream()
    pq.write_table(made.flows(), flows, compression="zstd")
    pa_csv.write_csv(made.areas.to_table(), areas)
    return {FLOWS: flows.getvalue().to_pybytes(), AREAS: areas.getvalue().to_pybytes()}


def _write(files: dict[str, bytes], out: Path) -> None:
    """Write both files or none."""
    out.mkdir(parents=True, exist_ok=True)
    with whole_file(out / FLOWS) as flows, whole_file(out / AREAS) as areas:
        flows.write_bytes(files[FLOWS])
        areas.write_bytes(files[AREAS])
