"""The page of a comparison of methods: accuracy and disclosure side by side. Confidential."""

from pathlib import Path

from inftda.comparisons.comparing import MethodComparison, Result
from inftda.comparisons.words import DISCLOSE, finding, honest_words
from inftda.files import check_file
from inftda.pages import html


def write_methods_page(comparison: MethodComparison, out: str | Path) -> Path:
    """Write the page, readable by its owner only.

    Raises:
        InftdaError: it cannot or must not be written.
    """
    check_file(Path(out), force=True)
    results = [_facts(one) for one in comparison.results]
    facts = {
        "trips": comparison.trips,
        "n_flows": comparison.n_flows,
        "unit": comparison.unit,
        "summary": honest_words(comparison),
        "disclose": DISCLOSE,
        "results": results,
        "attacked": [one for one in results if one["attack"] is not None],
    }
    page = html.render(
        "comparison.html",
        facts,
        title="Methods compared",
        style="style.css charts.css",
        is_confidential=True,
    )
    return html.write_page(Path(out), page, is_confidential=True)


def _facts(one: Result) -> dict[str, object]:
    return {
        "label": one.label,
        "words": one.words,
        "epsilon": None if one.epsilon is None else f"{one.epsilon:g}",
        "levels": one.levels,
        "totals": one.totals,
        "attack": one.attack,
        "finding": finding(one),
    }
