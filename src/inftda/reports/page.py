"""The public page of a release: one file that opens from disk and needs no network.

It shows the release, its manifest, and what follows from them; it never sees the truth.
"""

# ruff: noqa: RUF001 - dashes, quotes and Greek letters as people write them

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from inftda import __version__
from inftda.evaluation.cells import estimated_leaves, released_leaves
from inftda.files import check_file, whole_file
from inftda.publication.release import Release
from inftda.publication.trust import NOT_PRIVATE, mostly_noise, not_shown
from inftda.reports.accuracy import accuracy_section, stated_errors
from inftda.reports.contents import Contents, Quality, Table, pack_contents
from inftda.reports.labels import Labels
from inftda.reports.layout import LAID_OUT, Layout
from inftda.reports.markup import Html, asset, document, join, script, tag, text
from inftda.reports.promise import promise_section
from inftda.reports.shapes import Shapes, known_shapes, read_shapes
from inftda.reports.technical import technical_section

if TYPE_CHECKING:
    from inftda.bars import Progress
    from inftda.estimates import Estimate
    from inftda.tree import Tree

#: Up to this many combinations of levels have typical errors; of more only those of the tree.
MAX_LEVELS = 150
_WHICH = (
    "Take the published numbers where a guaranteed error is needed, where others have to get the "
    "same numbers, and to say which large flows there are. Take the estimated ones, which a "
    "model made of the same noisy measurements, for the best guess of one number or as input of "
    "another model, and never to say that a small flow exists."
)


@dataclass(frozen=True)
class Files:
    """What helps people to read a page; all of it public, all optional.

    Attributes:
        names: names of areas (columns level, code, name).
        centroids: locations of areas (a column named after a level, lon, lat, perhaps name).
        geojson: outlines of areas, in degrees.
    """

    names: Path | None = None
    centroids: Path | None = None
    geojson: Path | None = None

    def read(self, release: Release) -> tuple[Labels, Shapes | None]:
        """Names and locations, and outlines; what the release has itself fills the gaps.

        Raises:
            InftdaError: a file cannot be read or does not fit the release.
        """
        labels = Labels()
        if self.names is not None:
            labels.add_names(release.tree, self.names)
        if self.centroids is not None:
            labels.add_centroids(release.tree, self.centroids)
        shapes = None
        if self.geojson is not None:
            shapes = read_shapes(release.tree, self.geojson, labels)
        labels.add_known(release.tree)
        return labels, shapes or known_shapes(release.tree, labels)


def write_page(  # noqa: PLR0913 - one keyword for each thing a publisher may decide
    release: Release,
    out: str | Path,
    *,
    title: str | None = None,
    files: Files | None = None,
    runs: int = 20,
    seconds: float = 20.0,
    force: bool = False,
    keep_formulas: bool = False,
    estimate: "Estimate | None" = None,
    progress: "Progress | None" = None,
) -> Path:
    """Write the public page of a release.

    Args:
        release: the release.
        out: the HTML file to write, not in a release.
        title: heading of the page.
        files: names, locations and outlines of areas.
        runs: simulations for typical errors, at most.
        seconds: time for them.
        force: replace a file that is there.
        keep_formulas: leave what a spreadsheet would run as it is in tables people download.
        estimate: estimates made from this release, to switch to.
        progress: called with what is done, and how much of the work or time of 100.

    Returns:
        The file.

    Raises:
        InftdaError: a file cannot be read or does not fit the release, or `out` must not be
            written.
        OSError: it cannot be written.

    Privacy:
        Post-processing of the release: no cost.
    """
    files = files or Files()
    check_file(Path(out), force=force, reads=(files.names, files.centroids, files.geojson))
    labels, shapes = files.read(release)
    estimated = None
    if estimate is not None:
        estimate.check_release(release)
        estimated = estimated_leaves(estimate)
    errors = stated_errors(
        release, runs=runs, seconds=seconds, depths=_depths(release.tree), progress=progress
    )
    if progress is not None:
        progress("packing", 100, 100)
    table = Table(
        release.tree,
        *released_leaves(release),
        keeps_formulas=keep_formulas,
        estimated=estimated,
    )
    noise = mostly_noise(release)
    contents = pack_contents(table, labels, shapes, Quality.of(release, errors, noise))
    heading = title or _default_title(release)
    page = render(
        {
            "kind": "public",
            "title": text(heading),
            "robots": "",
            "banner": _banner(release),
            "banner_again": "",
            "masthead": join(
                [
                    tag("p", "Released with differential privacy", class_="kicker"),
                    tag("h1", heading),
                    tag("p", summary(release), class_="sub"),
                    *_counted(release),
                ]
            ),
            "contents": links(
                promise="Promise", accuracy="Accuracy", explore="Explore", technical="Small print"
            ),
            "sections": join([promise_section(release), accuracy_section(release, errors, noise)]),
            "explore_title": "Explore the numbers",
            "explore_lead": explore_lead(
                release,
                contents,
                # Without errors the explorer shades by size.
                shade="the less a number is to be trusted" if errors else "the smaller a number",
                has_estimate=estimated is not None,
            ),
            "technical": technical_section(release),
            "footer": footer(),
            "packed": contents.packed,
        }
    )
    return write_file(Path(out), page)


