"""`inftda estimate`, `report`, `export`, `dossier` and `selftest`: what follows from a release."""

import json as json_text
from pathlib import Path
from typing import Annotated

import click

from inftda import estimates
from inftda.cli import output
from inftda.cli.command import Call, Json, Quiet, command
from inftda.dossiers import dossier as dossiers
from inftda.dossiers import registry
from inftda.editions.series import is_series, open_series
from inftda.errors import InftdaError
from inftda.exports import export as exports
from inftda.files import check_file
from inftda.options import Option
from inftda.pages import report as pages
from inftda.publication.release import open_release
from inftda.publication.trust import MADE_FROM_NOT_PRIVATE, describe_misfits
from inftda.selftest import self_test


@command(estimates.estimate)
def estimate(call: Call, *, quiet: Quiet = False) -> None:
    """Estimate all flows of a release: model-based, closer on average, not guaranteed."""
    if "out" not in call.given:
        raise InftdaError("give `out=`, the folder to write to")
    made = call()
    if quiet:
        return
    manifest = made.manifest
    distances = "areas, same area, distance" if manifest.model.locations else "areas, same area"
    output.say(f"Estimate:   {call.given['out']}")
    output.say(
        f"Flows:      {manifest.n_rows:,} of at least 1, {manifest.total:,} {manifest.counts}"
    )
    output.say(f"Model:      shares by {distances}; {len(manifest.model.levels)} levels")
    output.say("Use it for: patterns and sums of flows. It is model-based: not guaranteed, and")
    output.say("            not a list of existing flows; the guaranteed table, with intervals")
    output.say("            for totals that were measured, is the release.")
    instead = "take them from the measurements"
    if words := describe_misfits(made.known_fits or (), instead):
        output.say(f"Careful:    {words}")
    if not manifest.private:
        output.say(MADE_FROM_NOT_PRIVATE, err=True)


@command(pages.report)
def report(call: Call, *, quiet: Quiet = False) -> None:
    """Write a page with the guarantee, the errors to expect, and the flows to explore."""
    page = call()
    if quiet:
        return
    output.say(f"Page:       {page} ({page.stat().st_size / 1e6:.1f} MB, needs no network)")
    folder = call.given["release"]
    made = open_series(folder).editions.values() if is_series(folder) else [open_release(folder)]
    if not all(release.manifest.private for release in made):
        output.say(MADE_FROM_NOT_PRIVATE, err=True)


@command(exports.export)
def export(call: Call, *, quiet: Quiet = False) -> None:
    """Write files for spreadsheets, maps, GIS, transport models or R."""
    folder = call()
    for path in [] if quiet else sorted(folder.iterdir()):
        output.say(output.printable(f"Written:    {path}"))


@command(dossiers.dossier)
def dossier(
    call: Call,
    *,
    template: Annotated[bool, Option("Write a file to fill in, and nothing else.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write a registry entry and a summary for reviewers."""
    if template:
        if {"release", "about"} & call.given.keys():
            raise InftdaError("--template does not read a release; leave out RELEASE and --about")
        out = Path(call.given["out"]) if "out" in call.given else None
        if out is not None:
            check_file(out, force=bool(call.given.get("force")))
        output.give(registry.template(), out)
        return
    folder = call()
    for name in [] if quiet else dossiers.FILES:
        output.say(output.printable(f"Written:    {folder / name}"))


@command()
def selftest(*, json: Json = False) -> None:
    """Check samplers, optimiser and accountants of the installed build, in seconds."""
    results = list(self_test())
    if json:
        output.say(json_text.dumps([result._asdict() for result in results]))
    else:
        for result in results:
            verdict = "ok    " if result.ok else "FAILED"
            output.say(f"{verdict}  {result.name}: {result.detail}")
    if not all(result.ok for result in results):
        output.say("This build must not be used for releases.", err=True)
        raise click.exceptions.Exit(1)
    if not json:
        output.say("All checks passed: this build draws, optimises and accounts as it says.")
