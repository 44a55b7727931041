"""Errors of simulated releases are counted in bins."""

import numpy as np
import pytest

from inftda.previews.errors import EXACT_ERRORS, N_BINS, bin_of, quantile


@pytest.mark.parametrize("share", [0.5, 0.95])
@pytest.mark.parametrize("largest", [200, 10**4, 10**12])
def test_quantiles_are_exact_while_small_and_one_percent_off_at_most(share, largest):
    values = np.random.default_rng(1).integers(0, largest, 5000)
    bins = np.bincount(bin_of(values), minlength=N_BINS)
    exact = int(np.sort(values)[int(np.ceil(share * 5000)) - 1])
    found = quantile(bins, share)
    if exact < EXACT_ERRORS:
        assert found == exact
    else:
        assert exact <= found <= 1.011 * exact + 1