def render(parts: dict[str, str]) -> str:
    """A page from its parts: everything but style, script and policy."""
    return document(asset("page.html"), parts, asset("style.css"), script())


def links(**titles: str) -> Html:
    """Links to sections by their ids."""
    return join([tag("a", title, href=f"#{name}") for name, title in titles.items()])


def summary(release: Release) -> str:
    """One line of sizes."""
    hierarchies = [axis.hierarchy for axis in release.tree.axes]
    finest = [(f"{it.n_areas(it.depth):,}", it.level_name(it.depth)) for it in hierarchies]
    if release.tree.is_od:
        # Both ends are often the same areas, which are then named once.
        ends = " and ".join(dict.fromkeys(f"{n} areas ({name})" for n, name in finest))
        what, counted = f"flows between {ends}", "trips"
    else:
        what, counted = f"cells of {' × '.join(f'{n} {name}' for n, name in finest)}", "counted"
    return f"{release.manifest.n_flows:,} {what}, {release.total:,} {counted} in all"


def _counted(release: Release) -> list[Html]:
    """What is not in the table, before any number is read."""
    words = not_shown(release)
    return [tag("p", tag("strong", "What was counted: "), f"{words}.")] if words else []


def explore_lead(
    release: Release, contents: Contents, *, shade: str, has_estimate: bool = False
) -> str:
    """How to use the explorer, what a faint shade means, and what the page does not hold."""
    words = "Choose a level and look for a code or name; what you see can be downloaded."
    if len(release.tree.axes) >= LAID_OUT:
        words = (
            "Click a number to zoom into both ends, a heading to zoom into one. "
            f"The fainter the shade, {shade}."
        )
    if len(release.tree.axes) > LAID_OUT:
        names = " and ".join(axis.name for axis in Layout.of(release.tree).axes[LAID_OUT:])
        words += f" What is shown can be filtered by {names}."
    if has_estimate:
        words += f" {_WHICH}"
    finest = tuple(axis.hierarchy.depth for axis in release.tree.axes)
    if contents.depths != finest:
        held = " and ".join(
            dict.fromkeys(
                axis.hierarchy.level_name(depth)
                for axis, depth in zip(release.tree.axes, contents.depths, strict=True)
            )
        )
        words += f" To keep this page light it goes down to {held}; the release goes further."
    return text(words)


def footer() -> Html:
    """What made the page, and that it is self-contained."""
    return tag(
        "p",
        f"Made with inftda {__version__}. This page holds all its data, loads nothing from the "
        "network and sends nothing anywhere.",
    )


def write_file(out: Path, page: str, *, mode: int | None = None) -> Path:
    """Write a page as a whole or not at all."""
    with whole_file(out, mode=mode) as partial:
        partial.write_text(page, encoding="utf-8")
    return out


def _depths(tree: "Tree") -> list[tuple[int, ...]] | None:
    """Levels of each axis that can be looked at; None for those that are simulated anyway."""
    every = list(product(*(range(axis.hierarchy.depth + 1) for axis in tree.axes)))
    return every if len(every) <= MAX_LEVELS else None


def _default_title(release: Release) -> str:
    if release.tree.is_od:
        return "Origin–destination flows"
    return " by ".join(axis.name for axis in release.tree.axes)


def _banner(release: Release) -> Html:
    if release.manifest.private:
        return Html("")
    warning = tag("div", tag("p", NOT_PRIVATE), class_="wrap")
    return tag("div", warning, class_="banner", role="alert")
