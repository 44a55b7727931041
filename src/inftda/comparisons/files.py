"""The confidential files of a comparison of methods, marked as all such files are."""

from collections.abc import Callable
from pathlib import Path

from inftda.comparisons.comparing import MethodComparison
from inftda.evaluation.confidential import json_writer, table_writers, write_confidential

LEVELS_FILE = "CONFIDENTIAL-methods"
SUMMARY_FILE, PAGE_FILE = "CONFIDENTIAL-methods.json", "CONFIDENTIAL-methods.html"


def write_methods(
    comparison: MethodComparison,
    out: str | Path,
    *,
    page: Callable[[Path], object] | None = None,
) -> tuple[Path, ...]:
    """Write everything to a folder of its own, readable by the owner only.

    Args:
        comparison: what to write.
        out: folder to write to, not in a release; it is made if it is not there.
        page: writes the same as a page to the path it is given.

    Raises:
        ReleaseError: `out` is, or lies in, a release folder, is a link, or cannot be made.
    """
    writers: dict[str, Callable[[Path], object]] = {
        **table_writers(LEVELS_FILE, comparison.level_table()),
        SUMMARY_FILE: json_writer(comparison.to_dict()),
    }
    if page is not None:
        writers[PAGE_FILE] = page
    return write_confidential(writers, out)
