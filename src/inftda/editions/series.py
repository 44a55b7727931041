"""A series: releases of one table for several periods, in one folder, a folder for each.

Every edition is a release of its own, with its own promise. What is promised to a person who is in
all of them follows from adding up what they cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from inftda.editions.change import check_comparable
from inftda.errors import ReleaseError
from inftda.files import MANIFEST_FILE
from inftda.numbers import rounded_up
from inftda.privacy.accounting import epsilon_of
from inftda.publication.query import FlowFormat, converted
from inftda.publication.release import Release, open_release
from inftda.publication.trust import NOT_PRIVATE_LINE
from inftda.tables import repeated

#: Column that says which edition a number is of.
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
        found = [
            with_edition(release.flows(*levels, **asked), edition)
            for edition, release in self.editions.items()
        ]
        return converted(pa.concat_tables(found), as_)

    def promise(self) -> list[str]:
        """What is promised to somebody who is in one edition, and in all of them, in words."""
        plans = [release.manifest.plan for release in self.editions.values()]
        rho = sum((plan.rho for plan in plans), Fraction(0))
        worst = max(plans, key=lambda plan: (plan.epsilon or 0, plan.rho))
        together = f"rho = {rounded_up(rho)} (zCDP)"
        deltas = [plan.delta for plan in plans]
        if all(plan.is_pure for plan in plans):
            whole = sum(Fraction(plan.epsilon or 0) for plan in plans)
            together = f"epsilon = {rounded_up(whole)}, delta = 0; {together}"
        elif all(deltas):
            delta = max(delta for delta in deltas if delta)
            epsilon = epsilon_of("zcdp", delta=delta, noise=[(1 / (2 * rho), 1, 1)])
            together = f"epsilon = {rounded_up(epsilon)}, delta = {rounded_up(delta)}; {together}"
        return [
            f"what a person has in one edition: {worst.describe()}",
            f"what a person has in all {len(plans)} editions together: {together}",
        ]

    def __repr__(self) -> str:
        is_private = all(release.manifest.private for release in self.editions.values())
        said = self.promise() if is_private else [NOT_PRIVATE_LINE]
        return f"<series: {', '.join(self.editions)}; {'; '.join(said)}>"


def with_edition(table: pa.Table, edition: str) -> pa.Table:
    """A table with the name of its edition in front."""
    return table.add_column(0, EDITION, repeated(edition, len(table)))


def is_series(folder: str | Path) -> bool:
    """Whether a folder holds releases, and is none."""
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
