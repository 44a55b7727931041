"""Checks of a release that need nothing but its folder.

Every file is read, compared with what the manifest states, and written again from what it says:
where the same Arrow made it, it must be the same to the bit.
"""

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from inftda.errors import InftdaError, ReleaseError
from inftda.files import FLOWS_FILE, MANIFEST_FILE
from inftda.publication.folder import areas_text, places_name, save_places, strangers
from inftda.publication.manifest import (
    DAMAGED,
    GET_AGAIN,
    MEASUREMENTS_FILE,
    OPTIONS,
    SOFTWARE,
    arrow_version,
    check_text,
    digest,
)
from inftda.publication.measurements import read_measurements, write_measurements
from inftda.publication.release import Release, open_release
from inftda.publication.signature import check_signature
from inftda.publication.tables import (
    Flows,
    is_ascending,
    order_keys,
    read_flows,
    write_flows,
)

_VERSION: Final = re.compile(r"[0-9A-Za-z.+!_-]{1,40}")


def verify(path: str | Path, *, key: str | Path | None = None) -> Iterator[str]:
    """Check a release folder, and its signature if a file with a public `key` is given.

    Yields:
        What was found right.

    Raises:
        ReleaseError: something is wrong; the message says what.
    """
    folder = Path(path)
    if words := check_signature(folder, key):
        yield words
    release = open_release(folder)
    yield _check_inventory(release, folder)
    _check_areas(release, folder)
    yield "areas are the ones the manifest states"
    yield _check_guarantee(release)
    _check_statements(release, folder)
    rewriting = _Rewriting(release)
    yield from _check_places(release, folder, rewriting)
    flows = yield from _check_flows(release, folder, rewriting)
    yield from _check_measurements(release, folder, flows, rewriting)
    yield rewriting.words


