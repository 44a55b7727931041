"""The published table and what is promised about it: open, save, sum up.

A release is a folder with `flows.parquet` (one column per axis, and `flow`), the areas it
refers to, and `manifest.json`. It holds the released table and public parameters, nothing
else computed from the truth, and nothing here ever sees the truth.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from inftda.errors import InftdaError, MissingExtraError, ReleaseError
from inftda.hierarchy import Hierarchy
from inftda.publication.folder import FLOWS_FILE, MANIFEST_FILE, write_public_files, writing
from inftda.publication.manifest import Manifest
from inftda.publication.query import sum_flows
from inftda.tree import DESTINATION, ORIGIN, Axis, Tree

TableFormat = Literal["arrow", "pandas", "polars"]


@dataclass(frozen=True)
class Release:
    """A published table: non-negative flows between finest areas, and what is promised.

    Attributes:
        manifest: what was done and what is guaranteed.
        tree: axes and order of refinement.
        table: the leaf flows, or the Parquet file or folder that holds them.
    """

    manifest: Manifest
    tree: Tree
    table: pa.Table | Path

    def flows(  # noqa: PLR0913 - two ends, each with a level and a filter
        self,
        origin_level: str | None = None,
        destination_level: str | None = None,
        *,
        origin: str | Sequence[str] | None = None,
        destination: str | Sequence[str] | None = None,
        levels: Mapping[str, str] | None = None,
        where: Mapping[str, str | Sequence[str]] | None = None,
        as_: TableFormat = "arrow",
    ) -> Any:
        """Flows between areas of any two levels: the sums of the finest flows.

        Args:
            origin_level: name of a level of the origins, or "all"; the finest by default.
            destination_level: likewise of the destinations.
            origin: only flows from this area (or these), of any level; write
                "level:code" where one code is used at two levels.
            destination: likewise for where flows go to.
            levels: for other tables, axis name to level name; "all" by default.
            where: for other tables, axis name to area or areas.
            as_: "arrow", "pandas" or "polars".

        Raises:
            ReleaseError: no such axis, or an area is unknown or ambiguous.
        """
        chosen = dict(levels or {})
        filters = dict(where or {})
        if self.tree.is_od or origin_level or destination_level:
            chosen.setdefault(ORIGIN, origin_level or self._finest(ORIGIN))
            chosen.setdefault(DESTINATION, destination_level or self._finest(DESTINATION))
        elif not chosen:
            chosen = {axis.name: self._finest(axis.name) for axis in self.tree.axes}
        ends = {ORIGIN: origin, DESTINATION: destination}
        filters |= {name: areas for name, areas in ends.items() if areas is not None}
        for name in {*chosen, *filters}:
            self.axis(name)
        return _convert(sum_flows(self.table, self.tree, chosen, filters), as_)

    @property
    def total(self) -> int:
        """Sum of all flows."""
        return self.manifest.total

    def save(self, out: str | Path, *, force: bool = False) -> "Release":
        """Write the release as a folder, atomically."""
        with writing(Path(out), force=force) as folder:
            if isinstance(self.table, pa.Table):
                pq.write_table(self.table, folder / FLOWS_FILE, compression="zstd")
            elif self.table.is_dir():
                shutil.copytree(self.table, folder / FLOWS_FILE)
            else:
                shutil.copyfile(self.table, folder / FLOWS_FILE)
            write_public_files(folder, self.tree, self.manifest)
        return open_release(out)

    def axis(self, name: str) -> Axis:
        """The axis with this name.

        Raises:
            ReleaseError: there is none.
        """
        for axis in self.tree.axes:
            if axis.name == name:
                return axis
        names = ", ".join(axis.name for axis in self.tree.axes)
        raise ReleaseError(f"the release has no axis {name!r}; its axes are {names}")

    def _finest(self, name: str) -> str:
        hierarchy = self.axis(name).hierarchy
        return hierarchy.level_name(hierarchy.depth)


def open_release(path: str | Path) -> Release:
    """Read a release folder.

    Raises:
        ReleaseError: the folder is missing or is not a release.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ReleaseError(f"there is no release folder {str(folder)!r}; check the path")
    for name in (MANIFEST_FILE, FLOWS_FILE):
        if not (folder / name).exists():
            raise ReleaseError(f"{str(folder)!r} is not a release: it has no {name}")
    manifest = Manifest.read(folder / MANIFEST_FILE)
    axes = []
    files = {axis.file: folder / _plain_name(axis.file) for axis in manifest.axes}
    read = {name: _read_areas(file) for name, file in files.items()}
    for axis in manifest.axes:
        hierarchy = read[axis.file]
        if (hierarchy.fingerprint, hierarchy.level_names) != (axis.fingerprint, axis.levels):
            raise ReleaseError(
                f"{axis.file} is not the hierarchy the manifest of {str(folder)!r} states for "
                f"axis {axis.name!r}; get the release again from its publisher"
            )
        axes.append(Axis(axis.name, hierarchy))
    return Release(manifest, Tree.build(axes, manifest.order), folder / FLOWS_FILE)


def _read_areas(file: Path) -> Hierarchy:
    try:
        return Hierarchy.read(file)
    except InftdaError as error:
        raise ReleaseError(
            f"{file.name} does not hold the areas of a release ({error}); "
            "get the release again from its publisher"
        ) from error


def _plain_name(name: str) -> str:
    """A file name inside the folder: a manifest must not make us read elsewhere."""
    if Path(name).name != name or name in {"", ".", ".."}:
        raise ReleaseError(f"the manifest names the file {name!r}; only plain names are allowed")
    return name


def _convert(table: pa.Table, as_: TableFormat) -> Any:
    if as_ == "arrow":
        return table
    if as_ in {"pandas", "polars"}:
        try:
            library = import_module(as_)  # optional, brought by the user who asks for it
        except ImportError:
            raise MissingExtraError(
                f"flows as {as_} need {as_}, which is not installed; install it, or leave out as_"
            ) from None
        return table.to_pandas() if as_ == "pandas" else library.from_arrow(table)
    raise ReleaseError(f"as_ must be 'arrow', 'pandas' or 'polars', got {as_!r}")
