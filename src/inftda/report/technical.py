"""The small print of a page: noise of each level, how it was accounted for, what made it."""

# ruff: noqa: RUF001 - dashes, quotes and Greek letters as people write them

from pathlib import PurePath

from inftda.publication.caveats import not_shown
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
        ("Counted", not_shown(release) or "all rows of the table"),
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
    plan = release.manifest.plan
    lines = [
        (
            name,
            f"{level.cells:,}",
            level.noise,
            "–" if level.sensitivity is None else f"{level.sensitivity:.4g}",
            "–" if level.rho is None else f"{float(level.rho):.4g}",
        )
        for name, level in (
            *((names.get(level.index, level.name), level) for level in plan.levels),
            *((f"across the tree: {table.name}", table) for table in plan.tables),
        )
    ]
    return table(("Level", "Possible cells", "Noise", "Sensitivity (ℓ²)", "Cost (ρ)"), lines)
