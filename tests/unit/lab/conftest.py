"""Settings for the tests of the baselines' optimisers."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _words_wrap():
    """Let 64-bit words wrap silently where kernels run interpreted, as they do compiled."""
    with np.errstate(over="ignore"):
        yield