class _Rewriting:
    """Writes the files of a release again, and compares."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._is_compared = True

    def check(self, path: Path, stated: str, write: Callable[[pa.NativeFile], None]) -> None:
        """Compare a file with its stated digest, and with what is written from its rows again."""
        if digest(path) != stated:
            raise ReleaseError(
                f"{path.name} is not what the manifest was written for; it was damaged or "
                f"changed: {GET_AGAIN}"
            )
        write(sink := pa.BufferOutputStream())
        with pa.memory_map(str(path)) as source:
            if source.read_buffer().equals(sink.getvalue()):
                return
        # Another Arrow may write the same rows differently.
        if self._release.manifest.software.get("arrow") == arrow_version():
            raise ReleaseError(f"{path.name} is not written as inftda writes it; {DAMAGED}")
        self._is_compared = False

    @property
    def words(self) -> str:
        """What was compared."""
        if self._is_compared:
            return "all files are to the bit what a release of these numbers writes"
        made = self._release.manifest.software.get("arrow", "another Arrow")
        return (
            "all files hold what the manifest states; they were written by another Arrow "
            f"({made}) than the one here, so that they are compared by content, not by bytes"
        )


def _check_inventory(release: Release, folder: Path) -> str:
    """Nothing lies in the folder that the manifest does not know of."""
    others = strangers(folder, release.manifest)
    if others:
        raise ReleaseError(
            f"{others[0]!r} in {str(folder)!r} is not part of the release; nothing is promised "
            f"about it, and it may be confidential: remove it, or {GET_AGAIN}"
        )
    return "nothing else is in the folder"


def _check_areas(release: Release, folder: Path) -> None:
    """Fingerprints were compared; the files hold the areas and nothing else."""
    for entry, axis in zip(release.manifest.tree.axes, release.tree.axes, strict=True):
        if (folder / entry.file).read_bytes() != areas_text(axis.hierarchy):
            raise ReleaseError(
                f"{entry.file} is not written as inftda writes areas; it was edited: {GET_AGAIN}"
            )


def _check_places(release: Release, folder: Path, rewriting: _Rewriting) -> Iterator[str]:
    """Compare files of places; what they hold was checked when they were read."""
    stated = {(axis.file, axis.places_sha256) for axis in release.manifest.tree.axes}
    if len(stated) > len({file for file, _ in stated}):
        raise ReleaseError("the manifest states two digests of the same places; it was edited")
    for entry, axis in zip(release.manifest.tree.axes, release.tree.axes, strict=True):
        if entry.places_sha256:
            path = folder / places_name(entry.file)
            rewriting.check(
                path, entry.places_sha256, partial(save_places, hierarchy=axis.hierarchy)
            )
    if any(sha256 for _, sha256 in stated):
        yield "names, locations and outlines are the ones the manifest states"


def _check_guarantee(release: Release) -> str:
    """The plan is recomputed: levels against the tree, noise against the promise."""
    manifest = release.manifest
    if not manifest.private:
        raise ReleaseError("this release was made with a seed: it promises nothing")
    try:
        plan = manifest.plan
        plan.verify(release.tree)
    except InftdaError as problem:
        raise ReleaseError(f"the guarantee does not hold: {problem}") from None
    return f"guarantee follows from the noise of each level: {plan.describe()}"


def _check_statements(release: Release, folder: Path) -> None:
    """What else the manifest states is what a release can state, written as a release writes it."""
    manifest = release.manifest
    expected = replace(manifest, options=OPTIONS, guarantee=manifest.plan.to_dict())
    check_text((folder / MANIFEST_FILE).read_bytes(), expected)
    manifest.counted.check(manifest.unit, release.tree)
    if not {"python", "inftda"} <= {*manifest.software}:
        raise ReleaseError("the manifest does not state what made the release; it was edited")
    for name, version in manifest.software.items():
        if name not in SOFTWARE or not _VERSION.fullmatch(version):
            raise ReleaseError(
                f"the manifest states {version[:60]!r} as version of {name[:60]!r}, which no "
                "release does; it was edited"
            )


def _check_flows(
    release: Release, folder: Path, rewriting: _Rewriting
) -> Generator[str, None, Flows]:
    """Known areas, positive integers, each cell once and in order, total and rows as stated."""
    manifest, tree = release.manifest, release.tree
    path = folder / FLOWS_FILE
    flows = read_flows(path, tree, n_flows=manifest.n_flows)
    found = {
        "flows are integers above 0": bool((flows.flow > 0).all()),
        "no cell occurs twice, and rows are in order": is_ascending(order_keys(tree, flows.areas)),
        f"total is {manifest.total:,} in {manifest.n_flows:,} rows, as stated": (
            (flows.total, len(flows.flow)) == (manifest.total, manifest.n_flows)
        ),
    }
    for words, is_true in found.items():
        if not is_true:
            raise ReleaseError(f"not true of this release: {words}; {GET_AGAIN}")
        yield words
    for axis in tree.axes:
        yield f"every {axis.name} is a known area"
    rewriting.check(path, manifest.flows_sha256, lambda sink: write_flows(sink, tree, flows))
    return flows


def _check_measurements(
    release: Release, folder: Path, flows: Flows, rewriting: _Rewriting
) -> Iterator[str]:
    """Noisy values are those that the manifest says are published, and the flows follow."""
    manifest, tree, plan = release.manifest, release.tree, release.manifest.plan
    if plan.tables and release.measured is None:
        raise ReleaseError(
            f"the release has no {MEASUREMENTS_FILE}, but totals were measured across the tree; "
            f"{GET_AGAIN}"
        )
    if release.measured is None:
        return
    tables = release.published_tables()
    if not tables:
        raise ReleaseError(
            f"the release has {MEASUREMENTS_FILE}, but by its guarantee nothing was measured that "
            "is published there; these numbers were not accounted for"
        )
    path = folder / MEASUREMENTS_FILE
    measured = read_measurements(path, tree, tables, n_flows=manifest.n_flows)
    if release.has_measurements:
        from inftda.publication.replay import check_follows  # noqa: PLC0415 - compiled kernels

        yield from check_follows(flows, measured, tables, tree, manifest.seed)
    else:
        for table, found in zip(tables, measured.tables, strict=True):
            every = np.arange(table.marginal.n_nodes)
            if not np.array_equal(found.areas[table.level.axis], every):
                raise ReleaseError(
                    f"{MEASUREMENTS_FILE} must list every area of the table {table.name!r} once, "
                    f"in order; {DAMAGED}"
                )
        yield "measured totals are those of every area, with the noise that the manifest states"
    rewriting.check(
        path, manifest.measurements_sha256, lambda sink: write_measurements(sink, tree, measured)
    )
