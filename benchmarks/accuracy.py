"""Errors of published numbers, for the page *Accuracy in practice*.

python benchmarks/accuracy.py [--quick] [TABLE ...] [--epsilon 1 ...] [--seeds 41 42 43]

For releases of tables below $INFTDA_DATA: errors of listed flows at levels with origins and
destinations of the same kind, errors and intervals of totals of finest areas, and at the finest
level the share of false flows by published size, of lost flows by true size, and the common part.
Means over the seeds. Releases are seeded: they are no releases, and the truth is known.
"""

import itertools

import numpy as np

import measure
from agreement import asked, released, side_by_side, table
from reliability import asked_ends

TABLES = ("belgium", "paris", "italy", "us", "taxi", "new zealand")
#: Classes of size, in standard deviations of the noise of the finest level.
SIZES = ((0, 0.5), (0.5, 1), (1, 2), (2, 4), (4, np.inf))


def errors(published, true):
    """Median, 95 % quantile and maximum of absolute errors."""
    error = np.abs(published - true)
    return *np.quantile(error, (0.5, 0.95)), error.max()


def in_classes(size, is_counted, sigma):
    """The share of cells of each class of size that are counted; NaN for a class without cells."""
    classes = [(size >= low * sigma) & (size < high * sigma) & (size > 0) for low, high in SIZES]
    return [is_counted[some].mean() if some.any() else np.nan for some in classes]


def measured(release, truth):
    """Figures of one release by name; each is a tuple of numbers."""
    tree, found = release.tree, {}
    for level in tree.levels:
        if level.depths[0] == level.depths[1] > 0:
            x, y = side_by_side(level, release.leaves(), truth)
            found[f"{level.name}: half, 95 %, largest"] = errors(x[x > 0], y[x > 0])
    sigma = release.manifest.plan.levels[-1].sigma
    found["false by published size"] = in_classes(x, y == 0, sigma)
    found["lost by true size"] = in_classes(y, x == 0, sigma)
    found["sigma, common part"] = sigma, 2 * np.minimum(x, y).sum() / (x.sum() + y.sum())
    for axis in tree.axes:
        levels = {one.name: "all" for one in tree.axes}
        levels[axis.name] = axis.hierarchy.level_names[-1]
        flow, true, (low, high) = asked_ends(release, truth, None, levels)
        name = f"totals by {axis.name} ({levels[axis.name]}): half, 95 %, largest, interval holds"
        found[name] = *errors(flow, true), ((low <= true) & (true <= high)).mean()
    return found


def main():
    given = asked(measure.options(__doc__), TABLES, epsilons=[1.0], seeds=[41, 42, 43])
    for name, epsilon in itertools.product(given.tables, given.epsilon):
        flows, options = table(name)
        made = (released(flows, options, epsilon=epsilon, seed=seed) for seed in given.seeds)
        runs = [measured(*one) for one in made]
        for words in runs[0]:
            mean = np.mean([run[words] for run in runs], axis=0)
            numbers = " ".join(f"{one:.4g}" for one in mean)
            print(f"{name}, epsilon {epsilon:g}, {words}: {numbers}", flush=True)


if __name__ == "__main__":
    main()
