"""What can be exported: anything with a tree and flows between the areas of any levels."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from inftda.estimates.estimating import open_estimate
from inftda.estimates.manifest import KIND
from inftda.files import MANIFEST_FILE
from inftda.publication.release import open_release
from inftda.tree import DESTINATION, ORIGIN, Tree

#: Columns that may hold the number of a row: published, or estimated.
VALUES = ("flow", "estimate")


class Source(Protocol):
    """A release or an estimate."""

    @property
    def tree(self) -> Tree:
        """Axes and their areas."""

    def flows(self, *, levels: Mapping[str, str] | None = None) -> Any:
        """Numbers between areas of the levels named for each axis, as an Arrow table."""


def open_source(folder: str | Path) -> Source:
    """The release or estimate in a folder.

    Raises:
        ReleaseError: there is none.
    """
    if not _is_estimate(Path(folder)):
        return open_release(folder)
    return open_estimate(folder)


def _is_estimate(folder: Path) -> bool:
    """What a manifest says of itself; whoever opens it says what is wrong with it."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    stated = [manifest.get(key) for key in ("format", "kind")] if isinstance(manifest, dict) else []
    return any(str(kind).startswith(KIND) for kind in stated)


def has_pairs(tree: Tree) -> bool:
    """Whether there are origins and destinations, perhaps among other axes."""
    return {ORIGIN, DESTINATION} <= {axis.name for axis in tree.axes}
