"""`inftda experiment`: mechanisms x epsilons x repetitions x data sets."""

from pathlib import Path
from typing import Annotated

import typer

from inftda.cli import options, output

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("experiment")
def command(
    spec: Annotated[Path, typer.Argument(help="What to run: a TOML file.")],
    out: Annotated[
        Path, typer.Option(help="Folder for results, not in a release; goes on where it was.")
    ],
    *,
    published: Annotated[
        Path | None, typer.Option(help="CSV of published figures to put beside ours.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Run an experiment and write tidy results, figures and a Markdown summary.

    Results of tables read from files are CONFIDENTIAL unless the spec says they are public.
    """
    from inftda.bars import Meter  # noqa: PLC0415 - help must be instant
    from inftda.evaluation.evaluate import NOTICE  # noqa: PLC0415
    from inftda.lab.experiments.figures import draw_figures  # noqa: PLC0415
    from inftda.lab.experiments.runner import run_experiment  # noqa: PLC0415
    from inftda.lab.experiments.spec import Spec  # noqa: PLC0415
    from inftda.lab.experiments.summary import read_published, write_summary  # noqa: PLC0415

    wanted = Spec.read(spec)
    if published is not None:
        read_published(published)  # fail before hours of work
    with Meter("cells", shown=not quiet) as progress:
        results = run_experiment(wanted, out, progress=progress)
    figures: list[Path] = []
    for setting in wanted.settings:
        figures += draw_figures(results, out / "figures", setting=setting)
    write_summary(
        results,
        wanted,
        out / "summary.md",
        published=published,
        figures=[figure.relative_to(out) for figure in figures],
    )
    if quiet:
        return
    if wanted.confidential:
        output.say(f"{NOTICE}: {', '.join(wanted.confidential)}")
    output.say(f"Results:  {out / 'results.parquet'}")
    output.say(f"Summary:  {out / 'summary.md'}")
    output.say(f"Figures:  {out / 'figures'}")
