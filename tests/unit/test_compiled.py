"""Kernels are compiled whatever numba allows: with or without a cache, its own options or not."""

from pathlib import Path

import numpy as np
import pytest
from numba import config
from numba.core.caching import CacheImpl
from numba.core.cpu import CPUTargetOptions

import inftda
from inftda import compiled

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")


def added_up(values):
    total = 0
    for value in values:
        total += value
    return total


@pytest.mark.parametrize(
    "decorator", [compiled.kernel, compiled.inlined_kernel, compiled.allocating_kernel]
)
def test_a_kernel_works_where_machine_code_cannot_be_kept(decorator, monkeypatch):
    """As in a folder that is read only, for a user without a home."""
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache"):
        compiled.njit(cache=True)(added_up)
    assert decorator(added_up)(np.arange(5)) == 10


def test_a_kernel_works_without_numbas_private_option(monkeypatch):
    """It may go with any version of numba, which then refuses to compile with it."""
    assert compiled.NO_REFERENCE_COUNTS == {"_nrt": False}, "kernels are slower without"
    owner = next(kind for kind in CPUTargetOptions.__mro__ if "_nrt" in vars(kind))
    monkeypatch.delattr(owner, "_nrt")
    with pytest.raises(KeyError, match="_nrt"):
        compiled.njit(**compiled.NO_REFERENCE_COUNTS)(added_up)(np.arange(5))
    monkeypatch.setattr(compiled, "NO_REFERENCE_COUNTS", compiled._known({"_nrt": False}))
    assert compiled.kernel(added_up)(np.arange(5)) == 10


def test_all_kernels_are_compiled_alike():
    package = Path(inftda.__file__).parent
    users = {path.name for path in package.rglob("*.py") if "njit" in path.read_text("utf-8")}
    assert users == {"compiled.py"}
