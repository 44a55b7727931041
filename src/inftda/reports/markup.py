"""HTML from trusted templates and untrusted text.

Area codes, names and titles come from files. They reach the page in two ways only: escaped
here, or inside the packed data, which scripts put into the document as text. The page also
carries a policy that lets a browser run its one script and load nothing from anywhere.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


class Html(str):
    """Markup that is known to be safe: made by this module, or written in it."""

    __slots__ = ()


def text(value: object) -> Html:
    """Anything as text; markup in it is shown, not obeyed. `Html` stays what it is.

    >>> text("<b> 5 %") == "&lt;b&gt; 5\N{NO-BREAK SPACE}%"
    True
    """
    if isinstance(value, Html):
        return value
    # A number and its % stay on one line.
    return Html(escape(str(value)).replace(" %", "\N{NO-BREAK SPACE}%"))


def tag(name: str, *children: object, **attributes: object) -> Html:
    """An element; children are text unless they are `Html`, attributes are always text.

    A trailing underscore is dropped from attribute names (`class_`), others become hyphens.
    """
    rendered = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{rendered}>{join(children)}</{name}>")


def join(parts: Iterable[object], separator: str = "") -> Html:
    """Parts one after the other, each made safe."""
    return Html(separator.join(text(part) for part in parts))


def table(
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    texts: int = 1,
) -> Html:
    """A table of figures whose first `texts` columns are words."""

    def cell(kind: str, column: int, content: object) -> Html:
        scope = "col" if kind == "th" else None
        return tag(kind, content, class_="text" if column < texts else None, scope=scope)

    header = tag("tr", *(cell("th", i, name) for i, name in enumerate(head)))
    body = [tag("tr", *(cell("td", i, value) for i, value in enumerate(row))) for row in rows]
    parts = (tag("thead", header), tag("tbody", *body))
    return tag("div", tag("table", *parts, class_="data"), class_="scroll")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace every {{name}} at once, so that nothing put in is looked at again."""
    return _PLACEHOLDER.sub(lambda match: values[match.group(1)], template)


def document(body: str, parts: Mapping[str, str], style: str, code: str = "") -> str:
    """A page in one file that loads nothing from anywhere.

    Args:
        body: template of its body.
        parts: what to put into the body; of the head, `title`, and `kind` and `robots` if any.
        style: its style sheet.
        code: its script, if there is one.
    """
    head = {
        "class": f' class="{parts["kind"]}"' if "kind" in parts else "",
        "robots": f"{parts['robots']}\n" if "robots" in parts else "",
        "title": parts["title"],
        "style": style,
        "policy": policy(style, code),
    }
    return fill(asset("frame.html"), {**head, "body": fill(body, {**parts, "script": code})})


def asset(name: str) -> str:
    """A file of this package's assets."""
    return files("inftda.reports").joinpath("assets", name).read_text(encoding="utf-8")


def script() -> str:
    """The page's script: its parts in order, in a scope of their own."""
    folder = files("inftda.reports").joinpath("assets")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".js"))
    return "(() => {\n'use strict';\n" + "\n".join(asset(name) for name in names) + "})();\n"


def policy(style: str, code: str) -> str:
    """A content security policy: this style, this script, nothing else from anywhere."""
    rules = {
        "default-src": "'none'",
        "script-src": f"'{_digest(code)}'",
        "style-src": f"'{_digest(style)}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
