"""The long audit: every claim, every planted fault, fresh secure bits, and a report.

Run `make audit`, or `python benchmarks/audit_report.py [--releases N] [--jobs N] [--json FILE]`
with `tests` on the path (PYTHONPATH), where the audit's parts are. The exit code is 0 if no claim
was disproved and every fault was caught.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from fractions import Fraction
from importlib.metadata import version
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from audit import faults
from audit.boxes import Calls, Copies, Runs, secure, seeded
from audit.cases import ONE, PEOPLE, PLANTED, PLANTED_ACROSS, PLANTED_SLOW, WEAK, Claim, all_claims
from audit.evidence import ODDS, Box, Finding, audit
from audit.independence import LARGEST, in_tree_order, likeness
from audit.pairs import FAR_TOO_MANY_TRIPS, PAIRS
from inftda.selftest import self_check_samplers

CLAIMS: Final = tuple(all_claims())
FAULTS: Final = PLANTED + PLANTED_ACROSS + PLANTED_SLOW


def one_by_one() -> Iterator[tuple[str, Box, int]]:
    """Sound builds, released one at a time: name, box, and number of releases."""
    for name in ("both ends moved", "one trip added", "one trip or none"):
        yield f"mechanism, {name}", Runs(PAIRS[name], ONE, secure), 20_000
    pair = PAIRS["one trip added"]
    yield "public function, one trip added", Calls(pair, WEAK, secure), 400
    yield "command line, one trip added", Calls(pair, WEAK, secure, by_command=True), 200
    box = Calls(FAR_TOO_MANY_TRIPS, WEAK, secure, **PEOPLE)
    yield f"public function, {FAR_TOO_MANY_TRIPS.name}", box, 400


def check_claim(task: tuple[int, int]) -> Finding:
    """Audit one claim."""
    number, releases = task
    return audit(CLAIMS[number].box(secure), releases)


def check_one_by_one(number: int) -> Finding:
    """Audit one box that releases one table at a time."""
    _, box, releases = list(one_by_one())[number]
    return audit(box, releases)


def check_fault(number: int) -> Finding:
    """Audit a build with a fault."""
    planted = FAULTS[number]
    with planted.plant():
        return audit(planted.box(secure), planted.n)


def check_self_test(variance: str) -> tuple[str, bool]:
    """Plant noise of a wrong variance, and see whether the self-test notices every sampler."""
    with faults.noise_scale(Fraction(float(variance) ** 0.5)):
        checks = [check for check in self_check_samplers() if "discrete" in check.name]
    return f"noise variance {variance} of what it should be", not any(c.ok for c in checks)


def check_likeness(is_planted: bool) -> tuple[str, float]:  # noqa: FBT001 - mapped over
    """How much of one release resembles the rest of it; a fault makes it so."""
    # The fault concerns sources that number their blocks, as the seeded one does.
    box = Copies(PAIRS["both ends moved"], ONE, seeded if is_planted else secure)
    if is_planted:
        with faults.bits_shared_by_blocks():
            sample = box.draw(50_000, 0)
    else:
        sample = box.draw(50_000, 0)
    value = likeness(in_tree_order(sample.left, 5))
    return "bits shared by items of work" if is_planted else "sound", value


def main() -> int:
    """Run everything and print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=100_000, help="of either table, per claim")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path, help="also write all findings to this file")
    options = parser.parse_args()
    start = time.monotonic()
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        caught = pool.map(check_fault, range(len(FAULTS)))
        self_tests = pool.map(check_self_test, ("0.97", "1.03"))
        alike = pool.map(check_likeness, (False, True))
        single = pool.map(check_one_by_one, range(len(list(one_by_one()))))
        held = pool.map(check_claim, [(n, options.releases) for n in range(len(CLAIMS))])
        ok = show_faults(list(_counted("faults", caught)), list(self_tests), list(alike))
        found = list(_counted("one by one", single))
        ok &= show_one_by_one(found)
        findings = list(_counted("claims", held))
    ok &= show_claims(findings, options.releases)
    if options.json:
        options.json.write_text(
            json.dumps([_record(*p) for p in zip(CLAIMS, findings, strict=True)])
        )
    minutes = (time.monotonic() - start) / 60
    verdict = "no claim disproved, every fault caught" if ok else "SOMETHING IS WRONG, see above"
    print(f"\ninftda {version('inftda-od')}: {verdict} ({minutes:.0f} minutes).")
    return 0 if ok else 1


