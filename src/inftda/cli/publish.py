"""`inftda release`, `app` and `demo`: from a table to a release."""

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import click
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda import pipeline as publish
from inftda.cli import output
from inftda.cli.command import Call, announced_compilation, command
from inftda.demo import Country, make_country
from inftda.errors import InftdaError, MissingExtraError
from inftda.options import Json, Option, Quiet, whole_numbers
from inftda.privacy.budget import Cost, charged_words
from inftda.publication.agreement import fit_table
from inftda.publication.folder import check_release
from inftda.publication.release import Release
from inftda.publication.reliability import misfits
from inftda.publication.summary import release_summary
from inftda.util.files import check_folder, whole_file
from inftda.util.screen import metered, printable
from inftda.util.stores import is_remote, placed_words

_DemoFolder = Annotated[Path, Option("Folder to write: table, areas and release.", "FOLDER", Path)]
#: Files of a demo.
FLOWS, AREAS, RELEASE = "flows.parquet", "areas.csv", "release"


@command(publish.release)
def release(call: Call, *, quiet: Quiet = False, json: Json = False) -> None:
    """Publish a confidential table under differential privacy."""
    if call.given.get("flows") is None:
        raise InftdaError("give FLOWS, the table to release, or both `sql=` and `database=`")
    if "out" not in call.given:
        raise InftdaError("give `out=`, the folder to write to")
    out, said = call.given["out"], list[str]()
    out = out if is_remote(out) else Path(out)
    made = call.with_progress("draws", quiet=quiet, json=json, on_message=said.append)
    with _telling_what_is_published(out, made, call.given.get("dataset")):
        # How rows were read, and probable mistakes.
        counted, *slips = said or [""]
        if not quiet:
            for words in slips:
                output.say(f"Warning:    {words}", err=True)
        if json:
            wrong = fit_table(misfits(made)).to_pylist()
            uses = [use.to_dict() for use in made.uses]
            facts = {"out": str(out), **made.manifest.to_dict(), "uses": uses, "misfits": wrong}
            output.show_json(facts)
        elif not quiet:
            output.show(release_summary(made, out, counted=counted))


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


@command()
def demo(  # noqa: PLR0913 - one keyword for each property of the country
    out: _DemoFolder = Path("demo-output"),
    *,
    sizes: Annotated[
        Sequence[int], Option("Numbers of areas, coarse to fine.", "N,N,...", whole_numbers)
    ] = (5, 25, 300),
    trips: Annotated[int, Option("Number of trips.")] = 250_000,
    seed: Annotated[int, Option("Same seed, same table; the noise differs.")] = 1,
    force: Annotated[bool, Option("Replace the files of an earlier demo.")] = False,
    quiet: Quiet = False,
) -> None:
    """Make up a table and its areas, release it, and look at the result."""
    check_folder(out, check=_check_demo, force=force)
    with metered("trips", shown=not quiet) as progress:
        country = make_country(sizes, trips, seed=seed, progress=progress)
    flows, areas, folder = out / FLOWS, out / AREAS, out / RELEASE
    _write(country, out)
    typed = [shlex.quote(str(path)) for path in (flows, areas, folder)]
    if not quiet:
        levels = zip(sizes, country.areas.level_names, strict=True)
        by_level = ", ".join(f"{name} {n:,}" for n, name in levels)
        output.say(f"A made-up country of {trips:,} trips; areas by level: {by_level}")
        output.say(f"Its confidential trips are in {flows}, its public areas in {areas}.\n")
        output.say(
            f"$ inftda release {typed[0]} --areas {typed[1]} --epsilon 1 --delta 1e-8 "
            f"--out {typed[2]} --force"
        )
    with announced_compilation(shown=not quiet), metered("draws", shown=not quiet) as progress:
        made = publish.release(
            flows, areas, epsilon=1, delta=1e-8, out=folder, force=force, progress=progress
        )
    if quiet:
        return
    with _telling_what_is_published(folder, made):
        output.show(release_summary(made, folder))
        output.say(
            f"\n$ inftda query {typed[2]} --origin-level region --destination-level region --top 5"
        )
        output.say(output.as_text(made.flows("region", "region", top=5)).rstrip("\n"))


@contextmanager
def _telling_what_is_published(
    out: str | Path, made: Release, dataset: str | None = None
) -> Iterator[None]:
    """Report that the release, and its charge, is in place if printing its summary fails."""
    try:
        yield
    except (KeyboardInterrupt, Exception) as problem:  # noqa: BLE001 - whatever it is
        what = "interrupted" if isinstance(problem, KeyboardInterrupt) else type(problem).__name__
        words = f"{what}; {placed_words(out)}"
        if dataset is not None:
            words += f"; {charged_words(dataset, Cost.of(made.manifest.plan))}"
        output.say(f"error: {printable(words)}", err=True)
        raise click.exceptions.Exit(1) from None


def _check_demo(out: Path) -> None:
    """Refuse to replace a folder that is not of an earlier demo.

    Raises:
        InftdaError: something else lies in it.
    """
    others = sorted({path.name for path in out.iterdir()} - {FLOWS, AREAS, RELEASE})
    if others:
        raise InftdaError(
            f"{str(out)!r} is not replaced: {others[0]!r} in it is not part of a demo; give "
            "another `out=`"
        )
    if (out / RELEASE).exists():
        check_release(out / RELEASE)


def _write(made: Country, out: Path) -> None:
    """Write table and areas, both or none."""
    out.mkdir(exist_ok=True)
    with whole_file(out / FLOWS) as flows, whole_file(out / AREAS) as areas:
        pq.write_table(made.flows(), flows, compression="zstd")
        pa_csv.write_csv(made.areas.to_table(), areas)
