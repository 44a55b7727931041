"""The small print of a page: noise of each level, how it was accounted for, what made it."""

# ruff: noqa: RUF001 - dashes, quotes and Greek letters as people write them

from collections.abc import Iterable
from pathlib import PurePath

from inftda.privacy.spending import PlannedLevel
from inftda.publication.release import Release
from inftda.publication.trust import not_shown
from inftda.reports.accuracy import arrowed
from inftda.reports.markup import Html, table, tag
from inftda.reports.promise import unit_words


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
        *_tables(release),
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
    names = {level.index: arrowed(level.name) for level in release.tree.levels}
    levels = release.manifest.plan.levels
    return _noise((names.get(level.index, level.name), level) for level in levels)


def _tables(release: Release) -> list[Html]:
    """What was measured across the tree, if anything was."""
    tables = release.manifest.plan.tables
    if not tables:
        return []
    return [
        tag("h3", "Noise of tables across the tree"),
        _noise((arrowed(table.name), table) for table in tables),
    ]


def _noise(parts: Iterable[tuple[Html | str, PlannedLevel]]) -> Html:
    lines = [
        (
            name,
            f"{part.cells:,}",
            part.noise,
            "–" if part.sensitivity is None else f"{part.sensitivity:.4g}",
            "–" if part.rho is None else f"{float(part.rho):.4g}",
        )
        for name, part in parts
    ]
    return table(("Level", "Possible cells", "Noise", "Sensitivity (ℓ²)", "Cost (ρ)"), lines)
