"""What an export says of itself: what is promised, and what readers must know."""

import json
from typing import Any, Final

from inftda.exports.source import Source
from inftda.publication.caveats import NOT_PRIVATE, not_shown
from inftda.publication.release import Release
from inftda.reports.page import summary

_ZEROS: Final = (
    "A cell that is not listed is not known to be empty, and some small numbers are zero in truth."
)
_ESTIMATED: Final = (
    "These are estimates, computed from a published release by a model: nothing is guaranteed "
    "about their errors."
)


def describe(source: Source, *, title: str | None, licence: str | None) -> dict[str, Any]:
    """Properties of the data package, `title` and `description` among them."""
    known = _of_release(source) if isinstance(source, Release) else _of_estimate(source)
    caveats: list[str] = known["caveats"]
    facts = {
        "name": "inftda-export",
        "title": title or known["title"],
        "description": " ".join([known["promise"], *caveats]).strip(),
        "caveats": caveats,
        **known["facts"],
    }
    return {**facts, "licenses": [{"name": licence}]} if licence else facts


def _of_release(release: Release) -> dict[str, Any]:
    manifest, plan = release.manifest, release.manifest.plan
    counted = not_shown(release)
    caveats = [] if manifest.private else [NOT_PRIVATE]
    caveats += [f"What was counted: {counted}."] if counted else []
    caveats.append(_ZEROS)
    what = "Origin-destination flows" if release.tree.is_od else "Counts"
    promise = (
        f"Released with differential privacy: {plan.describe()}; protected: "
        f"{plan.unit.describe()}. {summary(release)}."
    )
    guarantee = {
        "private": manifest.private,
        "mechanism": manifest.mechanism,
        "promise": plan.describe(),
        "unit": plan.unit.describe(),
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "rho": None if plan.rho is None else str(plan.rho),
    }
    facts = {"guarantee": guarantee, "release_sha256": manifest.flows_sha256}
    return {"title": what, "promise": promise, "caveats": caveats, "facts": facts}


def _of_estimate(source: Source) -> dict[str, Any]:
    """What is known of an estimate: its manifest goes along as it is."""
    manifest: Any = getattr(source, "manifest", None)
    stated = manifest.to_dict() if hasattr(manifest, "to_dict") else manifest
    facts = {"estimate": json.loads(json.dumps(stated, default=str))} if stated else {}
    is_marked = getattr(manifest, "private", True) is False
    return {
        "title": "Estimated flows",
        "promise": "",
        "caveats": [*([NOT_PRIVATE] if is_marked else []), _ESTIMATED],
        "facts": facts,
    }
