"""The small print of a page: noise of each level, how it was accounted for, what made it."""

# ruff: noqa: RUF001 - dashes, quotes and Greek letters as people write them

import math
from pathlib import PurePath

from inftda.publication.release import Release
from inftda.report.accuracy import arrowed
from inftda.report.markup import Html, table, tag
from inftda.report.promise import unit_words


def technical_section(release: Release) -> Html:
    """Parameters for experts."""
    manifest, plan = release.manifest, release.manifest.plan
    facts: list[tuple[str, object]] = [
        ("Guarantee", plan.describe()),
        ("Unit of privacy", unit_words(release)),
        ("Mechanism", _with_options(manifest.mechanism, dict(manifest.options))),
        ("Order of refinement", ", ".join(manifest.order)),
        ("Areas", "; ".join(_areas(release))),
        ("Software", ", ".join(f"{name} {version}" for name, version in manifest.software.items())),
    ]
    parts = [
        tag("h2", "Small print", id="technical-title"),
        table(("", ""), facts, texts=2),
        tag("h3", "Noise of each level"),
        _levels(release),
    ]
    return tag("section", *parts, id="technical", aria_labelledby="technical-title")


def _with_options(name: str, options: dict[str, object]) -> str:
    details = ", ".join(f"{key} {value}" for key, value in options.items())
    return f"{name} ({details})" if details else name


def _areas(release: Release) -> list[str]:
    lines = []
    for axis, entry in zip(release.tree.axes, release.manifest.axes, strict=True):
        sizes = " › ".join(
            f"{axis.hierarchy.n_areas(level):,} {name}"
            for level, name in enumerate(axis.hierarchy.level_names, start=1)
        )
        file = PurePath(entry.file).name
        lines.append(f"{axis.name}: {sizes} ({file}, SHA-256 {entry.fingerprint[:16]}…)")
    return lines


def _levels(release: Release) -> Html:
    names = {level.index: arrowed(level) for level in release.tree.levels}
    lines = []
    for level in release.manifest.plan.levels:
        sigma = getattr(level, "sigma", None)
        noise = f"discrete Gaussian, σ = {sigma:.5g}" if sigma is not None else _laplace(level)
        rho = getattr(level, "rho", None)
        squared = getattr(level, "squared_sensitivity", None)
        lines.append(
            (
                names.get(level.index, level.name),
                f"{level.cells:,}",
                noise,
                "–" if squared is None else f"{math.sqrt(squared):.4g}",
                "–" if rho is None else f"{float(rho):.4g}",
            )
        )
    return table(("Level", "Possible cells", "Noise", "Sensitivity (ℓ²)", "Cost (ρ)"), lines)


def _laplace(level: object) -> str:
    scale, threshold = getattr(level, "scale", None), getattr(level, "threshold", None)
    if scale is None:
        return "–"
    return f"discrete Laplace, scale {float(scale):.5g}, dropped up to {threshold}"
