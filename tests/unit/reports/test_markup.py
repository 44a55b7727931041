import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from inftda.reports.markup import Html, asset, fill, join, policy, script, table, tag, text


class Reader(HTMLParser):
    """What a browser makes of markup: elements and text."""

    def __init__(self, made):
        super().__init__()
        self.tags, self.text, self.attributes = [], [], []
        self.feed(made)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [value for name, value in attrs if name == "title"]

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("bad", ["<script>", "</p>", '"', "'", "&lt;", "<!--", '"><i>'])
def test_text_stays_text_whatever_is_in_it(bad):
    assert Reader(text(bad)).tags == []
    assert "".join(Reader(text(bad)).text) == bad
    assert (Reader(tag("p", bad)).tags, "".join(Reader(tag("p", bad)).text)) == (["p"], bad)
    assert Reader(tag("p", title=bad)).attributes == [bad]
    assert Reader(join([bad, bad])).tags == []
    plain, made = table(["x"], [["x"]]), table([bad], [[bad]])
    assert Reader(made).tags == Reader(plain).tags


def test_markup_made_here_is_not_escaped_again():
    assert tag("p", tag("b", "x"), Html("<i></i>")) == "<p><b>x</b><i></i></p>"


def test_what_is_filled_in_is_not_filled_in_again():
    assert fill("{{a}} {{b}}", {"a": "{{b}}", "b": "x"}) == "{{b}} x"


def test_attributes_without_a_value_are_left_out():
    assert tag("p", class_=None, aria_label="a") == '<p aria-label="a"></p>'


def test_the_policy_allows_this_script_and_style_and_nothing_from_the_network():
    style, code = asset("style.css"), script()
    rules = dict(rule.split(" ", 1) for rule in policy(style, code).split("; "))
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert "unsafe" not in str(rules)
    assert "http" not in str(rules)


def test_script_and_style_hold_nothing_that_ends_their_element_or_leaves_the_page():
    for content in (asset("style.css"), script()):
        assert "</" not in content
        assert "<!--" not in content
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", content)
    # Text may become markup only through these; none is used.
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script())
