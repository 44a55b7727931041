"""The page of a comparison of methods: accuracy and disclosure side by side. Confidential."""

# ruff: noqa: RUF001 - dashes and quotes as people write them

from pathlib import Path
from typing import TYPE_CHECKING

from inftda.comparisons.comparing import MethodComparison, Result
from inftda.comparisons.words import DISCLOSE, exact_words, honest_words, seen_words
from inftda.files import check_file
from inftda.previews.shell import bar, masthead, render, section
from inftda.previews.words import capital, percent
from inftda.reports.accuracy import arrowed
from inftda.reports.confidential import confidential_parts
from inftda.reports.markup import Html, join, table, tag
from inftda.reports.page import footer, links, write_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from inftda.evaluation.measures import LevelMeasures


def write_methods_page(comparison: MethodComparison, out: str | Path) -> Path:
    """Write the page, readable by its owner only.

    Raises:
        InftdaError: it cannot or must not be written.
    """
    check_file(Path(out), force=True)
    heading = "Methods compared"
    page = render(
        {
            **confidential_parts(heading),
            "masthead": masthead(
                "Confidential comparison on the true table",
                heading,
                f"{comparison.trips:,} trips, {comparison.n_flows:,} flows of the finest areas",
            ),
            "contents": links(both="Side by side", attack="What a reader finds out",
                              levels="By level", methods="Methods"),
            "sections": join(
                [_both(comparison), _attack(comparison), _levels(comparison), _methods(comparison)]
            ),
            "footer": footer(),
        }
    )  # fmt: skip
    return write_file(Path(out), page, mode=0o600)


def _both(comparison: MethodComparison) -> Html:
    groups = tag(
        "tr",
        tag("th", ""),
        tag("th", "Accuracy at the finest level", colspan=4, class_="group", scope="colgroup"),
        tag("th", "Disclosure", colspan=3, class_="group", scope="colgroup"),
    )
    names = ("Method", "Trips in the right place", "Largest error", "False flows", "Lost flows",
             "Cells that follow exactly", "Persons seen in two editions", "Promise")  # fmt: skip
    head = tag(
        "tr",
        *(tag("th", name, scope="col", class_=None if i else "text")
          for i, name in enumerate(names)),
    )  # fmt: skip
    body = [tag("tr", *_cells(one)) for one in comparison.results]
    shape = tag("table", tag("thead", groups, head), tag("tbody", *body), class_="data bars")
    return section(
        "both",
        "Accuracy and disclosure side by side",
        tag("p", honest_words(comparison), class_="lead"),
        tag("div", shape, class_="scroll"),
        tag(
            "p",
            "Trips in the right place: common part of commuters, hidden cells counted as 0. "
            "Persons seen: published once with and once without a person, the tables show exactly "
            "where that person’s trip went. ",
            DISCLOSE,
            class_="note more",
        ),
    )


def _cells(one: Result) -> list[Html]:
    finest, found = one.levels[-1], one.attack
    cells = [
        tag("th", one.label, scope="row", class_="text"),
        tag("td", f"{finest.common_part:.3f}", bar(finest.common_part, "kept"), class_="measure"),
        tag("td", f"{finest.max_abs_error:,}"),
        tag("td", percent(finest.false_discovery_rate, 1)),
        tag("td", percent(finest.false_negative_rate, 1)),
    ]
    if found is None:
        return [
            *cells,
            tag("td", "–"),
            tag("td", "–", bar(0, "seen"), class_="measure"),
            tag("td", f"epsilon {one.epsilon:g}"),
        ]
    share = found.seen_at_leaf / max(found.trips, 1)
    ones = tag("small", f"{found.exact_ones:,} single persons") if found.exact_ones else Html("")
    return [
        *cells,
        tag("td", f"{found.exact_with_totals:,}", ones),
        tag("td", percent(share), bar(share, "seen"), class_="measure"),
        tag("td", "none"),
    ]


def _attack(comparison: MethodComparison) -> Html:
    attacked = [one for one in comparison.results if one.attack is not None]
    head = ("Method", "Hidden cells", "Trips in them", "Exact by levels", "With totals",
            "Single persons", "Seen exactly", "Seen at some level")  # fmt: skip
    rows = []
    said = []
    for one in attacked:
        found = one.attack
        if found is None:
            continue
        figures = (found.hidden_cells, found.hidden_trips, found.exact_by_levels,
                   found.exact_with_totals, found.exact_ones, found.seen_at_leaf,
                   found.seen_somewhere)  # fmt: skip
        rows.append((one.label, *(f"{figure:,}" for figure in figures)))
        words = f"{capital(exact_words(found))}; {seen_words(found)}."
        said.append(tag("li", tag("strong", one.label), words))
    if not rows:
        rest = tag("p", "All methods compared here promise something, whatever a reader knows.")
        return section("attack", "What a reader finds out", rest)
    return section(
        "attack",
        "What a reader finds out",
        tag(
            "p",
            "By arithmetic alone: every number is the sum of its parts, and what a reader knows of "
            "some bounds the others. A person is taken to have one trip.",
            class_="lead",
        ),
        table(head, rows),
        tag("ul", *said, class_="verdicts"),
        tag(
            "p",
            "“Exact by levels” is all that follows from the numbers of the levels; “with totals” "
            "is at least what follows if out- and in-totals of the finest areas are published too. "
            "Methods with a promise have no row: what anybody can find out about one person is "
            "bounded by epsilon, for every attack, also those that nobody has thought of.",
            class_="note",
        ),
    )


def _levels(comparison: MethodComparison) -> Html:
    shown = [level for level in comparison.results[0].levels if level.level]
    head = ("Method", *(arrowed(level.name) for level in shown))
    parts = []
    figures: tuple[tuple[str, Callable[[LevelMeasures], str]], ...] = (
        ("Trips in the right place (common part)", lambda level: f"{level.common_part:.4f}"),
        ("Largest error", lambda level: f"{level.max_abs_error:,}"),
        ("Mean error of cells that are not zero in both",
         lambda level: f"{level.mean_abs_error_nonzero:,.2f}"),
    )  # fmt: skip
    for title, value in figures:
        rows = [
            (one.label, *(value(level) for level in one.levels if level.level))
            for one in comparison.results
        ]
        parts += [tag("h3", title), table(head, rows)]
    totals = comparison.results[0].totals
    if totals:
        head = ("Method", *(f"{total.axis} {total.level}" for total in totals))
        rows = [
            (one.label, *(f"{total.mean_abs_error:,.1f}" for total in one.totals))
            for one in comparison.results
        ]
        parts += [tag("h3", "Mean error of in- and out-totals"), table(head, rows)]
    return section("levels", "Accuracy level by level", *parts)


def _methods(comparison: MethodComparison) -> Html:
    said = [
        tag("li", tag("strong", one.label), f"{capital(one.words)}.") for one in comparison.results
    ]
    return section(
        "methods",
        "What each method does",
        tag("ul", *said, class_="verdicts"),
        tag("p", f"Who is protected by a promise: {comparison.unit}.", class_="note"),
    )
