"""A release compared with the truth, as measures and as a page. What comes out is CONFIDENTIAL."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from inftda.errors import InftdaError
from inftda.estimates import Estimate, open_estimate
from inftda.evaluation.evaluate import (
    Comparison,
    check_outside,
    compare,
    read_truth,
    write_comparison,
)
from inftda.options import Doc, Group, Notified, Option, Released, Watched, documented
from inftda.pages.report import measures_by_level, write_confidential_page
from inftda.publication.release import open_release
from inftda.reading import Columns, table_from
from inftda.reading.columns import COLUMNS


@documented
def evaluate(  # noqa: PLR0913 - the columns of the table, as for a release
    release: Released,
    truth: Annotated[
        Any, Option("The confidential table it was made from.", metavar="FLOWS"), Group(table_from)
    ],
    *,
    out: Annotated[str | Path | None, Option("Folder for the measures, not in a release.")] = None,
    html: Annotated[bool, Option("Write a page as well.")] = False,
    estimate: Annotated[
        Estimate | str | Path | None,
        Option("Estimate made from the release, or its folder, to be compared as well."),
    ] = None,
    columns: Annotated[Columns, Doc("What to read from the table."), Group(Columns)] = COLUMNS,
    progress: Watched = None,
    on_message: Notified = None,
) -> Comparison:
    """Compare a release with the truth. What comes out is CONFIDENTIAL.

    Raises:
        InftdaError: the table cannot be the truth of the release, the estimate was made from
            another one, or `out` is in a release.
    """
    if out is None and html:
        raise InftdaError("a page needs a folder to be written to; give `out=`")
    found = open_release(release)
    folder = found.table.parent if isinstance(found.table, Path) else None
    if out is not None:
        check_outside(Path(out), *([] if folder is None else [folder]))
    made = None if estimate is None else open_estimate(estimate)
    if made is not None:
        made.check_release(found)  # before the truth is read
    counts = read_truth(found, truth, columns, on_message=on_message)
    comparison = compare(found, counts, estimate=made, progress=progress)
    if out is None:
        return comparison
    page = None
    if html:
        page = partial(write_confidential_page, found, counts, measures_by_level(comparison))
    return replace(comparison, files=write_comparison(comparison, out, release=folder, page=page))
