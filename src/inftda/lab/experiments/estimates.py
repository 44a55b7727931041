"""What an estimate gains over the release it was made from, and the coverage of intervals.

A release with measurements is made as anybody makes one, but with a seed, and estimated from
its measurements alone. Figures of both are kept for the finest level, where they differ most.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from inftda.estimates import estimate
from inftda.evaluation.cells import estimated_leaves
from inftda.evaluation.evaluate import released_counts
from inftda.evaluation.intervals import lowest_coverage, measure_estimated, measure_intervals
from inftda.evaluation.measures import area_totals, measure, measure_total
from inftda.noise.entropy import SeededSource
from inftda.publication.query import FLOW
from inftda.publication.tables import Flows, as_table
from inftda.publish import release
from inftda.truth import Truth

#: Prefixes of the figures of a release, and of the estimate that was made from it.
RELEASED, ESTIMATED = PREFIXES = ("released_", "estimated_")
#: Figures of both: of the finest level, and of its totals.
MEASURES: Final = ("common_part", "rmse", "max_abs_error")


def estimate_figures(  # noqa: PLR0913 - what is released, and how
    truth: Truth,
    *,
    mechanism: str,
    epsilon: float,
    delta: float,
    across: Any,
    seed: int,
    centroids: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """Figures of one release and of its estimate.

    Args:
        truth: what is released.
        mechanism: name of a top-down mechanism.
        epsilon: strength.
        delta: probability of failure.
        across: share of the budget for totals across the tree.
        seed: of the noise.
        centroids: where areas are, if that is known.
    """
    tree = truth.tree
    released = release(
        as_table(tree, Flows(*truth.leaves)),
        axes={axis.name: axis.hierarchy for axis in tree.axes},
        order=tree.order,
        count=FLOW,
        mechanism=mechanism,
        epsilon=epsilon,
        delta=delta,
        across=across,
        measurements=True,
        source=SeededSource(seed),
    )
    made = estimated_leaves(estimate(released, centroids=centroids))
    estimated = Truth.from_leaves(tree, made.areas, made.value)
    for prefix, counts in zip(PREFIXES, (released_counts(released), estimated), strict=True):
        finest = measure(truth, counts)[-1]
        for name in MEASURES:
            yield _figure(prefix + name, getattr(finest, name))
        for number, axis in enumerate(tree.axes):
            depth = axis.hierarchy.depth
            true, found = (area_totals(of, number, depth) for of in (truth, counts))
            total = measure_total(axis, depth, true, found)
            yield _figure(f"{prefix}total_mean_abs_error", total.mean_abs_error, axis.name)
    coverage = (measure_intervals(truth, released), measure_estimated(truth, made))
    for prefix, intervals in zip(PREFIXES, coverage, strict=True):
        lowest = lowest_coverage(intervals)
        if lowest is not None:
            yield _figure(f"{prefix}lowest_coverage", lowest.in_interval)


def _figure(name: str, value: float, of: str = "") -> dict[str, Any]:
    return {"level": -1, "level_name": of, "measure": name, "value": float(value)}
