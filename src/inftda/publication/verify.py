"""Checks of a release that need nothing but its folder."""

import re
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import numpy as np
import pyarrow as pa

from inftda.errors import InftdaError, ReleaseError
from inftda.files import FLOWS_FILE, MANIFEST_FILE
from inftda.mechanisms.catalogue import options_of
from inftda.noise.sampler import NoiseSource
from inftda.privacy.spending import ReleasePlan
from inftda.publication.folder import ROW_GROUP, FlowsWriter, areas_files, areas_text, flows_schema
from inftda.publication.inventory import (
    GET_AGAIN,
    MEASUREMENTS_FILE,
    TOTALS_FILE,
    check_digest,
    places_name,
    strangers,
)
from inftda.publication.manifest import SOFTWARE, Manifest, check_same
from inftda.publication.measurements import planned_measurements, read_measurements
from inftda.publication.parquet_file import (
    Rewritten,
    Shape,
    check_written_again,
    encoded,
    opened,
    row_groups,
)
from inftda.publication.places_file import check_places_file
from inftda.publication.query import FLOW
from inftda.publication.release import Release, open_release
from inftda.publication.totals import check_totals, check_totals_file
from inftda.tables import as_numpy, find_texts
from inftda.tree import Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VERSION: Final = re.compile(r"[0-9A-Za-z.+!_-]{1,40}|not installed")
#: Numbers of cells up to here fit into one word.
_LARGEST: Final = 2**62


def verify(path: str | Path) -> Iterator[str]:
    """Check a release folder; yields what was found right.

    Raises:
        ReleaseError: something is wrong; the message says what.
    """
    folder = Path(path)
    release = open_release(folder)
    _check_areas(release, folder)
    yield "areas are the ones the manifest states"
    yield from _check_places(release, folder)
    yield _check_inventory(release, folder)
    yield _check_guarantee(release)
    _check_statements(release)
    _check_text(release.manifest, folder)
    rewritten: list[Rewritten] = []
    yield from _check_flows(release, rewritten)
    yield _check_digest(release)
    for again in rewritten:
        check_written_again(*again)
    yield from _check_totals(release, folder)
    yield from _check_measurements(release)


def _check_areas(release: Release, folder: Path) -> None:
    """Fingerprints were compared; the files hold the areas and nothing else."""
    files = areas_files(release.tree)
    for axis in release.tree.axes:
        file = files[axis.name]
        if (folder / file).read_bytes() != areas_text(axis.hierarchy):
            raise ReleaseError(
                f"{file} is not written as inftda writes areas; it was edited: {GET_AGAIN}"
            )


def _check_places(release: Release, folder: Path) -> Iterator[str]:
    """Compare files of places with the manifest; what they hold was checked when they were read."""
    axes = zip(release.manifest.axes, release.tree.axes, strict=True)
    hierarchies = {entry.file: axis.hierarchy for entry, axis in axes}
    entries = {axis.file: axis.places_sha256 for axis in release.manifest.axes}
    stated = {file: sha256 for file, sha256 in entries.items() if sha256}
    for axis in release.manifest.axes:
        if axis.places_sha256 != entries[axis.file]:
            raise ReleaseError(
                f"the manifest states two digests of {places_name(axis.file)}; it was edited"
            )
    for file, sha256 in stated.items():
        places = folder / places_name(file)
        check_digest(places, sha256)
        check_places_file(places, hierarchies[file])
    if stated:
        yield "names, locations and outlines are to the bit the ones the manifest states"


def _check_inventory(release: Release, folder: Path) -> str:
    """Nothing lies in the folder that the manifest does not know of."""
    others = strangers(folder, release.manifest)
    if others:
        raise ReleaseError(
            f"{others[0]!r} in {str(folder)!r} is not part of the release; nothing is promised "
            f"about it, and it may be confidential: remove it, or {GET_AGAIN}"
        )
    return "nothing else is in the folder"


def _check_guarantee(release: Release) -> str:
    """The plan is recomputed: levels against the tree, noise against the promise."""
    if not release.manifest.private:
        raise ReleaseError("this release was made with a seed: it promises nothing")
    try:
        plan = release.manifest.plan
        _check_measured(release.manifest, plan)
        plan.verify(release.tree)
    except InftdaError as problem:
        raise ReleaseError(f"the guarantee does not hold: {problem}") from None
    check_same(release.manifest.guarantee, plan.to_dict(), "guarantee")
    return f"guarantee follows from the noise of each level: {plan.describe()}"


