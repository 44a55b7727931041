"""From a release to a folder for its reviewers.

The entry in OpenDP's registry of deployments is YAML for the office to complete. Its template
beside this module has the fields of the registry in their order, with a comment for each field that
the office writes; fields known from the release and its ledger are filled in.

Its sources are the release, the ledger if there is one, and checks that are run when the dossier
is made. True counts are never read.
"""

import math
import re
import unicodedata
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

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
_TEMPLATE: Final = Path(__file__).with_name("registry.yaml")
#: Post-processing of the noisy numbers.
POST_PROCESSING: Final = (
    "From the coarsest level to the finest, the noisy numbers under each node are replaced by "
    "non-negative integers that add up to the number published for it; coarser numbers are exact "
    "sums of finer ones."
)
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


# --- the entry of the registry


def registry_entry(
    release: Release, account: Dataset | None, *, title: str, description: str
) -> str:
    """The entry as YAML text, with the charges of the release's ledger if they are known."""
    manifest, plan = release.manifest, release.manifest.plan
    measured = (*plan.levels, *plan.tables)
    drawn = f"{len(measured)} measurements with independent noise"
    made_of = f"The release is made of {drawn if len(measured) > 1 else 'one measurement'}"
    axes = ", ".join(
        f"{axis.name} ({axis.hierarchy.n_areas(axis.hierarchy.depth):,} "
        f"{axis.hierarchy.level_names[-1]})"
        for axis in release.tree.axes
    )
    noise = "; ".join(f"{level.name}: {level.noise}" for level in measured)
    is_many = account is not None and len(account.entries) > 1
    variant = "Approximate DP" if plan.delta else "Pure DP"
    rho = float(plan.rho)
    known: dict[str, str | float | None] = {
        "url_slug": _slug(title),
        "name": title,
        "description": description,
        "variant_name": "Zero-concentrated DP" if plan.epsilon is None else variant,
        "data_domain": f"Counts in {release.tree.levels[-1].n_nodes:,} possible cells of public "
        f"hierarchies: {axes}",
        "unprotected_quantities": invariants(release),
        "privacy_unit_details": plan.unit.describe(),
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        # Rounded up, so that the cost is never understated.
        "rho": rho if rho >= plan.rho else math.nextafter(rho, math.inf),
        "privacy_parameters_details": plan.describe(),
        "release_type": "Many releases" if is_many else "One release",
        "release_type_details": None
        if account is None
        else f"By its ledger: {'; '.join(account.spent_words())}.",
        "post_processing": POST_PROCESSING,
        "composition": f"{made_of}; together they give {plan.describe()}.",
        "tuning": f"Yes or no. Counted: {counting_note(release) or 'all rows of the table'}.",
        "mechanisms": f"{manifest.mechanism}, with "
        f"{plan.describe_noise()}. Noise of each level: {noise}",
    }
    if not manifest.private:  # made with a seed, so there is no guarantee
        known |= dict.fromkeys(("epsilon", "delta", "rho"))
        known["privacy_parameters_details"] = NOT_PRIVATE
        known["composition"] = f"{made_of}. {NOT_PRIVATE}"
    values = {name: as_yaml(value) for name, value in known.items()}
    return _TEMPLATE.read_text(encoding="utf-8").format_map(values)


def as_yaml(value: str | float | None) -> str:
    r"""A value as YAML on one line; a text in double quotes, its special characters escaped.

    >>> print(as_yaml('A "town": #1'), as_yaml("two\nlines"), as_yaml(1e-8), as_yaml(None))
    "A \"town\": #1" "two\x0alines" 1.0e-08 null
    """
    if value is None:
        return "null"
    if isinstance(value, str):
        return f'"{"".join(map(_escaped, value))}"'
    digits, e, power = repr(float(value)).partition("e")
    # Readers of YAML 1.1 take 1e-08 for a text.
    return f"{digits}.0{e}{power}" if "." not in digits else f"{digits}{e}{power}"


def _escaped(sign: str) -> str:
    """One character in double quotes; those that YAML does not allow, or folds, as their code."""
    if sign in {'"', "\\"}:
        return f"\\{sign}"
    if sign.isprintable():
        return sign
    code = ord(sign)
    return f"\\x{code:02x}" if code < 1 << 8 else f"\\U{code:08x}"


def invariants(release: Release) -> str:
    """List the published facts without noise."""
    is_public = release.manifest.plan.unit.root_is_public
    total = "the total of all that was counted; " if is_public else ""
    return f"{total}the areas and their hierarchy, which are public; all parameters of the noise"


def _slug(name: str) -> str:
    """A name as part of a web address.

    >>> _slug("Città: commuting, 2021")
    'citta-commuting-2021'
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:80].strip("-") or "release"
