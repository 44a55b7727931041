"""Checks of a release that need nothing but its folder.

Every file is read, compared with the manifest, and written again from its contents. If the same
version of Arrow made it, its bytes must be equal.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa

from inftda import __version__
from inftda.errors import InftdaError, OptimizeError, ReleaseError, UncheckedError, first_few
from inftda.mechanism.data import MeasuredTable, Step
from inftda.options import Doc, Option, documented
from inftda.privacy.measurement import Measurement
from inftda.publication.agreement import table_fits
from inftda.publication.folder import areas_text, save_places, unexpected_files
from inftda.publication.manifest import (
    ALGORITHM,
    DAMAGED,
    MEASUREMENTS_FILE,
    Manifest,
    arrow_version,
    places_name,
)
from inftda.publication.measured import Measurements
from inftda.publication.measurements import write_measurements
from inftda.publication.parquet import read_flows, write_flows
from inftda.publication.release import Release, open_release
from inftda.publication.reliability import misfit_warnings
from inftda.publication.signature import check_signature
from inftda.tree import Areas, Cells, Tree
from inftda.util.exact_numbers import exact_sum
from inftda.util.files import FLOWS_FILE, JUNK, MANIFEST_FILE, is_plain
from inftda.util.formats import GET_AGAIN, check_text
from inftda.util.stores import fetched, is_release_file, is_remote, names_at
from inftda.util.threads import ThreadPool


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
        Doc(
            "Receives warnings: sums do not fit, or a signature was not checked for lack of a key."
        ),
    ] = None,
) -> tuple[str, ...]:
    """Check a release without trusting who made it: guarantee, files, and published tables.

    Returns:
        The checks that passed, in words.

    Raises:
        ReleaseError: a check failed; the message names it.
        UncheckedError: no check failed, but this version cannot make all of them, because a newer
            one made the release.
    """
    say = on_message or (lambda _: None)
    # Of a folder in a store, only files of releases are copied.
    names = names_at(str(release), ReleaseError) if is_remote(release) else []
    others = [name for name in names if not is_release_file(name)]
    with fetched(release, ReleaseError, is_wanted=is_release_file, is_folder=True) as folder:
        passed = tuple(_checks(Path(folder), key, say, others))
        opened = open_release(folder)
        if left := _unchecked(opened, Path(folder)):
            made_by = opened.manifest.software.get("inftda", "another version")
            raise UncheckedError(
                f"the release is not verified: {len(passed)} checks passed and none failed, but "
                f"inftda {__version__} cannot check {left}; the release was made by inftda "
                f"{made_by}: verify it with that version or a newer one",
                passed,
            )
        return passed


def _checks(
    folder: Path, key: str | Path | None, say: Callable[[str], object], others: Sequence[str]
) -> Iterator[str]:
    if words := check_signature(folder, key, say):
        yield words
    release = open_release(folder)
    yield _check_inventory(release, folder, others)
    yield "areas match the manifest"
    yield _check_guarantee(release)
    release.manifest.counted.check(release.manifest.unit, release.tree)
    if any(name.startswith("places") for name in release.manifest.files):
        yield "names, locations and outlines match the manifest"
    flows = yield from _check_flows(release, folder)
    measured = yield from _check_measurements(release, flows)
    yield _check_bytes(release, folder, flows, measured)
    if measured is not None:
        yield from _check_fit(release, flows, measured, say)


def _unchecked(release: Release, folder: Path) -> str:
    """What this version cannot check, in words; empty if it can check everything.

    Entries that no version knows could state anything, so a release with unknown ones does not
    verify, whoever wrote them.
    """
    manifest, left = release.manifest, []
    if release.has_measurements and not _is_known(manifest):
        left.append(
            f"that flows follow from the measurements, which algorithm {manifest.algorithm} divided"
        )
    if unknown := check_text((folder / MANIFEST_FILE).read_bytes(), manifest):
        left.append(f"the entries {first_few(unknown)} of the manifest")
    return " and ".join(left)


def _is_known(manifest: Manifest) -> bool:
    """Whether this version can repeat the division of a release."""
    return manifest.algorithm == ALGORITHM


def _check_inventory(release: Release, folder: Path, others: Sequence[str]) -> str:
    """Refuse unexpected files in the folder.

    `others` are other files of the folder in a store.
    """
    junk = sorted({name for name in JUNK if is_plain(folder / name)} | (JUNK & {*others}))
    unknown = [
        *unexpected_files(folder, release.manifest),
        *(name for name in others if name not in JUNK),
    ]
    if unknown:
        raise ReleaseError(
            f"{unknown[0]!r} in {str(folder)!r} is not part of the release; nothing is guaranteed "
            f"about it, and it may be confidential: remove it, or {GET_AGAIN}"
        )
    if junk:
        return f"no unexpected files in the folder except {', '.join(junk)}, which was not read"
    return "no unexpected files in the folder"


def _check_guarantee(release: Release) -> str:
    """Recompute the plan: levels from the tree, guarantee from the noise."""
    manifest = release.manifest
    if not manifest.private:
        raise ReleaseError("this release was made with a seed: it gives no guarantee")
    try:
        plan = manifest.plan
        plan.verify(release.tree)
    except InftdaError as problem:
        raise ReleaseError(f"the guarantee does not hold: {problem}") from None
    return f"guarantee follows from the noise of each level: {plan.describe()}"


def _check_flows(release: Release, folder: Path) -> Generator[str, None, Cells]:
    """Check areas, counts, order, total and number of rows of the flows."""
    manifest, tree = release.manifest, release.tree
    flows = read_flows(folder / FLOWS_FILE, tree, n_flows=manifest.n_flows)
    found = {
        "flows are whole numbers above 0": bool((flows.value > 0).all()),
        "no cell occurs twice, and rows are in order": True,  # otherwise they are not read
        f"total is {manifest.total:,} {manifest.counts} in {manifest.n_flows:,} rows, as stated": (
            (exact_sum(flows.value), len(flows.value)) == (manifest.total, manifest.n_flows)
        ),
    }
    for words, is_true in found.items():
        if not is_true:
            raise ReleaseError(f"not true of this release: {words}; {GET_AGAIN}")
        yield words
    for axis in tree.axes:
        yield f"every {axis.name} has a known code"
    return flows


def _check_measurements(
    release: Release, flows: Cells
) -> Generator[str, None, Measurements | None]:
    """Check that the published noisy values are the stated ones, and that the flows follow."""
    manifest, tree, tables = release.manifest, release.tree, release.published_tables()
    if bool(tables) != (release.measured is not None):
        raise ReleaseError(
            f"the manifest states {manifest.measurements!r} of the measurements, and its guarantee "
            f"another: numbers are missing, or were not accounted for; {GET_AGAIN}"
        )
    if release.measured is None:
        return None
    measured = release.read_published()
    if release.has_measurements:
        if _is_known(manifest):
            yield from check_follows(flows, measured, tree, manifest.division_seed)
    else:
        for found in measured.tables:
            table = found.measurement
            every = np.arange(table.marginal.n_nodes)
            if not np.array_equal(found.areas[table.level.axis], every):
                raise ReleaseError(
                    f"{MEASUREMENTS_FILE} must list every area of the table {table.name!r} once, "
                    f"in order; {DAMAGED}"
                )
        yield "measured totals are those of every area, with the noise that the manifest states"
    return measured


def _check_fit(
    release: Release, flows: Cells, measured: Measurements, say: Callable[[str], object]
) -> Iterator[str]:
    """Compare sums of flows with the measurements; a misfit is a warning, not an error."""
    fits = table_fits(release.tree, measured, flows.areas, flows.value)
    cautions = misfit_warnings(release, fits)
    if not cautions:
        yield f"published numbers agree with all {len(fits)} measured tables"
    for words in cautions:
        say(words)


def _check_bytes(
    release: Release, folder: Path, flows: Cells, measured: Measurements | None
) -> str:
    """Write every file again from its contents, and compare; bytes only for the same Arrow."""
    tree, made_by = release.tree, release.manifest.software.get("arrow", "another Arrow")
    writers: dict[str, Callable[[pa.NativeFile], object]] = {
        FLOWS_FILE: partial(write_flows, tree=tree, flows=flows)
    }
    if measured is not None:
        writers[MEASUREMENTS_FILE] = partial(
            write_measurements, tree=tree, measured=measured.tables
        )
    for entry, axis in zip(release.manifest.axes, tree.axes, strict=True):
        text = areas_text(axis.hierarchy)
        writers[entry.file] = lambda sink, text=text: sink.write(text)  # type: ignore[misc]
        if (places := places_name(entry.file)) in release.manifest.files:
            writers[places] = partial(save_places, hierarchy=axis.hierarchy)
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
        return "all files equal, byte by byte, those that a release of these numbers writes"
    return (
        f"all files match the manifest; they were written by another version of Arrow ({made_by}), "
        "so their contents were compared, not their bytes"
    )


# --- Repeat the division


def check_follows(
    released: Cells, measurements: Measurements, tree: Tree, seed: str
) -> Iterator[str]:
    """Repeat the division and compare; yield the checks that passed.

    The measured values follow from the levels above: all children of every released parent (except
    only children), all cells of a cross table in every row with a released parent, and all cells of
    totals of areas. A file of measurements must have these, each once, and no others. The released
    counts follow from them and from the seed in the manifest, level by level from the total to the
    leaves.
    """
    from inftda.mechanism.batches import in_group_order  # noqa: PLC0415 - compiled kernels
    from inftda.mechanism.intopt import words_of  # noqa: PLC0415 - compiled kernels
    from inftda.mechanism.step import divide_again  # noqa: PLC0415 - slow to import

    words, pool = words_of(bytes.fromhex(seed)), ThreadPool()
    total = exact_sum(released.value)
    cells = Cells.root(len(tree.axes), total)
    for _, some in groupby(measurements.tables, lambda table: table.measurement.level.index):
        here = list(some)
        level = here[0].measurement.level
        parents = cells if level.refined is None else in_group_order(level, cells, pool)
        measured = [
            MeasuredTable.of(table.measurement, parents.areas, table.value) for table in here
        ]
        for table, one in zip(here, measured, strict=True):
            _check_areas(table.areas, one.cells(), one.measurement)
        if level.refined is None:
            # The total is drawn even if nothing is released and the root is no node.
            if total != max(int(measured[0].value[0]), 0):
                raise ReleaseError(
                    f"the flows do not sum to the noisy total of {MEASUREMENTS_FILE}; {DAMAGED}"
                )
            continue
        step = Step(measured[0].measurement, tuple(one.measurement for one in measured[1:]))
        try:
            cells = divide_again(step, parents, measured, words)
        except OptimizeError:
            raise ReleaseError(
                f"{MEASUREMENTS_FILE} has values that no release can have, at the level "
                f"{level.name!r}; {DAMAGED}"
            ) from None
    yield "measurements are exactly the values that were drawn for these flows"
    if not _is_same(cells, released):
        raise ReleaseError(
            f"the released flows do not follow from {MEASUREMENTS_FILE} and the seed; one of them "
            f"was edited or damaged: {GET_AGAIN}"
        )
    n = tree.depth
    yield f"flows follow from the measurements and the seed, at {n} level{'' if n == 1 else 's'}"


def _is_same(nodes: Cells, released: Cells) -> bool:
    """Whether two sets of leaves are equal."""
    here, there = np.lexsort(nodes.areas), np.lexsort(released.areas)
    areas = zip(nodes.areas, released.areas, strict=True)
    return np.array_equal(nodes.value[here], released.value[there]) and all(
        np.array_equal(one[here], other[there]) for one, other in areas
    )


def _check_areas(found: Areas, expected: Areas, table: Measurement) -> None:
    if not all(map(np.array_equal, found, expected)):
        raise ReleaseError(
            f"{MEASUREMENTS_FILE} must list every value of the table {table.name!r} that was drawn "
            f"for the released flows, once and in order, and no other; {DAMAGED}"
        )
