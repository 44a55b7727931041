"""Ctrl-C and SIGTERM: at once, but not amid the compiler, which does not survive it."""

import os
import signal
import subprocess
import sys
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


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_release_leaves_nothing_and_says_so(tmp_path, number):
    """The signal comes while hundreds of millions of cells are being drawn."""
    towns = [f"{i:06d}" for i in range(20_000)]
    (tmp_path / "areas.csv").write_text("\n".join(["town", *towns]))
    rows = ["origin,destination,count", *(f"{town},{town},999" for town in towns)]
    (tmp_path / "flows.csv").write_text("\n".join(rows))
    line = "-m inftda release flows.csv --areas areas.csv --epsilon 1 --delta 1e-8 --out out"
    process = subprocess.Popen(
        [sys.executable, *line.split(), "--quiet"], cwd=tmp_path, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    deadline = time.monotonic() + PATIENCE
    while not list(tmp_path.glob(".out.partial-*")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "nothing was published" in said
    assert {path.name for path in tmp_path.iterdir()} == {"areas.csv", "flows.csv"}


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ("inftda.publish.release", "interrupted; nothing was published"),
        ("inftda.cli.release.summary", "complete and in place"),
        ("inftda.cli.output.as_text", "complete and in place"),
    ],
)
def test_the_demo_says_whether_its_release_was_published(cli, tmp_path, monkeypatch, stage, said):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(stage, interrupt)
    done = cli("demo", "--out", tmp_path / "demo")
    assert done.code == 1
    assert said in done.err
    assert (tmp_path / "demo/release").exists() == ("in place" in said)
