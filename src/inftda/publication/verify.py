"""Checks of a release that need nothing but its folder.

Every file is read, compared with what the manifest states, and written again from what it says:
where the same Arrow made it, it must be the same to the bit.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow as pa

from inftda.errors import InftdaError, OptimizeError, ReleaseError
from inftda.files import FLOWS_FILE, MANIFEST_FILE
from inftda.inference.agreement import table_fits
from inftda.inference.measured import Measurements
from inftda.options import Doc, Option, documented
from inftda.publication.folder import areas_text, places_name, save_places, strangers
from inftda.publication.manifest import (
    DAMAGED,
    GET_AGAIN,
    IMPOSSIBLE_FILE,
    MEASUREMENTS_FILE,
    OPTIONS,
    arrow_version,
    check_text,
    digest,
)
from inftda.publication.measurements import (
    PlannedTable,
    read_measurements,
    write_measurements,
)
from inftda.publication.release import Release, open_release
from inftda.publication.signature import check_signature
from inftda.publication.tables import (
    Areas,
    Flows,
    is_ascending,
    order_keys,
    read_flows,
    write_flows,
)
from inftda.publication.trust import misfit_warnings
from inftda.stores import fetched
from inftda.threads import Crew
from inftda.tree import OffTree, Tree, TreeLevel

if TYPE_CHECKING:
    from inftda.mechanism.step import Nodes, Step


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
    on_message: Annotated[
        Callable[[str], object] | None,
        Doc("Called with what not to rely on although nothing is wrong: sums that do not fit."),
    ] = None,
) -> tuple[str, ...]:
    """Check a release without trusting who made it: guarantee, files, and published tables.

    Returns:
        What was found right, in words.

    Raises:
        ReleaseError: something is wrong; the message says what.
    """
    with fetched(release, ReleaseError, is_folder=True) as folder:
        return tuple(_checks(Path(folder), key, on_message or (lambda _: None)))


def _checks(folder: Path, key: str | Path | None, say: Callable[[str], object]) -> Iterator[str]:
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
    if measured is not None:
        yield from _check_fit(release, flows, measured, say)


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
    stated += [(axis.file, axis.areas_sha256) for axis in manifest.tree.axes]
    stated += [
        (places_name(axis.file), axis.places_sha256)
        for axis in manifest.tree.axes
        if axis.file in with_places
    ]
    if manifest.tree.impossible_sha256:
        stated.append((IMPOSSIBLE_FILE, manifest.tree.impossible_sha256))
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
    return (
        f"guarantee follows from the noise of each level: {plan.describe()}; "
        f"{plan.describe_noise()}"
    )


def _check_statements(release: Release, folder: Path) -> None:
    """What else the manifest states is what a release can state, written as a release writes it."""
    manifest = release.manifest
    expected = replace(manifest, options=OPTIONS, guarantee=manifest.plan.to_dict())
    check_text((folder / MANIFEST_FILE).read_bytes(), expected)
    manifest.counted.check(manifest.unit, release.tree)


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
    if tree.impossible is not None:
        is_possible = bool(tree.levels[-1].is_possible(flows.areas).all())
        found[f"no flow is one that {IMPOSSIBLE_FILE} rules out"] = is_possible
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
    manifest, tree, tables = release.manifest, release.tree, release.published_tables()
    if bool(tables) != (release.measured is not None):
        raise ReleaseError(
            f"the manifest states {manifest.measurements!r} of the measurements, and its guarantee "
            f"another: numbers are missing, or were not accounted for; {GET_AGAIN}"
        )
    if release.measured is None:
        return None
    path, n_flows = folder / MEASUREMENTS_FILE, manifest.n_flows
    measured = read_measurements(path, tree, tables, n_flows=n_flows)
    if release.has_measurements:
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


def _check_fit(
    release: Release, flows: Flows, measured: Measurements, say: Callable[[str], object]
) -> Iterator[str]:
    """Whether sums of flows agree with what was measured; nothing is wrong where they do not."""
    fits = table_fits(release.tree, measured, flows.areas, flows.flow)
    careful = misfit_warnings(replace(release, known_fits=fits))
    if not careful:
        yield f"published numbers agree with all {len(fits)} measured tables"
    for words in careful:
        say(words)


def _check_bytes(
    release: Release, folder: Path, flows: Flows, measured: Measurements | None
) -> str:
    """Every file is what a release writes of what it holds, or what another Arrow makes of that."""
    tree, made_by = release.tree, release.manifest.software.get("arrow", "another Arrow")
    writers: dict[str, Callable[[pa.NativeFile], object]] = {
        FLOWS_FILE: partial(write_flows, tree=tree, flows=flows)
    }
    if measured is not None:
        writers[MEASUREMENTS_FILE] = partial(
            write_measurements, tree=tree, measured=measured.tables
        )
    if tree.impossible is not None:
        known = tree.impossible.to_text()
        writers[IMPOSSIBLE_FILE] = lambda sink: sink.write(known)
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


# --- the flows, made again from the measurements


def check_follows(
    released: Flows,
    measurements: Measurements,
    planned: Sequence[PlannedTable],
    tree: Tree,
    seed: str,
) -> Iterator[str]:
    """Divide again, as anybody can, and compare; yields what was found right.

    Which values were drawn depends on what was released before: on the tree all children of every
    released parent (but no only child), off the tree all cells of every row that holds one, and
    all areas of a one-way table. So a file of measurements is complete, and has no more than it
    should, exactly if it has these and each once. What was made of them follows from them and from
    the seed that the manifest states, level by level from the total to the leaves.
    """
    from inftda.mechanism.intopt import words_of  # noqa: PLC0415 - compiled kernels
    from inftda.mechanism.step import Nodes, Step, divide_again  # noqa: PLC0415 - likewise

    words, crew = words_of(bytes.fromhex(seed)), Crew()
    noisy = {table.depths: table for table in measurements.tables}
    noise = {table.depths: table.noise for table in planned}
    nodes = Nodes.root(len(tree.axes), released.total)
    for level in tree.levels:
        if level.depths not in noise:
            continue  # trivial, or a public total
        here = noisy[level.depths]
        if level.refined is None:
            # Drawn also where nothing is released, and the root is no node.
            _check_areas(here.areas, tuple(np.zeros(1, np.int32) for _ in tree.axes), level)
            if released.total != max(int(here.value[0]), 0):
                raise ReleaseError(
                    f"the flows do not sum to the noisy total of {MEASUREMENTS_FILE}; {DAMAGED}"
                )
            continue
        tables = [table for table in tree.off_tree_at(level) if table.depths in noise]
        totals = [noisy[table.depths].value for table in tables if table.across is None]
        step = Step(
            level,
            noise[level.depths],
            tuple((table, noise[table.depths]) for table in tables),
            totals[0] if totals else None,
        )
        parents = nodes.in_group_order(level, crew)
        every: list[TreeLevel | OffTree] = [level, *tables]
        for table in every:
            _check_areas(noisy[table.depths].areas, _cells(step, parents, table), table)
        two_way = {of.depths: noisy[of.depths].value for of in tables if of.across is not None}
        try:
            nodes = divide_again(step, parents, here.value, two_way, words)
        except OptimizeError:
            raise ReleaseError(
                f"{MEASUREMENTS_FILE} has values that no release can have, at the level "
                f"{level.name!r}; {DAMAGED}"
            ) from None
    yield "measurements are all values that were drawn for these flows, and no others"
    if not _is_same(nodes, released):
        raise ReleaseError(
            f"the released flows do not follow from {MEASUREMENTS_FILE} and the seed; one of them "
            f"was edited or damaged: {GET_AGAIN}"
        )
    n = tree.depth
    yield f"flows follow from the measurements and the seed, at {n} level{'' if n == 1 else 's'}"


def _cells(step: "Step", parents: "Nodes", table: TreeLevel | OffTree) -> Areas:
    """Areas of all values of a table that must have been drawn, in order."""
    from inftda.mechanism.prices import Groups  # noqa: PLC0415 - compiled kernels
    from inftda.mechanism.step import Noisy  # noqa: PLC0415 - likewise

    level = step.level
    if isinstance(table, TreeLevel):
        rows = parents.areas
    elif table.across is not None:
        rows = Groups.of(level, parents).areas_of(table)
    else:
        refined = np.arange(level.n_parent_areas(level.axis), dtype=np.int32)
        rows = tuple(refined * (axis == level.axis) for axis in range(len(level.axes)))
    sizes = level.n_children[rows[level.axis]]
    # Only children are drawn off the tree, and not on it.
    n = int(sizes[sizes > isinstance(table, TreeLevel)].sum())
    return Noisy.below(level, table.depths, rows, np.zeros(n, np.int64)).cells()


def _is_same(nodes: "Nodes", released: Flows) -> bool:
    """Whether two sets of leaves are equal."""
    here, there = np.lexsort(nodes.areas), np.lexsort(released.areas)
    areas = zip(nodes.areas, released.areas, strict=True)
    return np.array_equal(nodes.value[here], released.flow[there]) and all(
        np.array_equal(one[here], other[there]) for one, other in areas
    )


def _check_areas(found: Areas, expected: Areas, table: TreeLevel | OffTree) -> None:
    if not all(map(np.array_equal, found, expected)):
        raise ReleaseError(
            f"{MEASUREMENTS_FILE} must list every value of the table {table.name!r} that was drawn "
            f"for the released flows, once and in order, and no other; {DAMAGED}"
        )
