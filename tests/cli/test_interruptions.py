"""Ctrl-C and SIGTERM: at once, but not amid the compiler, which does not survive it."""

import signal
import time
import types

import pytest

from inftda.cli import main
from patience import PATIENCE


@pytest.fixture
def interruptible(monkeypatch):
    """The handlers of the command line, in this process."""
    monkeypatch.setattr(main, "_forbid_core_dumps", lambda: None)
    monkeypatch.setattr(main, "run", lambda _: 0)
    before = {number: signal.getsignal(number) for number in HANDLED}
    with pytest.raises(SystemExit):
        main.main()
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in before.items():
        signal.signal(number, handler)


HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
CODE = """
def work(seconds, number, done):
    signal.raise_signal(number)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)
    done.append(True)
"""


def worker_in(module):
    """A function that is interrupted while it works, as if it belonged to a module."""
    made = types.ModuleType(module)
    made.signal, made.time = signal, time
    exec(CODE, made.__dict__)  # frames tell their module by what they run in
    return made.work


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("interruptible")
def test_work_of_ones_own_is_interrupted_at_once(number):
    done = []
    with pytest.raises(KeyboardInterrupt):
        worker_in("inftda.truth")(PATIENCE, number, done)
    assert done == []


@pytest.mark.parametrize("module", ["numba.core.caching", "llvmlite.binding.ffi"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("interruptible")
def test_the_compiler_ends_what_it_does_and_then_the_interruption_is_heard(module, number):
    done = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it comes a moment later
        worker_in(module)(0.2, number, done)
        time.sleep(PATIENCE)
    assert done == [True]
