"""Checks of a release that need nothing but its folder.

Every file is read, compared with what the manifest states, and written again from what it says:
where the same Arrow made it, it must be the same to the bit.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa

from inftda.errors import InftdaError, ReleaseError
from inftda.files import FLOWS_FILE, MANIFEST_FILE
from inftda.inference.measured import Measurements
from inftda.options import Option, documented
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
from inftda.publication.tables import Flows, is_ascending, order_keys, read_flows, write_flows


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
    _check_inventory(release, folder)
    yield "nothing else is in the folder"
    yield "areas are the ones the manifest states"
    yield _check_guarantee(release)
    _check_statements(release, folder)
    if any(axis.places_sha256 for axis in release.manifest.tree.axes):
        yield "names, locations and outlines are the ones the manifest states"
    flows = yield from _check_flows(release, folder)
    measured = yield from _check_measurements(release, folder, flows)
    yield _check_bytes(release, folder, flows, measured)


def _check_inventory(release: Release, folder: Path) -> None:
    """Nothing lies in the folder but the files that the manifest was written for."""
    manifest = release.manifest
    others = strangers(folder, manifest)
    if others:
        raise ReleaseError(
            f"{others[0]!r} in {str(folder)!r} is not part of the release; nothing is promised "
            f"about it, and it may be confidential: remove it, or {GET_AGAIN}"
        )
    with_places = {axis.file for axis in manifest.tree.axes if axis.places_sha256}
    stated = [(FLOWS_FILE, manifest.flows_sha256)]
    stated += [
        (places_name(axis.file), axis.places_sha256)
        for axis in manifest.tree.axes
        if axis.file in with_places
    ]
    if release.measured is not None:
        stated.append((MEASUREMENTS_FILE, manifest.measurements_sha256))
    for name, sha256 in stated:
        if not (folder / name).exists():
            raise ReleaseError(f"the release has no {name}; {GET_AGAIN}")
        if digest(folder / name) != sha256:
            raise ReleaseError(
                f"{name} is not what the manifest was written for; it was damaged or changed: "
                f"{GET_AGAIN}"
            )


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
    for name in {*manifest.software} - SOFTWARE:
        raise ReleaseError(
            f"the manifest states a version of {name[:60]!r}, which no release does; it was edited"
        )


def _check_flows(release: Release, folder: Path) -> Generator[str, None, Flows]:
    """Known areas, positive integers, each cell once and in order, total and rows as stated."""
    manifest, tree = release.manifest, release.tree
    flows = read_flows(folder / FLOWS_FILE, tree, n_flows=manifest.n_flows)
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
    return flows


def _check_measurements(
    release: Release, folder: Path, flows: Flows
) -> Generator[str, None, Measurements | None]:
    """Noisy values are those that the manifest says are published, and the flows follow."""
    manifest, tree, plan = release.manifest, release.tree, release.manifest.plan
    if plan.tables and release.measured is None:
        raise ReleaseError(
            f"the release has no {MEASUREMENTS_FILE}, but totals were measured across the tree; "
            f"{GET_AGAIN}"
        )
    if release.measured is None:
        return None
    tables = release.published_tables()
    if not tables:
        raise ReleaseError(
            f"the release has {MEASUREMENTS_FILE}, but by its guarantee nothing was measured that "
            "is published there; these numbers were not accounted for"
        )
    path, n_flows = folder / MEASUREMENTS_FILE, manifest.n_flows
    measured = read_measurements(path, tree, tables, n_flows=n_flows)
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
    return measured


def _check_bytes(
    release: Release, folder: Path, flows: Flows, measured: Measurements | None
) -> str:
    """Every file is what a release writes of what it holds, or what another Arrow makes of that."""
    tree, made_by = release.tree, release.manifest.software.get("arrow", "another Arrow")
    writers: dict[str, Callable[[pa.NativeFile], object]] = {
        FLOWS_FILE: partial(write_flows, tree=tree, flows=flows)
    }
    if measured is not None:
        writers[MEASUREMENTS_FILE] = partial(write_measurements, tree=tree, measured=measured)
    for entry, axis in zip(release.manifest.tree.axes, tree.axes, strict=True):
        text = areas_text(axis.hierarchy)
        writers[entry.file] = lambda sink, text=text: sink.write(text)  # type: ignore[misc]
        if entry.places_sha256:
            writers[places_name(entry.file)] = partial(save_places, hierarchy=axis.hierarchy)
    is_same = True
    for name, write in writers.items():
        write(sink := pa.BufferOutputStream())
        with pa.memory_map(str(folder / name)) as found:
            if found.read_buffer().equals(sink.getvalue()):
                continue
        if name.endswith(".csv") or made_by == arrow_version():
            raise ReleaseError(f"{name} is not written as inftda writes it; {DAMAGED}")
        is_same = False
    if is_same:
        return "all files are to the bit what a release of these numbers writes"
    return (
        f"all files hold what the manifest states; they were written by another Arrow ({made_by}) "
        "than the one here, so that they are compared by content, not by bytes"
    )