def _check_measured(manifest: Manifest, plan: ReleasePlan) -> None:
    """A guarantee for less than the mechanism measures would be too good."""
    if manifest.description.measures != plan.scope:
        raise ReleaseError(
            f"the mechanism {manifest.mechanism!r} measures {manifest.description.measures}, not "
            f"{plan.scope}; the manifest was edited, or written by another version of inftda"
        )


def _check_statements(release: Release) -> None:
    """What else the manifest states is what a release can state, and nothing more."""
    manifest = release.manifest
    expected = dict(options_of(manifest.mechanism))
    if manifest.description.takes_sampler:
        noise, sources = manifest.options.get("noise"), get_args(NoiseSource)
        expected["noise"] = noise if noise in sources else sources[0]
    check_same(manifest.options, expected, "options")
    manifest.counted.check(manifest.plan.unit, release.tree)
    if not {"python", "inftda"} <= {*manifest.software}:
        raise ReleaseError("the manifest does not state what made the release; it was edited")
    for name, version in manifest.software.items():
        if name not in SOFTWARE or not _VERSION.fullmatch(version):
            raise ReleaseError(
                f"the manifest states {version[:60]!r} as version of {name[:60]!r}, which no "
                "release does; it was edited"
            )


def _check_text(manifest: Manifest, folder: Path) -> None:
    """The text is as inftda writes it: blanks and line breaks could hide something, too."""
    if (folder / MANIFEST_FILE).read_bytes() != manifest.to_text().encode():
        raise ReleaseError(
            f"{MANIFEST_FILE} is not written as inftda writes it; it was edited: {GET_AGAIN}"
        )


def _check_flows(release: Release, rewritten: list[Rewritten]) -> Iterator[str]:
    """Known areas, positive integers, no cell twice, total and number of rows as stated.

    Args:
        release: to check.
        rewritten: what writing the rows of its files again gives is added here.
    """
    manifest = release.manifest
    stated = f"total is {manifest.total:,} in {manifest.n_flows:,} rows, as stated"
    files = _files(release.table)
    found = _Flows(release.tree, is_signed=manifest.description.values == "any sign")
    n_rows = 0
    for file in files:
        with opened(file, found.shape) as parquet:
            n_rows += parquet.metadata.num_rows
            # Before any row is read: there are not more than there can be.
            if n_rows > min(manifest.n_flows, found.n_cells):
                raise ReleaseError(f"not true of this release: {stated}")
            writer = FlowsWriter(sink := pa.BufferOutputStream(), release.tree)
            for rows in row_groups(parquet, found.shape):
                writer.write(*found.add(rows))
            writer.close()
        rewritten.append((file, sink.getvalue(), found.shape))
    yield "flows are integers " + ("other than 0" if found.is_signed else "above 0")
    for axis in release.tree.axes:
        yield f"every {axis.name} is a known area"
    found.check_distinct()
    yield "no cell occurs twice"
    if (found.total, found.n_rows) != (manifest.total, manifest.n_flows):
        raise ReleaseError(f"not true of this release: {stated}")
    yield stated


def _files(table: Path | pa.Table) -> list[Path]:
    """The file or files of the flows."""
    if not isinstance(table, Path):
        raise ReleaseError("a release in memory has no files to verify; save it first")
    files = sorted(table.iterdir()) if table.is_dir() else [table]
    if not files:
        raise ReleaseError(f"{FLOWS_FILE} is an empty folder; {GET_AGAIN}")
    return files


