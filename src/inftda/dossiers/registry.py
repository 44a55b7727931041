"""The entry of a release in OpenDP's registry of deployments, as YAML."""

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from inftda.dossiers.fields import FIELDS, Field, tier_of
from inftda.errors import InftdaError
from inftda.ledger.budget import Dataset
from inftda.publication.release import Release
from inftda.publication.trust import NOT_PRIVATE, not_shown
from inftda.reports.promise import unit_words
from inftda.tree import Tree


def entry_of(
    release: Release, office: Mapping[str, Any], account: Dataset | None
) -> dict[str, Any]:
    """The entry: what follows from the release, and what the office states.

    Args:
        release: what was published.
        office: answers of the office, checked.
        account: its data set in a ledger, if there is one.
    """
    values = {f"deployment.{path}": value for path, value in _known(release, account).items()}
    values |= {
        "url_slug": _slug(office["name"]),
        "status": "Draft",
        "deployment.basic.data_product_type": "Summary statistics",
    }
    for field in FIELDS:
        if field.key in office:
            values[field.path] = office[field.key]
    tuned = "deployment.implementation.preprocessing_and_hyperparameter_tuning"
    values[tuned] = _together(values.get(tuned), _counted(release))
    stated = {path for path, value in values.items() if value is not None}
    values.setdefault("tier", tier_of(stated))
    entry: dict[str, Any] = {}
    for field in FIELDS:  # in the order of the registry
        if values.get(field.path) is not None:
            _put(entry, field.path, values[field.path])
    check_entry(entry)
    return entry


def as_yaml(entry: Mapping[str, Any]) -> str:
    """The entry as people read it."""
    import yaml  # noqa: PLC0415 - only here

    return str(yaml.safe_dump(dict(entry), sort_keys=False, allow_unicode=True, width=100))


def check_entry(entry: Mapping[str, Any]) -> None:
    """Refuse what the registry does not know, or not in this form.

    Raises:
        InftdaError: a field is unknown, missing, of another kind, or not one of its values.
    """
    known = {field.path: field for field in FIELDS}
    found = dict(_flat(entry))
    for path, value in found.items():
        if path not in known:
            raise InftdaError(f"the registry knows no field {path!r}; leave it out")
        if not _fits(known[path], value):
            raise InftdaError(f"{path} of the registry's entry must not be {str(value)[:60]!r}")
    for path, field in known.items():
        if field.required and path not in found:
            raise InftdaError(f"the registry's entry needs {path}")


def _fits(field: Field, value: Any) -> bool:
    kinds: dict[str, tuple[type, ...]] = {
        "text": (str,),
        "texts": (list,),
        "whole": (int,),
        "number": (int, float),
        "number or text": (int, float, str),
        "any": (object,),
    }
    if not isinstance(value, kinds[field.kind]) or isinstance(value, bool):
        return False
    if isinstance(value, list) and not (value and all(isinstance(one, str) for one in value)):
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if field.is_date and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", str(value)):
        return False
    return not field.allowed or value in field.allowed


