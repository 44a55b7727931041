"""SIGKILL at any moment: a release is there and verifies, or it is not there; a re-run works.

With a ledger, nothing of a release is ever visible that was not charged before.
Random moments differ from run to run; what fails says which one it was, and how to get the
same ones again.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from inftda.demo import make_country
from inftda.privacy.budget import Budget
from inftda.privacy.ledger import Ledger
from inftda.privacy.unit import Unit
from inftda.publication.verify import verify
from patience import PATIENCE

pytestmark = pytest.mark.slow

KILLED = -9
#: An empty Parquet file being written: its first four bytes.
MAGIC = 4


class Site:
    """A folder in which releases are made and killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.again = f"the same moments again with --randomly-seed={seed}"
        self.seed = seed
        self.folder, self.temporary = folder, folder / "tmp"
        self.out, self.path = folder / "out", folder / "ledger.db"
        self.temporary.mkdir()
        country = make_country((3, 9, 60), 20_000, seed=5)
        pq.write_table(country.flows(), folder / "flows.parquet")
        pa_csv.write_csv(country.areas.to_table(), folder / "areas.csv")
        self.ledger = Ledger.create(self.path)
        self.ledger.add("census", Unit(), Budget.make(rho="5000"))
        self.given = {"areas.csv", "flows.parquet", "ledger.db", "tmp"}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("zygote.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
            env={**os.environ, "TMPDIR": str(self.temporary)},
        )  # fmt: skip
        self._answer()
        done = self.release()
        assert done["code"] == 0
        self.events = done["events"]
        self.check_rerun()

    def release(self, *options, **moment):
        arguments = [
            "release", "flows.parquet", "--areas", "areas.csv", "--rho", "0.02", "--quiet",
            "--out", "out", "--ledger", "ledger.db", "--dataset", "census", *options,
        ]  # fmt: skip
        self.process.stdin.write(json.dumps({"arguments": arguments, **moment}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self):
        return json.loads(self.process.stdout.readline())

    def entries(self):
        return self.ledger.dataset("census").entries

    def clear(self):
        for path in sorted(self.out.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        if self.out.exists():
            self.out.rmdir()

    def check_after_kill(self, entries_before, content_before):
        """What must hold right after the process is gone."""
        charged = len(self.entries()) - entries_before
        assert charged in {0, 1}
        is_published = bool(charged) and self.entries()[-1].published is not None
        if self.out.exists():
            list(verify(self.out))
            is_new = (self.out / "flows.parquet").read_bytes() != content_before
            assert charged == 1 or not is_new, "visible, but not charged"
        else:
            assert not is_published, "noted as published, but not there"
        for partial in self.folder.glob(".out.partial-*"):
            assert partial.stat().st_mode & 0o777 == 0o700
            flows = partial / "new" / "flows.parquet"
            if flows.exists() and flows.stat().st_size > MAGIC:
                assert charged == 1, "written, but not charged"
        for spill in self.temporary.iterdir():
            assert spill.stat().st_mode & 0o777 == 0o700

    def check_rerun(self):
        """Another try works and clears up what the killed one left, its secrets included."""
        done = self.release("--force")
        assert done["code"] == 0
        self.seconds = done["seconds"]
        list(verify(self.out))
        assert {path.name for path in self.folder.iterdir()} == {*self.given, "out"}
        assert list(self.temporary.iterdir()) == []

    def kill(self, *, is_replacing, **moment):
        """One killed release; returns whether it was killed before it was done."""
        try:
            return self._kill(is_replacing, moment)
        except BaseException as problem:
            problem.add_note(f"killed {moment}, {is_replacing = }; {self.again}")
            raise

    def _kill(self, is_replacing, moment):
        if not is_replacing:
            self.clear()
        before = (self.out / "flows.parquet").read_bytes() if is_replacing else None
        n_entries = len(self.entries())
        done = self.release("--force", **moment)
        assert done["code"] in {0, KILLED}
        self.check_after_kill(n_entries, before)
        self.check_rerun()
        return done["code"] == KILLED

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory, pytestconfig):
    made = Site(tmp_path_factory.mktemp("site"), pytestconfig.getoption("randomly_seed", 0))
    yield made
    made.close()


@pytest.fixture
def chance(site, request):
    """Random numbers of a test: of its own, so that it can be repeated alone."""
    return random.Random(f"{site.seed} {request.node.name}")


@pytest.mark.parametrize("is_replacing", [False, True])
def test_a_release_killed_at_a_random_moment_is_there_as_a_whole_or_not_at_all(
    site, chance, is_replacing
):
    for _ in range(3):
        site.kill(is_replacing=is_replacing, after=chance.uniform(0, site.seconds))
        # No release has fewer events than the first one had, so none gets away.
        is_killed = site.kill(is_replacing=is_replacing, at=chance.randint(1, site.events))
        assert is_killed, site.again


@pytest.mark.nightly
@pytest.mark.parametrize("is_replacing", [False, True])
def test_every_file_event(site, is_replacing):
    at = 1
    while site.kill(is_replacing=is_replacing, at=at):
        at += 1
    assert at > 20, "too few events: this test shows nothing"


@pytest.mark.parametrize(
    ("on", "is_charged", "is_begun", "is_there"),
    [
        (("os.mkdir", ".out.partial-"), False, False, False),
        (("open", ".out.partial-"), False, True, False),  # when it is locked
        (("open", "manifest.json', 'w'"), True, True, False),
        (("os.rename", ""), True, True, False),
        (("os.rmdir", ".out.partial-"), True, True, True),  # when it is in place
    ],
)
def test_at_known_moments_the_state_is_the_one_that_was_meant(
    site, on, is_charged, is_begun, is_there
):
    site.clear()
    n_entries = len(site.entries())
    assert site.release("--force", on=on)["code"] == KILLED
    assert len(site.entries()) - n_entries == is_charged
    assert any(site.folder.glob(".out.partial-*")) == is_begun
    assert site.out.exists() == is_there
    site.check_after_kill(n_entries, None)
    site.check_rerun()
