"""A series: releases of one table for several periods, in one folder, a folder for each.

Every edition is a release of its own, with its own guarantee. The guarantee to a person who is in
all of them follows from the sum of their costs, if they have the same privacy unit.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from inftda.errors import ReleaseError
from inftda.privacy.accounting import epsilon_of_rho
from inftda.privacy.noise_plan import Plan
from inftda.publication.query import FlowFormat, converted
from inftda.publication.release import Release, open_release
from inftda.publication.reliability import NOT_PRIVATE_LINE
from inftda.util.exact_numbers import exact_number, rounded_up
from inftda.util.files import MANIFEST_FILE
from inftda.util.tabular import repeated

#: Column with the edition of each number.
EDITION = "edition"


@dataclass(frozen=True, repr=False)
class Series:
    """Editions of one table by period, in their order."""

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


def check_comparable(old: Release, new: Release) -> None:
    """Refuse two releases that are not editions of one table."""
    axes = [[axis.name for axis in release.tree.axes] for release in (old, new)]
    counted = [release.manifest.counted for release in (old, new)]
    units = [release.manifest.unit.contribution() for release in (old, new)]
    if sorted(axes[0]) != sorted(axes[1]):
        why = f"the axes of one are {', '.join(axes[0])}, of the other {', '.join(axes[1])}"
    elif counted[0] != counted[1]:
        rules = (
            (
                one.what,
                f"unknown areas {one.unplaceable}",
                f"{'bounded' if one.bounded else 'not bounded'} by person",
            )
            for one in counted
        )
        why = "they do not count the same: " + ", ".join(
            f"{first} or {second}" for first, second in zip(*rules, strict=True) if first != second
        )
    elif counted[0].bounded and units[0] != units[1]:
        why = f"of each person one counts {units[0]}, the other {units[1]}"
    elif old.manifest == new.manifest:
        why = "they are the same release"
    else:
        return
    raise ReleaseError(f"these releases are not comparable: {why}")


def guarantees(editions: Iterable[tuple[str, Release]]) -> list[str]:
    """State the privacy unit and the guarantee of each edition, and of all with one privacy unit.

    Editions with the same guarantee share a line. If one edition was made with a seed, the only
    line says so.

    Privacy:
        Costs are added up only over editions with the same privacy unit: sums over different units
        have no meaning.
    """
    named = list(editions)
    if not all(release.manifest.private for _, release in named):
        return [NOT_PRIVATE_LINE]
    by_unit = defaultdict[str, list[tuple[str, Plan]]](list)
    for name, release in named:
        by_unit[release.manifest.protected].append((name, release.manifest.plan))
    lines = []
    for unit, members in by_unit.items():
        is_whole = len(by_unit) == 1
        every = "each edition" if is_whole else _listed(members)
        lines.append(f"privacy unit of {every}: {unit}")
        alike = defaultdict[str, list[tuple[str, Plan]]](list)
        for member in members:
            alike[member[1].describe()].append(member)
        for words, which in alike.items():
            lines.append(f"{every if len(alike) == 1 else _listed(which)}: {words}")
        if len(members) > 1:
            which_all = f"all {len(members)} editions" if is_whole else every
            lines.append(f"{which_all} together: {_together([plan for _, plan in members])}")
    if len(by_unit) > 1:
        lines.append(
            "editions with different privacy units have no guarantee together, because their "
            "costs do not add up"
        )
    return lines


def _listed(members: Sequence[tuple[str, Plan]]) -> str:
    return ", ".join(name for name, _ in members)


def _together(plans: Sequence[Plan]) -> str:
    """State the guarantee of editions with one privacy unit to a person who is in all of them."""
    rho = sum((plan.rho for plan in plans), Fraction(0))
    cost, deltas = f"rho = {rounded_up(rho)} (zCDP)", {plan.delta for plan in plans}
    if all(plan.is_pure for plan in plans):
        epsilon = sum(exact_number(plan.epsilon or 0) for plan in plans)
        return f"epsilon = {rounded_up(epsilon)}, delta = 0; {cost}"
    delta = next(iter(deltas))
    if len(deltas) > 1 or delta is None:
        return cost
    epsilon_at = epsilon_of_rho(rho, delta=delta)
    return f"epsilon = {rounded_up(epsilon_at)}, delta = {rounded_up(delta)}; {cost}"


def _folders(folder: Path) -> list[Path]:
    """Folders of releases in a folder."""
    if not folder.is_dir():
        return []
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST_FILE}"))
