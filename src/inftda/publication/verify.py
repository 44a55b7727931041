"""Checks of a release that need nothing but its folder.

Every file is read, compared with what the manifest states, and written again from what it says:
where the same Arrow made it, it must be the same to the bit.
"""

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pyarrow as pa

from inftda.errors import InftdaError, ReleaseError
from inftda.files import FLOWS_FILE, MANIFEST_FILE
from inftda.options import Option, documented
from inftda.publication.folder import areas_files, areas_text, places_name, save_places, strangers
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

_VERSION: Final = re.compile(r"[0-9A-Za-z.+!_-]{1,40}|not installed")


@documented
def verify(
    release: Annotated[
        str | Path, Option("Folder of a release.", metavar="RELEASE", is_argument=True)
    ],
    *,
    key: Annotated[
        str | Path | None,
        Option("Public key of the publisher, which it must be signed with.", metavar="PUBLIC.pem"),
    ] = None,
) -> tuple[str, ...]:
    """Check a release without trusting who made it: guarantee, files, and published tables.

    Returns:
        What was found right, in words.

    Raises:
        ReleaseError: something is wrong; the message says what.
    """
    return tuple(_checks(Path(release), key))


def _checks(folder: Path, key: str | Path | None) -> Iterator[str]:
    """Check a release folder; yields what was found right."""
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
        """Compare a file with its digest, and with what is written from its rows.

        Args:
            path: the file, after all other checks.
            stated: digest of it, as the manifest has it.
            write: writes what it holds again.

        Raises:
            ReleaseError: it is another file, or was written in another way.
        """
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
    files = areas_files(release.tree)
    for axis in release.tree.axes:
        file = files[axis.name]
        if (folder / file).read_bytes() != areas_text(axis.hierarchy):
            raise ReleaseError(
                f"{file} is not written as inftda writes areas; it was edited: {GET_AGAIN}"
            )


def _check_places(release: Release, folder: Path, rewriting: _Rewriting) -> Iterator[str]:
    """Compare files of places; what they hold was checked when they were read."""
    entries = {axis.file: axis.places_sha256 for axis in release.manifest.tree.axes}
    for entry, axis in zip(release.manifest.tree.axes, release.tree.axes, strict=True):
        file = places_name(entry.file)
        if entry.places_sha256 != entries[entry.file]:
            raise ReleaseError(f"the manifest states two digests of {file}; it was edited")
        if entry.places_sha256:
            hierarchy = axis.hierarchy
            rewriting.check(
                folder / file,
                entry.places_sha256,
                lambda sink, of=hierarchy: save_places(sink, of),  # type: ignore[misc]
            )
    if any(entries.values()):
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
            axis = table.level.axis
            n_areas = tree.axes[axis].hierarchy.n_areas(table.depths[axis])
            if not np.array_equal(found.areas[axis], np.arange(n_areas)):
                raise ReleaseError(
                    f"{MEASUREMENTS_FILE} must list every area of the table {table.name!r} once, "
                    f"in order; {DAMAGED}"
                )
        yield "measured totals are those of every area, with the noise that the manifest states"
    rewriting.check(
        path, manifest.measurements_sha256, lambda sink: write_measurements(sink, tree, measured)
    )
