"""Ctrl-C and SIGTERM: at once, but not amid the compiler, which does not survive it."""

import errno
import os
import signal
import subprocess
import sys
import time
import types

import pytest

from inftda.cli import main
from inftda.errors import ReleaseError
from patience import PATIENCE
from slow_table import write_slow_table


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
        worker_in("inftda.reading.truth")(PATIENCE, number, done)
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
    write_slow_table(tmp_path)
    line = "-m inftda release long.csv --areas many.csv --epsilon 1 --delta 1e-8 --out out"
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
    assert {path.name for path in tmp_path.iterdir()} == {"many.csv", "long.csv"}


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ("inftda.pipeline.release", "interrupted; nothing was published and no ledger was charged"),
        ("inftda.cli.publish.release_summary", "complete and in place"),
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


CHARGED = "the ledger was charged (data set 'census', epsilon = 1, delta = 1e-08; rho = 0.0"
STAGES = {
    "inftda.pipeline._Machine.read": (
        "nothing was published and nothing is left on disk; the ledger was not charged",
        "Running the release again is safe",
    ),
    "inftda.pipeline._Machine.release": (
        f"nothing was published and nothing is left on disk; {CHARGED}",
        "Running the release again costs its budget again",
    ),
    "inftda.pipeline.write_public_files": ("nothing is left on disk", CHARGED),
    "inftda.privacy.ledger.Charge.note_published": (
        "the release in 'out' is complete and in place: do not make it again", CHARGED,
    ),
    "inftda.cli.publish.release_summary": (
        "the release in 'out' is complete and in place: do not make it again", CHARGED,
    ),
}  # fmt: skip
FAILURES = {
    "interrupted": KeyboardInterrupt(),
    "out of memory": MemoryError(),
    "No space left on device": OSError(errno.ENOSPC, "No space left on device"),
    "unexpected ValueError": ValueError(),
}


def fails_with(problem):
    def fail(*_, **__):
        raise problem

    return fail


@pytest.fixture
def charged_release(typed, tmp_path):
    """Makes a release that is charged to a ledger."""
    ledger = tmp_path / "keep" / "ledger.db"
    ledger.parent.mkdir(mode=0o700)
    assert typed(f"ledger create {ledger} census --epsilon 3 --delta 1e-6").code == 0
    line = "release FLOWS --areas AREAS --epsilon 1 --delta 1e-8 --out out"
    return lambda more="": typed(f"{line} --ledger {ledger} --dataset census {more}")


@pytest.mark.parametrize("said", FAILURES)
@pytest.mark.parametrize("stage", STAGES)
def test_a_failure_is_told_with_what_is_charged_published_and_left(
    charged_release, tmp_path, monkeypatch, stage, said
):
    monkeypatch.setattr(stage, fails_with(FAILURES[said].__class__(*FAILURES[said].args)))
    done = charged_release()
    assert done.code == 1
    assert done.err.strip().count("\n") == 0
    for words in STAGES[stage]:
        assert words in done.err
    left = {path.name for path in tmp_path.iterdir()} - {"keep"}
    assert left == ({"out"} if "in place" in STAGES[stage][0] else set())


def test_an_interrupt_right_after_the_folder_is_renamed_says_that_it_is_in_place(
    charged_release, monkeypatch
):
    rename = os.rename

    def interrupted(old, new, **more):
        rename(old, new, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    assert "is complete and in place" in charged_release().err


def test_an_interrupt_while_the_ledger_is_written_says_where_to_look(charged_release, monkeypatch):
    monkeypatch.setattr("inftda.privacy.ledger._insert", fails_with(KeyboardInterrupt()))
    said = charged_release().err
    assert "nothing was published" in said
    assert "the ledger may have been charged: see inftda ledger show" in said


def test_a_refusal_after_the_charge_says_that_it_was_charged(charged_release, monkeypatch):
    monkeypatch.setattr("inftda.pipeline._opened", fails_with(ReleaseError("it cannot be opened")))
    done = charged_release()
    assert done.code == 2
    assert done.err.startswith(f"error: it cannot be opened; {CHARGED}")


def test_a_refusal_before_the_charge_says_nothing_of_it(charged_release):
    assert "ledger" not in charged_release("--trips 0").err


def test_a_folder_that_cannot_be_removed_is_named(charged_release, tmp_path, monkeypatch):
    monkeypatch.setattr("inftda.util.files._remove", lambda *_: None)
    monkeypatch.setattr("inftda.pipeline._Machine.release", fails_with(KeyboardInterrupt()))
    said = charged_release().err
    [left] = tmp_path.glob(".out.partial-*")
    assert f"{str(left)!r} could not be removed: remove it" in said
    assert "nothing is left" not in said