def _flat(entry: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in entry.items():
        path = f"{at}.{key}" if at else str(key)
        if isinstance(value, Mapping):
            yield from _flat(value, path)
        else:
            yield path, value


def _put(entry: dict[str, Any], path: str, value: Any) -> None:
    *above, key = path.split(".")
    for part in above:
        entry = entry.setdefault(part, {})
    entry[key] = value


def _known(release: Release, account: Dataset | None) -> dict[str, Any]:
    """What follows from the release, and from its ledger if there is one."""
    plan = release.manifest.plan
    is_many = account is not None and len(account.entries) > 1
    promised = {
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "rho": None if plan.rho is None else _above(plan.rho),
    }
    if not release.manifest.private:  # whatever the plan says
        promised = {}
    return {
        "dp_variant.variant_name": _variant(plan.epsilon, plan.delta),
        "dp_variant.data_domain": _domain(release.tree),
        "dp_variant.unprotected_quantities": "; ".join(invariants(release)),
        "privacy_loss.privacy_unit": "Person",
        "privacy_loss.privacy_unit_details": unit_words(release),
        **{f"privacy_loss.privacy_parameters.{key}": value for key, value in promised.items()},
        "privacy_loss.privacy_parameters_details": (
            plan.describe() if release.manifest.private else NOT_PRIVATE
        ),
        "deployment_model.model_name": "Central",
        "deployment_model.release_type": "Many releases" if is_many else "One release",
        "deployment_model.release_type_details": _spent(account),
        "deployment_model.access_type": "Non-interactive",
        "deployment_model.access_type_details": "Tables, published once; they answer no queries.",
        "accounting.post_processing": post_processing(release),
        "accounting.composition": _composition(release),
        "implementation.mechanisms": mechanism_words(release),
    }


def _variant(epsilon: float | None, delta: float | None) -> str:
    if epsilon is None:
        return "Zero-concentrated DP"
    return "Approximate DP" if delta else "Pure DP"


def _above(value: Any) -> float:
    """The nearest float that is no less: a promise is never overstated."""
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def _domain(tree: Tree) -> str:
    cells = tree.levels[-1].n_nodes
    axes = ", ".join(
        f"{axis.name} ({axis.hierarchy.n_areas(axis.hierarchy.depth):,} "
        f"{axis.hierarchy.level_names[-1]})"
        for axis in tree.axes
    )
    return f"Counts in {cells:,} possible cells of public hierarchies: {axes}"


def invariants(release: Release) -> list[str]:
    """What is published as it is, without noise."""
    said = ["the areas and their hierarchy, which are public", "all parameters of the noise"]
    manifest = release.manifest
    if manifest.description.is_top_down and manifest.plan.unit.root_is_public:
        said.insert(0, "the total of all that was counted")
    return said


def mechanism_words(release: Release) -> str:
    """What was drawn, in one sentence."""
    plan = release.manifest.plan
    parts = [f"{level.name}: {level.noise}" for level in (*plan.levels, *plan.tables)]
    options = ", ".join(f"{key} {value}" for key, value in release.manifest.options.items())
    return f"{release.manifest.mechanism} ({options}). Noise of each level: {'; '.join(parts)}"


def post_processing(release: Release) -> str:
    """What was done to noisy numbers, without looking at the table again."""
    if not release.manifest.description.is_top_down:
        return "Coarser numbers are sums of the noisy finest ones."
    return (
        "From the coarsest level to the finest, noisy numbers under each node are replaced by "
        "non-negative integers that add up to the number published for it; coarser numbers are "
        "exact sums of finer ones."
    )


def _composition(release: Release) -> str:
    plan = release.manifest.plan
    n = len(plan.levels) + len(plan.tables)
    noise = "one measurement" if n == 1 else f"{n} measurements with independent noise"
    if not release.manifest.private:
        return f"The release is made of {noise}. {NOT_PRIVATE}"
    return f"The release is made of {noise}; together they give {plan.describe()}."


def _spent(account: Dataset | None) -> str | None:
    return None if account is None else f"By its ledger: {account.spent_words()}."


def _counted(release: Release) -> str:
    words = not_shown(release)
    return f"Counted: {words}." if words else "Counted: all rows of the table."


def _together(stated: str | None, known: str) -> str | None:
    """The answer of the office, and what is known; nothing without the answer."""
    if not stated:
        return None
    return f"{sentence(stated)} {known}"


def sentence(words: str) -> str:
    """What somebody wrote, with a stop at its end.

    >>> sentence("No"), sentence("Why not?")
    ('No.', 'Why not?')
    """
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _slug(name: str) -> str:
    """A name as part of a web address.

    >>> _slug("Città: commuting, 2021")
    'citta-commuting-2021'
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:80] or "release"
