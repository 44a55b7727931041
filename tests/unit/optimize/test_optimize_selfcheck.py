"""The self-check passes on this build and sees a broken one."""

import numpy as np

from inftda import selftest
from inftda.optimize.selection import OK
from inftda.selftest import self_check_optimizer


def test_all_checks_pass():
    checks = self_check_optimizer()
    assert [check for check in checks if not check.ok] == []
    assert len({check.name for check in checks}) == 3


def off_by_one(_x, total, _seed, *rest):
    """A kernel that moves one unit between the first and the last element."""
    out = rest[-1]
    out[:] = 0
    out[0] = total
    if total and len(out) > 1:
        out[0] -= 1
        out[-1] += 1
    return OK


def test_a_broken_kernel_is_seen(monkeypatch):
    monkeypatch.setattr(selftest, "intopt_into", off_by_one)
    broken = [check for check in self_check_optimizer() if not check.ok]
    assert len(broken) == 3
    assert any("wrong on vector" in check.detail for check in broken)


def test_a_wrong_order_is_seen(monkeypatch):
    right = selftest.intopt_into

    def turned(x, total, seed, is_descending, out):
        return right(x, total, np.uint64(seed), not is_descending, out)

    monkeypatch.setattr(selftest, "intopt_into", turned)
    broken = [check.name for check in self_check_optimizer() if not check.ok]
    assert broken == ["IntOpt, ascending", "IntOpt, descending"]
