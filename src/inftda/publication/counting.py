"""What of the confidential table was counted, and what readers must know of it.

A table of which trips or rows were left out is right about what was counted, and says nothing
about the rest. What was asked for is public and in the manifest; how much was left out is not.
"""

from dataclasses import dataclass
from typing import Literal

from inftda.errors import ReleaseError
from inftda.hierarchy import OUTSIDE
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree


@dataclass(frozen=True)
class Counting:
    """How rows of the table were counted.

    Attributes:
        bounded: whether a person column was given, so that no more trips of each person are
            counted than the unit of privacy has.
        unplaceable: what was done with rows without a known area: "error" if there are none,
            "outside" if they have an area of their own (on the axes that have such an area),
            "drop" if they are not counted.
    """

    bounded: bool = False
    unplaceable: Literal["error", "outside", "drop"] = "error"

    def words(self, unit: PrivacyUnit, tree: Tree) -> tuple[str, ...]:
        """What is not in the table, or not where one would look for it; nothing if all is.

        >>> from inftda.hierarchy import Hierarchy
        >>> towns = Tree.destination_first(Hierarchy.read({"town": ["a", "b"]}))
        >>> Counting(bounded=True).words(PrivacyUnit("add-remove", 10), towns)[0]
        'at most 10 trips of each person are counted: the table does not show all trips of people with more'
        """  # noqa: E501 - one line of output
        said = []
        one, many = ("trip", "trips") if tree.is_od else ("entry", "entries")
        is_different = unit.distinct and unit.trips > 1
        # With exactly as many trips as stated, whoever has another number stops the release.
        if self.bounded and not unit.root_is_public:
            most = f"{unit.trips:,} {'different ' if is_different else ''}"
            most += f"{one} of each person is" if unit.trips == 1 else f"{many} of each person are"
            said.append(
                f"at most {most} counted: the table does not show all {many} of people with more"
            )
        if self.bounded and is_different:
            said.append(f"{many} that a person repeats are counted once")
        if self.unplaceable == "drop":
            said.append("rows without a known area are left out")
        if self.unplaceable == "outside":
            where = [axis.name for axis in tree.axes if axis.hierarchy.has_outside]
            of = "" if len(where) == len(tree.axes) else f" of {' and '.join(where)}"
            said.append(f"rows without a known area are counted in the area {OUTSIDE!r}{of}")
        return tuple(said)

    def check(self, unit: PrivacyUnit, tree: Tree) -> None:
        """Refuse what no table can have been counted by.

        Raises:
            ReleaseError: it contradicts the unit of privacy or the areas.
        """
        if self.unplaceable == "drop" and unit.is_substitute:
            raise ReleaseError(
                "the manifest says that rows without a known area were dropped, which is never "
                "done under neighbours 'substitute'; it was edited"
            )
        if self.unplaceable != "outside":
            return
        if not any(axis.hierarchy.has_outside for axis in tree.axes):
            raise ReleaseError(
                f"the manifest says that rows without a known area are in the area {OUTSIDE!r}, "
                "but no axis has such an area; it was edited"
            )
        if unit.distinct and unit.trips > 1 and not self.bounded:
            raise ReleaseError(
                f"the manifest says that nobody makes the same trip twice, but trips to "
                f"{OUTSIDE!r} may coincide; it was edited"
            )
