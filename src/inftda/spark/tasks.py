"""What runs on executors: batches of Arrow rows in, batches of Arrow rows out.

A task may run more than once; every run gives the same rows, because rows are sorted before
they are used and noise follows from a secret (see `inftda.noise.bits.Secret`). Nothing here
prints or logs, because the executors' logs are not part of the release.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext

from inftda import __version__
from inftda.errors import ReleaseError
from inftda.mechanism.intopt import Seed
from inftda.mechanism.step import Areas, Ints, Nodes, Noisy, Step
from inftda.mechanism.topdown import divide_all
from inftda.noise.bits import Secret
from inftda.spark.packing import TASK, Batches, Made, pack
from inftda.threads import Crew
from inftda.tree import Marginal
from inftda.truth import Children

#: Columns of rows on their way to a task, besides the areas and `TASK`: whether the row is a
#: released parent (its count is released) or a true child (its count is true).
IS_PARENT, COUNT = "is_parent", "n"
#: What rows are: released children, or counts of one of several marginals (0, 1, ...). Noisy
#: counts of a step are those of the level (0) and of two-way tables off the tree (1, ...).
KIND: Final = "kind"
CHILDREN: Final = -1


def area_names(n_axes: int) -> list[str]:
    """Names of the columns of area numbers."""
    return [f"area_{axis}" for axis in range(n_axes)]


def sum_up(marginals: Sequence[Marginal], batches: Batches) -> Made:
    """True counts of each marginal, as far as they are in these leaves; they may repeat."""
    for batch in batches:
        *leaves, n = _columns(batch)
        for kind, marginal in enumerate(marginals):
            areas, sums = marginal.sum_up(leaves, n)
            yield _of_kind(kind, as_batch(areas, sums))


@dataclass(frozen=True, repr=False)
class Division:
    """One level step: everything a task needs but its rows.

    It holds the secret that noise follows from, so it never shows itself.

    Attributes:
        step: the level step.
        secret: what its noise follows from.
        seed: what decides ties.
        n_tasks: how many tasks groups are dealt out to.
        is_kept: whether noisy counts are wanted.
        version: of this package on the driver.
    """

    step: Step
    secret: Secret
    seed: Seed
    n_tasks: int
    is_kept: bool = False
    version: str = field(default=__version__)

    def __repr__(self) -> str:
        return "Division(confidential)"

    def check_version(self) -> None:
        """Complain if this executor has another version of this package than the driver.

        Raises:
            ReleaseError: it has.
        """
        if __version__ != self.version:
            raise ReleaseError(
                f"an executor has inftda {__version__}, the driver {self.version}; install the "
                "same version everywhere"
            )

    @cached_property
    def _tasks(self) -> NDArray[np.int32]:
        """int32[areas]: the task of each area that is refined.

        Whole groups go to a task, neighbouring ones together, so that what the tasks give one
        after the other is in group order.
        """
        offsets = self.step.level.child_offsets.astype(np.int64)
        task: NDArray[np.int32] = (offsets[:-1] * self.n_tasks // offsets[-1]).astype(np.int32)
        return task

    def task_of(self, parents: Areas) -> NDArray[np.int32]:
        """int32: the task that each parent belongs to, released or not."""
        task: NDArray[np.int32] = self._tasks[parents[self.step.level.axis]]
        return task


def send_parents(division: Division, batches: Batches) -> Made:
    """Released parents with the task that divides them."""
    for batch in batches:
        *areas, value = _columns(batch)
        yield _routed(division.task_of(tuple(areas)), areas, value, is_parent=True)


def send_truth(division: Division, batches: Batches) -> Made:
    """True children, as rows that may repeat, with the task that divides their parent."""
    level = division.step.level
    for batch in batches:
        *leaves, n = _columns(batch)
        areas, sums = level.sum_up(leaves, n)
        yield _routed(division.task_of(level.parents(areas)), areas, sums, is_parent=False)


def _routed(
    task: NDArray[np.int32], areas: Sequence[NDArray[np.int32]], n: Ints, *, is_parent: bool
) -> pa.RecordBatch:
    rows = as_batch(areas, n)
    rows = rows.append_column(IS_PARENT, pa.array(np.full(len(n), is_parent)))
    return rows.append_column(TASK, pa.array(task))


def divide(division: Division, batches: Batches) -> Made:
    """Released children of the parents of one task, and noisy counts if they are wanted.

    Args:
        division: the level step.
        batches: what `send_parents` and `send_truth` give for this task, in any order.

    Yields:
        Cells (see `packing`), each with its kind.
    """
    division.check_version()
    held = [_columns(batch) for batch in batches]
    if not held:
        return
    step, level = division.step, division.step.level
    *areas, n, is_parent, _ = (np.concatenate(column) for column in zip(*held, strict=True))
    del held  # dividing takes the room again
    context = TaskContext.get()
    crew, noisy = Crew(1 if context is None else context.cpus()), list[Noisy]()
    truth = Children.of(level, tuple(numbers[~is_parent] for numbers in areas), n[~is_parent], crew)
    parents = Nodes(tuple(numbers[is_parent] for numbers in areas), n[is_parent])
    del areas, n
    children = divide_all(
        step,
        parents,
        truth,
        division.secret,
        division.seed,
        crew=crew,
        keep=noisy.append if division.is_kept else None,
    )
    yield from (
        _of_kind(CHILDREN, cell) for cell in pack([as_batch(children.areas, children.value)])
    )
    # The one-way table is the driver's, which has measured it.
    kinds = [level.depths, *(table.depths for table, _ in step.two_way)]
    for kind, depths in enumerate(kinds):
        here = (as_batch(some.cells(), some.value) for some in noisy if some.depths == depths)
        yield from (_of_kind(kind, cell) for cell in pack(here))


def _of_kind(kind: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.add_column(0, KIND, pa.array(np.full(rows.num_rows, kind, np.int32)))


def as_batch(areas: Sequence[NDArray[np.int32]], n: Ints) -> pa.RecordBatch:
    """Areas and counts as rows."""
    columns = [pa.array(column) for column in (*areas, n)]
    return pa.RecordBatch.from_arrays(columns, names=[*area_names(len(areas)), COUNT])


def as_nodes(batch: pa.RecordBatch) -> Nodes:
    """The same, back."""
    *areas, value = _columns(batch)
    return Nodes(tuple(areas), value)


def _columns(batch: pa.RecordBatch) -> list[NDArray[Any]]:
    return [column.to_numpy(zero_copy_only=False) for column in batch.columns]
