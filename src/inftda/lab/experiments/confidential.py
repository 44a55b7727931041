"""What an experiment writes: for its owner only, never in a release, marked if confidential.

Errors are computed from the true counts, with noise that anybody can repeat: what is found out
about a confidential data set is as confidential as the data set itself.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from inftda.evaluation.evaluate import NOTICE, check_outside
from inftda.files import whole_file


def write_private(path: Path, writer: Callable[[Path], object]) -> None:
    """Write a file that only its owner can read: all of it or nothing, and not through a link.

    Args:
        path: of the file; its folder is there.
        writer: writes to the path it is given.

    Raises:
        InftdaError: it would lie in a release folder.
    """
    check_outside(path.parent)
    with whole_file(path, mode=0o600) as partial:
        writer(partial)


def marked(results: pa.Table, *, is_confidential: bool) -> pa.Table:
    """Results with the notice in every row and in the schema if they are confidential."""
    plain = results.select([name for name in results.column_names if name != "notice"])
    if not is_confidential:
        return plain.replace_schema_metadata(None)
    notices = pa.array([NOTICE] * plain.num_rows, pa.string())
    return plain.append_column("notice", notices).replace_schema_metadata({"notice": NOTICE})


def notice_of(results: pa.Table, dataset: str) -> str | None:
    """The notice that results carry for a data set; None if it is public."""
    if "notice" not in results.column_names:
        return None
    rows = results.filter(pc.equal(results.column("dataset"), dataset))
    return NOTICE if rows.column("notice").null_count < rows.num_rows else None
