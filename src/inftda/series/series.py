"""A series: releases of one table for several periods, in one folder, a folder for each.

Every edition is a release of its own, with its own guarantee. The guarantee to a person who is in
all of them follows from the sum of their costs, if they have the same privacy unit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from inftda.errors import ReleaseError
from inftda.publication.query import FlowFormat, converted
from inftda.publication.release import Release, open_release
from inftda.series.changes import check_comparable
from inftda.series.guarantees import guarantees
from inftda.util.files import MANIFEST_FILE
from inftda.util.tabular import repeated

#: Column with the edition of each number.
EDITION = "edition"


@dataclass(frozen=True, repr=False)
class Series:
    """Editions of one table.

    Attributes:
        editions: by period, in their order.
    """

    editions: Mapping[str, Release]

    def flows(self, *levels: str, as_: FlowFormat = "arrow", **asked: Any) -> Any:
        """Flows of all editions, as `Release.flows` gives them, with a column `edition` in front.

        Raises:
            ReleaseError: as for one release, or places are asked for.
        """
        if as_ == "geopandas":
            raise ReleaseError("a series has no places of its own; ask one edition for them")
        found = {
            edition: release.flows(*levels, **asked) for edition, release in self.editions.items()
        }
        return converted(joined(found), as_)

    def guarantees(self) -> list[str]:
        """State the guarantee of each edition, and of all together, in words."""
        return guarantees(self.editions.items())

    def __repr__(self) -> str:
        return f"<series: {', '.join(self.editions)}; {'; '.join(self.guarantees())}>"


def joined(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Join the tables of editions below one another, with a column `edition` in front.

    A column that an edition does not have is null in its rows, such as `listed` where totals were
    not measured.
    """
    named = [
        table.add_column(0, EDITION, repeated(edition, len(table)))
        for edition, table in tables.items()
    ]
    return pa.concat_tables(named, promote_options="default")


def is_series(folder: str | Path) -> bool:
    """Whether a folder holds releases and is not a release itself."""
    return not (Path(folder) / MANIFEST_FILE).exists() and bool(_folders(Path(folder)))


def open_series(folder: str | Path) -> Series:
    """Open all releases in a folder.

    Raises:
        ReleaseError: there is none, one does not say which edition it is, two are of one edition,
            or they are not comparable.
    """
    found: dict[str, Release] = {}
    for path in _folders(Path(folder)):
        release = open_release(path)
        edition = release.manifest.edition
        if not edition:
            raise ReleaseError(
                f"the release {path.name!r} of the series does not say which edition it is; "
                "release it with `edition='2024-05'`"
            )
        if edition in found:
            raise ReleaseError(f"two releases of the series are of the edition {edition!r}")
        found[edition] = release
    if not found:
        raise ReleaseError(f"there are no releases in the folder {str(folder)!r}")
    editions = dict(sorted(found.items()))
    first, *others = editions.values()
    for other in others:
        check_comparable(first, other)
    return Series(editions)


def _folders(folder: Path) -> list[Path]:
    """Folders of releases in a folder."""
    if not folder.is_dir():
        return []
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST_FILE}"))
