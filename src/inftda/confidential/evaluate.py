"""Compare a release with the truth, as measures and as a page. The output is CONFIDENTIAL."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from inftda.confidential.comparison import (
    Comparison,
    check_outside,
    compare,
    read_truth,
    write_comparison,
)
from inftda.confidential.confidential_page import measures_by_level, write_confidential_page
from inftda.errors import InftdaError
from inftda.estimates.estimate import Estimate, open_estimate
from inftda.options import Doc, Group, Notified, Option, Released, Watched, documented
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
    """Compare a release with the truth. The output is CONFIDENTIAL.

    The table is counted as it was for the release: privacy unit, contribution bound and the policy
    for rows that cannot be placed are those of the manifest.

    Raises:
        InftdaError: the table cannot be the truth of the release, `columns` contradicts the
            manifest, the estimate was made from another release, or `out` is in a release.
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
