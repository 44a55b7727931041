"""From a release to a folder for its reviewers.

Its sources are the release, the ledger if there is one, and checks that are run when the dossier
is made. True counts are never read.
"""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from inftda.documents.registry import POST_PROCESSING, invariants, registry_entry
from inftda.errors import InftdaError, ReleaseError
from inftda.options import Option, documented
from inftda.pages import html
from inftda.privacy.budget import Dataset, Spending
from inftda.privacy.ledger import CANNOT_KNOW, Ledger
from inftda.privacy.risk import PRECEDENTS, risk_of
from inftda.privacy.unit import Unit
from inftda.publication.manifest import software_versions
from inftda.publication.release import Release, open_release
from inftda.publication.reliability import NOT_PRIVATE, counting_note, warnings
from inftda.publication.summary import BETA, default_title, describe_size, level_rows
from inftda.publication.verify import verify
from inftda.selftest import self_test
from inftda.util.exact_numbers import rounded_up
from inftda.util.files import check_folder, check_own, check_unpublished, whole_folder

REGISTRY, MARKDOWN, HTML = "registry.yaml", "summary.md", "summary.html"
FILES: Final = (REGISTRY, MARKDOWN, HTML)
_LONGEST_HISTORY: Final = 12
#: Refuses to replace a folder that is not a dossier.
_CHECK: Final = partial(check_own, own=FILES, what="a dossier")


@documented
def dossier(  # noqa: PLR0913 - one keyword for each thing an office may decide
    release: Annotated[
        str | Path, Option("Folder of a release.", metavar="RELEASE", is_argument=True)
    ],
    *,
    out: Annotated[str | Path, Option("Folder to write, not in a release.")],
    ledger: Annotated[
        str | Path | None,
        Option("Ledger that it was charged to; goes with dataset.", metavar="FILE"),
    ] = None,
    dataset: Annotated[str | None, Option("Data set of that ledger.")] = None,
    title: Annotated[str | None, Option("Title of the release.")] = None,
    selftest: Annotated[
        bool,
        Option(
            "Check this build as well, which takes seconds.", spelling="--selftest/--no-selftest"
        ),
    ] = True,
    force: Annotated[
        bool, Option("Replace a dossier that is there, with all that was written into it.")
    ] = False,
) -> Path:
    """Write the dossier of a release.

    Returns:
        The folder: `registry.yaml`, which the office completes, `summary.md` and `summary.html`.

    Raises:
        InftdaError: the ledger has no such data set, or `out` must not be written.

    Privacy:
        Post-processing of the release: no cost.
    """
    folder = Path(out)
    check_unpublished(folder)
    check_folder(folder, force=force, check=_CHECK)
    opened = open_release(release)
    account = _account(ledger, dataset, opened.manifest.plan.unit)
    plan, name, size = opened.manifest.plan, title or default_title(opened), describe_size(opened)
    facts = {
        "title": name,
        "manifest": opened.manifest,
        "plan": plan,
        "not_private": NOT_PRIVATE,
        "size": size,
        "risk": risk_of(plan).describe(),
        "precedents": PRECEDENTS,
        "use_from": {use.level.index: use.size for use in opened.uses},
        "finest_use": opened.uses[-1].describe() if opened.uses else "",
        "warnings": warnings(plan, total=opened.total),
        "invariants": invariants(opened),
        "post_processing": POST_PROCESSING,
        "is_od": opened.tree.is_od,
        "has_totals": opened.has_totals,
        "counted": counting_note(opened),
        "rows": level_rows(opened),
        "confidence": 1 - BETA,
        **_check_facts(release, opened, selftest=selftest),
        "account": None if account is None else _spending(account),
    }
    texts = {
        REGISTRY: registry_entry(opened, account, title=name, description=f"{size}."),
        MARKDOWN: html.render_markdown("summary.md", facts),
        HTML: html.render("summary.html", facts, title=name, style="summary.css"),
    }
    with whole_folder(folder, force=force, check=_CHECK) as partial:
        for name, text in texts.items():
            (partial / name).write_text(text, encoding="utf-8")
    return folder


def _account(ledger: str | Path | None, dataset: str | None, unit: Unit) -> Dataset | None:
    """The data set of a ledger, refused if its privacy unit is not that of the release."""
    if (ledger is None) != (dataset is None):
        raise InftdaError("a ledger and its data set go together; give `ledger=` and `dataset=`")
    if ledger is None or dataset is None:
        return None
    account = Ledger(ledger).dataset(dataset)
    if account.unit.describe() != unit.describe():
        raise InftdaError(
            f"the data set {account.name!r} of the ledger has another privacy unit than this "
            "release; name the one that it was charged to"
        )
    return account


def _check_facts(folder: str | Path, release: Release, *, selftest: bool) -> dict[str, Any]:
    """Run the checks of a dossier: verification and, if asked for, the self-test."""
    try:
        verified, problem = len([*verify(folder)]), ""
    except ReleaseError as found:
        verified, problem = 0, str(found)
    checks = [*self_test()] if selftest else []
    made, here = dict(release.manifest.software), software_versions()
    return {
        "n_verified": verified,
        "problem": problem,
        "n_self_tests": len(checks),
        "failed": [check.name for check in checks if not check.ok],
        "other_software": [name for name in made if made[name] != here.get(name)],
    }


def _spending(account: Dataset) -> dict[str, Any]:
    """The used budget of a data set, charge by charge."""
    rows = []
    for n, charge in enumerate(account.entries, start=1):
        epsilon = Spending(account.budget, account.entries[:n]).epsilon
        what = f"{charge.mechanism}: {charge.note}" if charge.note else charge.mechanism
        sum_so_far = "" if epsilon is None else rounded_up(epsilon)
        rows.append((charge.charged[:10], what, f"rho = {rounded_up(charge.rho)}", sum_so_far))
    delta = account.budget.delta
    return {
        "name": account.name,
        "spent": "; ".join(account.spent_words()),
        "n_charges": len(rows),
        "rows": rows[-_LONGEST_HISTORY:],
        "at_delta": "" if delta is None else f" at delta {float(delta):.6g}",
        "budget": account.budget.describe(),
        "cannot_know": CANNOT_KNOW,
    }
