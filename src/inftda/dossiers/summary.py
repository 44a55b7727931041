"""A summary for those who review a release: two pages in plain words.

Everything follows from the release, from the ledger if there is one, and from checks that are
run when the dossier is made; nothing here sees the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inftda.dossiers.document import Block, grid, heading, listing, paragraph, warning
from inftda.dossiers.registry import invariants, post_processing, sentence
from inftda.evaluation.typical import OFTEN_LOST, TypicalErrors
from inftda.ledger.budget import Dataset, Entry
from inftda.ledger.ledger import CANNOT_KNOW
from inftda.privacy.numbers import rounded_up
from inftda.publication.manifest import software_versions
from inftda.publication.release import Release
from inftda.publication.trust import NOT_PRIVATE, careful_words, not_shown
from inftda.reports.accuracy import BETA, LevelRow, level_rows
from inftda.reports.page import summary as sizes
from inftda.reports.promise import guess_bound, unit_words
from inftda.selftest import Check

_LONGEST_HISTORY = 12


@dataclass(frozen=True)
class Findings:
    """What was looked at when the dossier was made.

    Attributes:
        verified: what `verify` found right; why not, if it failed.
        problem: what it found wrong; empty if nothing.
        self_test: checks of this build; None if they were not run.
        errors: typical errors, simulated; None if they cannot be.
    """

    verified: tuple[str, ...]
    problem: str
    self_test: tuple[Check, ...] | None
    errors: TypicalErrors | None


def summary_blocks(
    release: Release, office: dict[str, Any], account: Dataset | None, findings: Findings
) -> list[Block]:
    """The parts of the summary, in order."""
    blocks = []
    if not release.manifest.private:
        blocks.append(warning(NOT_PRIVATE))
    if findings.problem:
        blocks.append(warning(f"This release does not verify: {findings.problem}"))
    blocks += [
        paragraph(sentence(office["description"])),
        paragraph(
            f"{sizes(release)}. Published on {office['publication_date']} by "
            f"{', '.join(office['data_curators'])}. Intended use: "
            f"{sentence(office['intended_use'])}"
        ),
        *_promise(release, office),
        *_over_time(account),
        *_invariant(release),
        *_errors(release, findings.errors),
        *_tested(release, findings),
    ]
    return blocks


def _promise(release: Release, office: dict[str, Any]) -> list[Block]:
    plan = release.manifest.plan
    guess = guess_bound(plan.epsilon, plan.delta, plan.rho)
    said = [
        heading("Who is protected, and how well"),
        grid(
            ("What", "In this release"),
            [
                ("Unit of privacy, and what neighbouring tables differ in", unit_words(release)),
                ("Guarantee", plan.describe()),
                ("Mechanism", release.manifest.mechanism),
            ],
            texts=2,
        ),
        paragraph(
            "Somebody who knows the table except for one person, and has to tell which of two "
            "possibilities is true of that person, is right in 50 % of cases by tossing a coin, "
            f"and in at most {100 * guess:.1f} % with all that is published."
        ),
    ]
    careful = careful_words(plan, total=release.total)
    said += [warning(f"Careful: {words}.") for words in careful]
    if "justification" in office:
        said.append(paragraph(f"Why this strength: {sentence(office['justification'])}"))
    tuned = office.get("preprocessing_and_hyperparameter_tuning", "the office does not say.")
    said.append(paragraph(f"Was anything tuned on confidential data? {sentence(tuned)}"))
    return said


def _over_time(account: Dataset | None) -> list[Block]:
    title = heading("What has been spent on these people")
    if account is None:
        words = (
            "No ledger was given, so this summary knows of this release only. Other releases "
            "about the same people add to what is spent."
        )
        return [title, paragraph(words)]
    rows = []
    for n, entry in enumerate(account.entries, start=1):
        epsilon = account.epsilon_spent(n)
        rows.append(
            (
                entry.charged[:10],
                _what(entry),
                f"rho = {rounded_up(entry.rho)}",
                "" if epsilon is None else rounded_up(epsilon),
            )
        )
    at = "" if account.budget.delta is None else f" at delta {float(account.budget.delta):.6g}"
    said = [title, paragraph(f"Data set {account.name}: {account.spent_words()}.")]
    if len(rows) > _LONGEST_HISTORY:
        said.append(paragraph(f"The last {_LONGEST_HISTORY} of {len(rows)} entries:"))
    head = ("Charged", "What", "Cost", f"Epsilon so far{at}")
    said.append(grid(head, rows[-_LONGEST_HISTORY:], texts=3))
    said.append(paragraph(f"Budget: {account.budget.describe()}. {CANNOT_KNOW}"))
    return said


def _what(entry: Entry) -> str:
    """What was charged."""
    return f"{entry.mechanism}: {entry.note}" if entry.note else entry.mechanism


def _invariant(release: Release) -> list[Block]:
    public = "; ".join(invariants(release))
    return [
        heading("What is published as it is"),
        paragraph(f"Without noise: {public}. Everything else carries noise."),
        paragraph(f"After the noise: {post_processing(release)}"),
    ]


def _errors(release: Release, errors: TypicalErrors | None) -> list[Block]:
    rows = level_rows(release, errors)
    unit = "trips" if release.tree.is_od else "counts"
    said = [heading("How far off the numbers are, and in which direction")]
    if any(row.typical or row.guaranteed is not None for row in rows):
        level = "Level (from > to)" if release.tree.is_od else "Level"
        head = (level, "Numbers", "Half within", "95 % within", "None beyond", "False")
        said.append(grid(head, [_error_cells(row) for row in rows]))
        said.append(
            paragraph(
                f"Errors in {unit}. “None beyond” is guaranteed: with probability "
                f"{100 * (1 - BETA):.0f} % it holds for every number of every level, published or "
                "not. “Half within”, “95 % within” and “False” (published, but zero in truth) are "
                "typical: simulated from the release"
                + (f" {errors.runs} times" if errors else "")
                + ", estimates and no guarantee."
            )
        )
    else:
        said.append(paragraph("Neither guaranteed nor typical errors are known for it."))
    said.append(listing(_biases(release, errors, rows)))
    return said


def _error_cells(row: LevelRow) -> tuple[str, ...]:
    overall = row.typical.overall if row.typical else None
    return (
        row.level.name,
        f"{overall.n_released:,}" if overall else "–",  # noqa: RUF001 - as people write it
        f"±{overall.median:,}" if overall else "–",  # noqa: RUF001
        f"±{overall.p95:,}" if overall else "–",  # noqa: RUF001
        f"±{row.guaranteed:,}" if row.guaranteed is not None else "–",  # noqa: RUF001
        f"{overall.false:.0%}".replace("%", " %") if overall else "–",  # noqa: RUF001
    )


def _biases(release: Release, errors: TypicalErrors | None, rows: Sequence[LevelRow]) -> list[str]:
    """What pulls numbers in one direction, and by how much."""
    said = []
    if release.manifest.description.values == "positive":
        vanish = "Small numbers often vanish, and what they had goes to larger ones beside them"
        finest = rows[-1].typical if errors and rows else None
        if finest and finest.often_lost:
            vanish += (
                f": at the finest level true numbers up to about {finest.often_lost:,} are "
                f"published as zero at least once in {1 / OFTEN_LOST:.0f} times"
            )
        said.append(f"{vanish}. An unpublished cell is not known to be empty.")
    if release.tree.is_od:
        said.append(
            "Totals of areas were measured by themselves, and released flows come near them: "
            "measured numbers are in measurements.parquet."
            if release.has_totals
            else "Totals of areas in the direction that is refined last gather what vanished, all "
            "of it in one direction; they were not measured by themselves."
        )
    counted = not_shown(release)
    said.append(
        f"Not in the table: {counted}. Errors do not include what this leaves out."
        if counted
        else "All rows of the table were counted."
    )
    return said


def _tested(release: Release, findings: Findings) -> list[Block]:
    made, here = dict(release.manifest.software), software_versions()
    differ = [name for name in made if made[name] != here.get(name)]
    said = []
    if findings.verified:
        said.append(
            "The release: “inftda verify” recomputed the guarantee from the noise and checked "
            f"every file ({len(findings.verified)} checks, all passed). Anybody can repeat it."
        )
    said.append(_self_test_words(findings.self_test))
    said.append(
        "The program: its tests include an audit that releases neighbouring tables many thousands "
        "of times and looks for what tells them apart, and that finds faults planted on purpose; "
        "its documentation says what was found. The audit is about the program, not this release."
    )
    said.append(
        "What cannot be checked from outside: that the noise was drawn as stated and from that "
        "table, and that nobody has more trips than the unit of privacy says."
    )
    versions = ", ".join(f"{name} {version}" for name, version in made.items())
    words = f"Made with {versions}."
    if differ:
        words += f" The checks ran with other versions of {', '.join(differ)}."
    digest = release.manifest.flows_sha256
    return [
        heading("What was tested"),
        listing(said),
        paragraph(words),
        *([paragraph(f"SHA-256 of the flows: {digest}")] if digest else []),
    ]


def _self_test_words(checks: tuple[Check, ...] | None) -> str:
    if checks is None:
        return "The build: its self-test was not run for this dossier (“inftda selftest”)."
    failed = [check.name for check in checks if not check.ok]
    if failed:
        return f"The build: its self-test FAILED: {', '.join(failed)}. It must not be used."
    return (
        f"The build: its self-test ({len(checks)} checks of samplers, optimiser and accounting) "
        "passed when this dossier was made."
    )
