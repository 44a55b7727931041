"""The entry of a release in OpenDP's registry of deployments, as YAML for the office to complete.

The template beside this module has the fields of the registry in its order, with a comment
for each field that the office writes. Fields known from the release and its ledger are filled in.
"""

import math
import re
import unicodedata
from pathlib import Path
from typing import Final

from inftda.privacy.budget import Dataset
from inftda.publication.release import Release
from inftda.publication.reliability import NOT_PRIVATE, counting_note

_TEMPLATE: Final = Path(__file__).with_name("registry.yaml")
#: Post-processing of the noisy numbers.
POST_PROCESSING: Final = (
    "From the coarsest level to the finest, the noisy numbers under each node are replaced by "
    "non-negative integers that add up to the number published for it; coarser numbers are exact "
    "sums of finer ones."
)


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
