"""What one person can change among the leaf counts, for baselines that noise single leaves.

The product needs squared changes of whole levels only (`inftda.privacy.unit`). Must never look
at the trips, as there.
"""

from inftda.privacy.unit import PrivacyUnit


def l1_sensitivity(unit: PrivacyUnit) -> int:
    """Largest sum of absolute changes of leaf counts."""
    return unit.trips * (2 if unit.is_substitute else 1)


def max_new_cells(unit: PrivacyUnit) -> int:
    """Most leaf cells that are empty in one table and not in its neighbour.

    Under "substitute" as many more may change the other way round.
    """
    return unit.trips


def max_cell_change(unit: PrivacyUnit) -> int:
    """Largest change of a single leaf count."""
    return 1 if unit.distinct else unit.trips
