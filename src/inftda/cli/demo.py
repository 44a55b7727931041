"""`inftda demo`: the whole job on a made-up country."""

import time
from pathlib import Path
from typing import Annotated

import typer


def command(
    out: Annotated[Path, typer.Option(help="Folder for the demo's files.")] = Path("demo-output"),
) -> None:
    """Make a small country, release its trips, look at the result."""
    import pyarrow.csv as pa_csv  # noqa: PLC0415 - help must be instant
    import pyarrow.parquet as pq  # noqa: PLC0415

    from inftda.cli.progress import LevelProgress  # noqa: PLC0415
    from inftda.cli.query import as_text  # noqa: PLC0415
    from inftda.cli.release import summary  # noqa: PLC0415
    from inftda.experiments.country import make_country  # noqa: PLC0415
    from inftda.publish import release  # noqa: PLC0415

    out.mkdir(parents=True, exist_ok=True)
    country = make_country()
    flows, areas = out / "flows.parquet", out / "areas.csv"
    pq.write_table(country.flows(), flows)
    pa_csv.write_csv(country.areas.to_table(), areas)
    typer.echo(f"A made-up country: {country.areas!r}")
    typer.echo(f"Its confidential trips are in {flows}, its public areas in {areas}.\n")
    folder = out / "release"
    typer.echo(
        f"$ inftda release {flows} --areas {areas} --epsilon 1 --delta 1e-8 --out {folder} --force"
    )
    started = time.perf_counter()
    with LevelProgress(shown=True) as progress:
        made = release(
            flows, areas, epsilon=1, delta=1e-8, out=folder, force=True, progress=progress
        )
    typer.echo(summary(made, folder))
    typer.echo(f"            ({time.perf_counter() - started:.1f} s)\n")
    typer.echo(f"$ inftda query {folder} --origin-level region --destination-level region --top 5")
    top = made.flows("region", "region").sort_by([("flow", "descending")]).slice(0, 5)
    typer.echo(as_text(top), nl=False)
