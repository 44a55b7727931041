"""What stands in leaves, whatever their order."""

from collections import Counter


def leaf_counts(leaves):
    """From the areas of every leaf to its count: one may stand there in several parts."""
    found = Counter()
    areas = zip(*(axis.tolist() for axis in leaves.areas), strict=True)
    for leaf, count in zip(areas, leaves.value.tolist(), strict=True):
        found[leaf] += count
    return found