def show_faults(
    found: list[Finding], self_tests: list[tuple[str, bool]], alike: list[tuple[str, float]]
) -> bool:
    """Planted faults: a table; whether all were caught."""
    print("Planted faults\n")
    print(f"{'fault':<58} {'delta':>6} {'claimed':>8} {'found':>7}  caught")
    for planted, finding in zip(FAULTS, found, strict=True):
        print(f"{planted.name:<58} {_numbers(finding)}  {_yes(finding.is_caught)}")
    for name, is_caught in self_tests:
        print(f"{name + ' (by the self-test)':<58} {'':>23}  {_yes(is_caught)}")
    name, value = alike[1]
    named = f"{name} (likeness {value:.0f}, at most {LARGEST})"
    print(f"{named:<58} {'':>23}  {_yes(value > LARGEST)}")
    all_caught = [finding.is_caught for finding in found]
    all_caught += [is_caught for _, is_caught in self_tests]
    all_caught.append(value > LARGEST)
    print(f"\n{sum(all_caught)} of {len(all_caught)} planted faults caught.")
    sound = alike[0][1]
    print(f"Likeness of a sound release with itself: {sound:.1f}, at most {LARGEST}.\n")
    return all(all_caught) and sound < LARGEST


def show_one_by_one(found: list[Finding]) -> bool:
    """Releases made one at a time; whether all claims held."""
    print("Sound build, released one at a time\n")
    print(f"{'box':<58} {'delta':>6} {'claimed':>8} {'found':>7}  releases of either table")
    for (name, _, _), finding in zip(one_by_one(), found, strict=True):
        print(f"{name:<58} {_numbers(finding)}  {finding.n:,}{_alarm(finding)}")
    return not any(finding.is_caught for finding in found)


def show_claims(found: list[Finding], releases: int) -> bool:
    """All claims: a row for each pair; whether all held."""
    print(f"\nSound build, {len(found)} claims, {releases:,} releases of either table each")
    print(f"(a sound build would be blamed with odds below {len(found) * ODDS:.0e})\n")
    print(f"{'pair':<38} {'delta':>6} {'claimed':>8}   lower bound found")
    pairs = zip(CLAIMS, found, strict=True)
    for pair, group in groupby(pairs, lambda row: row[0].pair.name):
        rows = list(group)
        bounds = ", ".join(
            f"{claim.accountant} {max(finding.lower, 0):.2f}{_alarm(finding)}"
            for claim, finding in rows
        )
        first = rows[0][1]
        print(f"{pair:<38} {first.delta:>6g} {first.epsilon:>8.3f}   {bounds}")
    return not any(finding.is_caught for finding in found)


def _numbers(finding: Finding) -> str:
    return f"{finding.delta:>6g} {finding.epsilon:>8.3f} {max(finding.lower, 0):>7.3f}"


def _yes(is_caught: bool) -> str:  # noqa: FBT001 - a formatter
    return "yes" if is_caught else "NO"


def _alarm(finding: Finding) -> str:
    return "  DISPROVED" if finding.is_caught else ""


def _record(claim: Claim, finding: Finding) -> dict[str, Any]:
    names = {"pair": claim.pair.name, "accountant": claim.accountant}
    return names | asdict(finding)


def _counted(what: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The same, with progress on standard error."""
    for number, finding in enumerate(findings, start=1):
        print(f"\r{what}: {number} done ", end="", file=sys.stderr, flush=True)
        yield finding
    print(file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
