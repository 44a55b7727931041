"""What is put into a template stays text, and a browser may run and load nothing else."""

import base64
import hashlib
import re
from importlib.resources import files

import pytest
from jinja2 import UndefinedError
from markup import Markup

from inftda.pages import html

BAD = ["<script>", "</p>", '"', "'", "&lt;", "<!--", '"><i>', "{{ 7 * 7 }}", "{% raw %}"]


@pytest.mark.parametrize("bad", BAD)
def test_text_stays_text_whatever_is_in_it(bad):
    template = html.environment().from_string(
        '{% from "parts.html" import level, table, figure %}<p title="{{ it }}">{{ it }}</p>'
        "{{ table((it,), ((it, level(it)),)) }}{{ figure(it, it, it) }}"
    )
    harmless, found = (Markup(template.render(it=it)) for it in ("x", bad))
    assert [tag for tag, _ in found.seen] == [tag for tag, _ in harmless.seen]
    assert found.seen[0] == ("p", {"title": bad})
    written, expected = ("".join(text for _, text in it.texts) for it in (found, harmless))
    assert written == expected.replace("x", bad)


@pytest.mark.parametrize("bad", [*BAD, "[x](javascript:1)", "`a` *b*", "| c", "# d"])
def test_text_stays_text_in_markdown(bad):
    source = html.environment(html._as_markdown).from_string("{{ it }} {{ it | upper }}")
    made = source.render(it=bad)
    assert not re.search(r"(?<!\\)[`*\[<#|{]", made)
    assert made.replace("\\", "").split()[0] == bad.split()[0]


def test_a_fact_that_is_missing_is_an_error_and_no_gap():
    with pytest.raises(UndefinedError, match="is undefined"):
        html.render("preview.html", {}, title="x")


def test_the_policy_allows_this_script_and_style_and_nothing_from_the_network():
    style, code = html.asset("style.css"), html.script("explore.mjs")
    rules = dict(rule.split(" ", 1) for rule in html.policy(style, code).split("; "))
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert "unsafe" not in str(rules)
    assert "http" not in str(rules)


def test_script_and_style_hold_nothing_that_ends_their_element_or_leaves_the_page():
    names = [entry.name for entry in files("inftda.pages").joinpath("assets").iterdir()]
    assert {"style.css", "explore.mjs", "changes.mjs"} <= {*names}
    for content in map(html.asset, names):
        assert "</" not in content
        assert "<!--" not in content
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", content)
        # Text may become markup only through these; none is used.
        into_markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\("
        assert not re.search(into_markup, content)


def test_no_template_takes_a_fact_for_markup():
    """`safe` and `Markup` switch escaping off; only style and script of our own may."""
    loader = html.environment().loader
    for name in loader.list_templates():
        source, _, _ = loader.get_source(html.environment(), name)
        assert not re.search(r"\|\s*safe|autoescape", source), name
