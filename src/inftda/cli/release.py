"""`inftda release`, and what it is tried out with: `inftda demo`, `inftda make country`."""

import json as json_text
import os
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import click
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda import publish
from inftda.cli import output
from inftda.cli.command import Call, Json, Quiet, command
from inftda.demo import Country, make_country
from inftda.errors import InftdaError
from inftda.files import bring_back, check_folder, check_unpublished, whole_file
from inftda.inference.agreement import fit_table
from inftda.options import Option, whole_numbers
from inftda.publication.folder import check_release
from inftda.publication.release import Release
from inftda.publication.trust import (
    NOT_PRIVATE_LINE,
    counting_note,
    describe_cross_totals,
    misfit_warnings,
    misfits,
    outside_warnings,
    use_notes,
    warnings,
)
from inftda.screen import Meter
from inftda.stores import is_remote

TIMES = " \N{MULTIPLICATION SIGN} "
FLOWS, AREAS, _RELEASE = "flows.parquet", "areas.csv", "release"


@command(publish.release)
def release(call: Call, *, quiet: Quiet = False, json: Json = False) -> None:
    """Publish a confidential table under differential privacy."""
    if call.given.get("flows") is None:
        raise InftdaError("give FLOWS, the table to release, or both `sql=` and `database=`")
    if "out" not in call.given:
        raise InftdaError("give `out=`, the folder to write to")
    out, said = call.given["out"], list[str]()
    out = out if is_remote(out) else Path(out)
    with _telling_what_is_published(Path(out)):
        made = call.with_progress("draws", shown=not (quiet or json), on_message=said.append)
        # What a row was taken for, and what looks like a slip.
        counted, *slips = said or [""]
        if not quiet:
            for words in slips:
                output.say(f"Careful:    {words}", err=True)
        if json:
            wrong = fit_table(misfits(made)).to_pylist()
            uses = [use.to_dict() for use in made.uses]
            facts = {"out": str(out), **made.manifest.to_dict(), "uses": uses, "misfits": wrong}
            output.say(json_text.dumps(facts))
        elif not quiet:
            output.say(summary(made, out, counted=counted))


@command()
def demo(
    out: Annotated[Path, Option("Folder for the demo's files; nobody else's are replaced.")] = Path(
        "demo-output"
    ),
) -> None:
    """Make a small country, release its trips, look at the result."""
    country, out = make_country(), Path(out)
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
    with _telling_what_is_published(folder):
        with Meter("draws", shown=True) as progress:
            made = publish.release(
                flows, areas, epsilon=1, delta=1e-8, out=folder, force=True, progress=progress
            )
        output.say(summary(made, folder))
        output.say(f"            ({time.perf_counter() - started:.1f} s)\n")
        output.say(
            f"$ inftda query {typed[2]} --origin-level region --destination-level region --top 5"
        )
        output.say(output.as_text(made.flows("region", "region", top=5)).rstrip("\n"))


@command()
def country(
    *,
    out: Annotated[Path, Option(f"Folder for {FLOWS} and {AREAS}, which are not replaced.")],
    sizes: Annotated[
        Sequence[int], Option("Numbers of areas, coarse to fine.", "N,N,...", whole_numbers)
    ] = (5, 25, 300),
    trips: Annotated[int, Option("Number of trips.")] = 250_000,
    seed: Annotated[int, Option("Same seed, same data.")] = 1,
    quiet: Quiet = False,
) -> None:
    """A made-up country: its areas, and trips between them that nobody made."""
    out = Path(out)
    _check_folder(out)
    for path in (out / FLOWS, out / AREAS):
        if os.path.lexists(path):
            raise InftdaError(
                f"{str(path)!r} exists already; it is not replaced, give another `out=` or move it"
            )
    with Meter("trips", shown=not quiet) as progress:
        made = make_country(sizes, trips, seed=seed, progress=progress)
    _write(_files(made), out)
    if quiet:
        return
    flows, areas = (shlex.quote(str(out / name)) for name in (FLOWS, AREAS))
    output.say(f"Made:  {len(made.count):,} flows, {int(made.count.sum()):,} trips in all")
    output.say(f"Areas: {made.areas!r}")
    output.say(
        f"Next:  inftda release {flows} --areas {areas} --epsilon 1 --delta 1e-8 --out RELEASE"
    )


@contextmanager
def _telling_what_is_published(out: Path) -> Iterator[None]:
    """What goes wrong when the release is in place must not be taken for a failed release.

    Args:
        out: folder of the release that is made meanwhile.
    """
    bring_back(out)
    before = {_identity(out), None}
    try:
        yield
    except InftdaError:  # it says what was wrong, before there was anything to publish
        raise
    except (KeyboardInterrupt, Exception) as problem:
        if _identity(out) in before:
            raise
        what = "interrupted" if isinstance(problem, KeyboardInterrupt) else type(problem).__name__
        output.say(
            f"error: {what} when the release in {str(out)!r} was complete and in place", err=True
        )
        raise click.exceptions.Exit(1) from None


def _identity(folder: Path) -> tuple[int, int] | None:
    """Identifies a folder, so that another put in its place is noticed; None if it is not there."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def summary(release: Release, out: str | Path, *, counted: str = "") -> str:
    """What was done, in plain words; `counted` says what a row was taken for."""
    tree = release.tree
    finest = [
        f"{axis.hierarchy.n_areas(axis.hierarchy.depth):,} "
        f"{axis.hierarchy.level_name(axis.hierarchy.depth)}"
        for axis in tree.axes
    ]
    n_flows = release.manifest.n_flows
    if tree.is_od:
        # Both ends are often the same areas, which are then named once.
        areas = " and ".join(dict.fromkeys(finest))
        what = f"{'flow' if n_flows == 1 else 'flows'} between {areas} areas"
    else:
        what = f"{'cell' if n_flows == 1 else 'cells'} of {TIMES.join(finest)}"
    lines = [
        f"Released:   {n_flows:,} {what}, {release.total:,} {release.manifest.counted.what} in all",
        *([f"Edition:    {edition}"] if (edition := release.manifest.edition) else []),
        *([f"Counted:    {counted}"] if counted else []),
        *([f"Note:       {words}"] if (words := counting_note(release)) else []),
        *_promise(release),
        *(f"Use:        {words}" for words in use_notes(release)),
        *(f"Careful:    {words}" for words in outside_warnings(release)),
        *(f"Careful:    {words}" for words in misfit_warnings(release)),
        f"Files:      {out}",
        f"Next:       inftda verify {shlex.quote(str(out))}",
    ]
    return "\n".join(lines)


def _promise(release: Release) -> list[str]:
    if not release.manifest.private:
        return [f"{NOT_PRIVATE_LINE}."]
    plan = release.manifest.plan
    lines = [
        f"Protected:  {release.manifest.protected}",
        f"Guarantee:  {plan.describe()}",
        f"Noise:      {plan.describe_noise()}",
    ]
    if across := describe_cross_totals(release.tree, plan):
        lines.append(f"Across:     {across}")
    careful = warnings(plan, total=release.total)
    return [*lines, *(f"Careful:    {words}" for words in careful)]


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


def _files(made: Country) -> dict[str, bytes]:
    """Name to content of what is written for a country."""
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