class _Flows:
    """Rows of the flows, checked as they come; of each its cell is remembered."""

    def __init__(self, tree: Tree, *, is_signed: bool) -> None:
        codes = [axis.hierarchy.codes(axis.hierarchy.depth) for axis in tree.axes]
        names = [axis.name for axis in tree.axes]
        self.is_signed = is_signed
        self.shape = Shape.of(FLOWS_FILE, flows_schema(tree), codes, ROW_GROUP)
        self.n_cells = prod(map(len, codes))
        self.total = self.n_rows = 0
        self._codes = dict(zip(names, codes, strict=True))
        self._cells: list[list[NDArray[np.int64]]] = []

    def add(self, rows: pa.Table) -> "tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]":
        """Check some rows.

        Returns:
            Their areas by number, on each axis, and their flows.

        Raises:
            ReleaseError: an area is unknown, a flow has a wrong sign, or a cell occurs twice.
        """
        flow = as_numpy(rows.column(FLOW).combine_chunks())
        if (flow == 0).any() or (not self.is_signed and (flow < 0).any()):
            allowed = "other than 0" if self.is_signed else "above 0"
            raise ReleaseError(f"not true of this release: flows are integers {allowed}")
        words, size, areas = [np.zeros(len(flow), np.int64)], 1, []
        for name, codes in self._codes.items():
            indices, texts = encoded(rows.column(name))
            numbers = find_texts(texts, codes)
            # Also where no row has it: tools show what a column lists.
            if (numbers < 0).any():
                raise ReleaseError(f"not true of this release: every {name} is a known area")
            if size * len(codes) > _LARGEST:
                words, size = [*words, np.zeros(len(flow), np.int64)], 1
            areas.append(numbers[indices])
            words[-1] = words[-1] * len(codes) + areas[-1]
            size *= len(codes)
        # Here as well: a few bytes could be the same row as often as one likes.
        _check_distinct(words)
        self._cells.append(words)
        self.n_rows += len(flow)
        # In halves: flows made for it would sum to anything in 64 bits.
        self.total += (int((flow >> 32).sum()) << 32) + int((flow & 0xFFFFFFFF).sum())
        return tuple(areas), flow

    def check_distinct(self) -> None:
        """No cell occurs twice, in whatever rows.

        Raises:
            ReleaseError: one does.
        """
        if len(self._cells) > 1:
            _check_distinct([np.concatenate(word) for word in zip(*self._cells, strict=True)])


def _check_distinct(words: "list[NDArray[np.int64]]") -> None:
    """No cell occurs twice, given the words of each."""
    order = np.lexsort(words)
    is_same = np.ones(max(len(order) - 1, 0), bool)
    for word in words:
        is_same &= np.diff(word[order]) == 0
    if is_same.any():
        raise ReleaseError("not true of this release: no cell occurs twice")


def _check_digest(release: Release) -> str:
    """The flows are, to the bit, those that the manifest was written for."""
    if isinstance(release.table, Path):
        check_digest(release.table, release.manifest.flows_sha256)
    return "flows are to the bit the ones the manifest states"


def _check_measurements(release: Release) -> Iterator[str]:
    """Noisy values, if they are published, are all that were drawn, and the flows follow."""
    manifest, path = release.manifest, release.measured
    if not isinstance(path, Path):
        return
    if not manifest.description.is_top_down:
        raise ReleaseError(
            f"the release has {MEASUREMENTS_FILE}, but {manifest.mechanism} has none to publish; "
            "these numbers were not accounted for"
        )
    from inftda.publication import replay  # noqa: PLC0415 - compiled kernels

    plan, tree = manifest.plan, release.tree
    rewritten: list[Rewritten] = []
    measured = read_measurements(path, tree, plan, n_flows=manifest.n_flows, rewritten=rewritten)
    planned = planned_measurements(tree, plan)
    released = replay.read_released(_files(release.table), tree)
    yield from replay.check_follows(released, measured, planned, manifest.description)
    replay.check_noisy_total(manifest.total, measured)
    if release.totals is not None:
        replay.check_one_way_totals(release.totals.column("measured").to_numpy(), measured, planned)
    check_digest(path, manifest.measurements_sha256)
    for again in rewritten:
        check_written_again(*again)
    yield "measurements are to the bit the ones the manifest states"


def _check_totals(release: Release, folder: Path) -> Iterator[str]:
    """Measured totals are there if the plan has any, for the areas and noise that it states."""
    plan = release.manifest.plan
    if not plan.tables:
        if release.totals is not None or release.manifest.totals_sha256:
            raise ReleaseError(
                f"the release has {TOTALS_FILE}, but its guarantee has no tables across the tree; "
                "these numbers were not accounted for"
            )
        return
    if release.totals is None:
        raise ReleaseError(
            f"the release has no {TOTALS_FILE}, but totals were measured across the tree; "
            "get it again from its publisher"
        )
    check_totals(release.totals, release.tree, plan)
    yield "measured totals are those of every area, with the noise that the manifest states"
    check_digest(folder / TOTALS_FILE, release.manifest.totals_sha256)
    check_totals_file(folder / TOTALS_FILE, release.totals, release.tree)
    yield "measured totals are to the bit the ones the manifest states"
