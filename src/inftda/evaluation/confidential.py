"""The confidential files of a comparison: not private, and marked so.

Each file says what it is in its name and in its content, is readable by its owner only, and
must never get into a release folder, by whatever path.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from inftda.errors import ReleaseError
from inftda.evaluation.comparison import Comparison
from inftda.files import published_around, whole_file
from inftda.publication.spreadsheet import disarmed_table

LEVELS_FILE, SIZES_FILE = "CONFIDENTIAL-levels", "CONFIDENTIAL-sizes"
TOTALS_FILE, INTERVALS_FILE = "CONFIDENTIAL-totals", "CONFIDENTIAL-intervals"
#: What files of measures of an estimate have in their name, after what all have.
_ESTIMATE = ("CONFIDENTIAL-", "CONFIDENTIAL-estimate-")
SUMMARY_FILE, PAGE_FILE = "CONFIDENTIAL-evaluation.json", "CONFIDENTIAL-evaluation.html"

Writer = Callable[[Path], object]


def write_comparison(
    comparison: Comparison,
    out: str | Path,
    *,
    release: str | Path | None,
    page: Writer | None = None,
) -> tuple[Path, ...]:
    """Write the measures to a folder of their own, readable by the owner only.

    Args:
        comparison: what to write.
        out: folder to write to; it is made if it is not there.
        release: folder of the release, which must not be written to; None if it has none.
        page: writes the same as a page to the path it is given.

    Returns:
        The files: levels, size classes, totals and intervals as CSV and Parquet, the same of an
        estimate, everything as JSON, the page.

    Raises:
        ReleaseError: `out` is, or lies in, a release folder, is a link, or cannot be made.
    """
    writers = _tables(comparison)
    if comparison.estimate is not None:
        of_estimate = _tables(comparison.estimate).items()
        writers |= {name.replace(*_ESTIMATE): writer for name, writer in of_estimate}
    writers[SUMMARY_FILE] = json_writer(comparison.to_dict())
    if page is not None:
        writers[PAGE_FILE] = page
    return write_confidential(writers, out, *([] if release is None else [release]))


def _tables(comparison: Comparison) -> dict[str, Writer]:
    """What writes each table of a comparison."""
    writers = {
        **table_writers(LEVELS_FILE, comparison.level_table()),
        **table_writers(SIZES_FILE, comparison.size_table()),
        **table_writers(TOTALS_FILE, comparison.totals_table()),
    }
    if comparison.intervals:
        writers |= table_writers(INTERVALS_FILE, comparison.interval_table())
    return writers


def write_confidential(
    writers: Mapping[str, Writer], out: str | Path, *known: str | Path
) -> tuple[Path, ...]:
    """Write files to a folder of their own, readable by the owner only.

    Args:
        writers: by name of the file, what writes it to the path it is given.
        out: folder to write to; it is made if it is not there.
        known: folders of releases, which must not be written to.

    Raises:
        ReleaseError: `out` is, or lies in, a release folder, is a link, or cannot be made.
    """
    folder = Path(out)
    make_private(folder, *known)
    return tuple(_write(folder / name, writer) for name, writer in writers.items())


def json_writer(data: object) -> Writer:
    """Writes data as JSON."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return lambda path: path.write_text(text, encoding="utf-8")


def check_outside(out: Path, *known: str | Path) -> None:
    """Refuse to write into a release or an estimate, by whatever links or relative paths.

    Args:
        out: a file or folder to write, there or not.
        known: folders of releases, whatever they hold; others are recognised by their files.

    Raises:
        ReleaseError: `out` or a folder above it is one of these.
    """
    folder = published_around(out, *known)
    if folder is not None:
        raise ReleaseError(
            f"{str(out)!r} lies in the release folder or estimate {str(folder)!r}, which is for "
            "publication; measures are confidential, choose a folder elsewhere"
        )


def make_private(folder: Path, *known: str | Path) -> None:
    """Make a folder that only its owner can look into; it may be there already.

    Args:
        folder: to make.
        known: as for `check_outside`.

    Raises:
        ReleaseError: it is, or lies in, a release folder, is a link, or cannot be made.
    """
    check_outside(folder, *known)
    if folder.is_symlink():  # what is confidential goes where it was sent
        raise ReleaseError(f"{str(folder)!r} is a link; give a folder that is not a link")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise ReleaseError(f"cannot make the folder {str(folder)!r}: {problem.strerror}") from None


def table_writers(name: str, table: pa.Table) -> dict[str, Writer]:
    """Write a table as CSV and as Parquet."""
    import pyarrow.csv as pa_csv  # noqa: PLC0415 - only writing needs it

    return {
        f"{name}.csv": lambda path: pa_csv.write_csv(disarmed_table(table), path),
        f"{name}.parquet": lambda path: pq.write_table(table, path),
    }


def _write(path: Path, writer: Writer) -> Path:
    with whole_file(path, mode=0o600) as partial:
        writer(partial)
    return path
