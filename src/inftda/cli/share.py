"""`inftda estimate`, `report`, `export`, `dossier` and `selftest`: after a release."""

import click

from inftda.cli import output
from inftda.cli.command import Call, command
from inftda.documents import dossier as dossiers
from inftda.errors import InftdaError
from inftda.estimates import estimate as estimates
from inftda.exports import export as exports
from inftda.options import Json, Quiet
from inftda.pages import report as pages
from inftda.publication.release import open_release
from inftda.publication.reliability import MADE_FROM_NOT_PRIVATE, counting_note, describe_misfits
from inftda.selftest import self_test
from inftda.series.series import is_series, open_series
from inftda.util.screen import printable

_GUARANTEE = "that of the release; an estimate uses no budget"


@command(estimates.estimate)
def estimate(call: Call, *, quiet: Quiet = False) -> None:
    """Make model-based estimates of all flows: closer on average, without a guarantee."""
    if "out" not in call.given:
        raise InftdaError("give `out=`, the folder to write to")
    made = call()
    if quiet:
        return
    manifest = made.manifest
    distances = "areas, same area, distance" if manifest.model.locations else "areas, same area"
    release = open_release(call.given["release"])
    note = counting_note(release)
    wrong = describe_misfits(made.fits(release), "take them from the measurements")
    flows = f"{manifest.n_rows:,} of at least 1, {manifest.total:,} {manifest.counts}"
    output.show([
        ("Estimate", str(call.given["out"])),
        ("Flows", flows),
        *([("Note", note)] if note else []),
        ("Model", f"shares by {distances}; {len(manifest.model.levels)} levels"),
        *([("Guarantee", _GUARANTEE)] if manifest.private else []),
        ("Use it for", "patterns and sums of flows"),
        ("Note", "model-based: errors are not guaranteed, and a listed flow need not exist"),
        *([("Warning", wrong)] if wrong else []),
    ])  # fmt: skip
    if not manifest.private:
        output.say(MADE_FROM_NOT_PRIVATE, err=True)


@command(pages.report)
def report(call: Call, *, quiet: Quiet = False) -> None:
    """Write a page for readers: guarantee, errors to expect, and flows to explore."""
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
        output.say(printable(f"Written:    {path}"))


@command(dossiers.dossier)
def dossier(call: Call, *, quiet: Quiet = False) -> None:
    """Write a registry entry and a summary for reviewers."""
    folder = call()
    for name in [] if quiet else dossiers.FILES:
        output.say(printable(f"Written:    {folder / name}"))


@command()
def selftest(*, json: Json = False) -> None:
    """Check samplers, optimiser and accountants of the installed build, in seconds."""
    results = list(self_test())
    if json:
        output.show_json([result._asdict() for result in results])
    else:
        for result in results:
            verdict = "ok    " if result.ok else "FAILED"
            output.say(f"{verdict}  {result.name}: {result.detail}")
    if not all(result.ok for result in results):
        output.say("Do not use this build for releases.", err=True)
        raise click.exceptions.Exit(1)
    if not json:
        output.say("All checks passed: samplers, optimiser and accountants work as documented.")
