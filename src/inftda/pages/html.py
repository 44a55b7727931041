"""Pages from templates: text stays text, one script runs, nothing is loaded from anywhere.

Codes and names of areas, and titles, come from files. They reach a page in two ways only: the
templates escape them, or they are inside the packed data, which the script puts into the document
as text. A content security policy lets a browser run this script and load nothing else.
"""

import base64
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from inftda import __version__
from inftda.util.files import whole_file

#: Notice at the top and at the end of every confidential page.
NOTICE: Final = (
    "CONFIDENTIAL: this page shows true counts. It is not private. Do not publish or share it."
)
_IMPORT: Final = re.compile(r"^import \{[^}]*\} from '\./([\w-]+\.mjs)';\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=\w)", re.MULTILINE)
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")


def render(  # noqa: PLR0913 - what every page has
    template: str,
    facts: Mapping[str, object],
    *,
    title: str,
    style: str = "style.css",
    script: str = "",
    is_confidential: bool = False,
) -> str:
    """A page in one file that loads nothing from anywhere.

    `template` is that of its body, and `style` names its style sheets, with blanks between them.
    """
    sheet = "".join(map(asset, style.split()))
    # Code and style are ours; all else is text.
    own = {"style": Markup(sheet), "script": Markup(script)}  # noqa: S704
    marks = {"title": title, "is_confidential": is_confidential, "notice": NOTICE}
    known = {"policy": policy(sheet, script), "version": __version__}
    return environment().get_template(template).render({**facts, **own, **marks, **known})


def render_markdown(template: str, facts: Mapping[str, object]) -> str:
    """The same facts as Markdown, in which nothing of a text is taken for markup."""
    made = (
        environment(_as_markdown).get_template(template).render({**facts, "version": __version__})
    )
    return re.sub(r"\n{3,}", "\n\n", made).strip() + "\n"


def write_page(out: Path, page: str, *, is_confidential: bool = False) -> Path:
    """Write a page as a whole or not at all; a confidential one is for its owner only."""
    with whole_file(out, mode=0o600 if is_confidential else None) as partial:
        partial.write_text(page, encoding="utf-8")
    return out


@cache
def environment(
    finalize: Callable[[object], object] | None = None, *, package: str = "inftda.pages"
) -> Environment:
    """Environment of the templates: it escapes all values and refuses undefined ones."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": "{:,}".format,
        "percent": percent,
        "aligned": aligned,
        "scientific": scientific,
        "unbroken": unbroken,
        "sentence_case": sentence_case,
    }
    return made


def _as_markdown(value: object) -> Markup:
    if isinstance(value, Markup):
        return value
    return Markup(_MARKDOWN.sub(r"\\\1", " ".join(str(value).split())))  # noqa: S704 - escaped here


def percent(share: float, digits: int = 0) -> str:
    """A share in per cent; a share above zero is never called 0.

    >>> percent(0.5), percent(0.001), percent(0.1234, 1)
    ('50 %', 'under 1 %', '12.3 %')
    """
    text = f"{100 * share:.{digits}f} %"
    if share > 0 and float(text[:-2]) == 0:
        return f"under {10**-digits:g} %"
    return text


def aligned(column: Iterable[float | None]) -> list[str]:
    r"""Numbers of a column with the same decimals: three digits of the smallest number above 0.

    >>> aligned([14.97, None, 1234]) == ["15.0", "\N{EN DASH}", "1,234.0"]
    True
    """
    numbers = list(column)
    smallest = min((one for one in numbers if one), default=1)
    decimals = max(0, 2 - math.floor(math.log10(smallest)))
    return ["\N{EN DASH}" if one is None else f"{one:,.{decimals}f}" for one in numbers]


def scientific(value: float) -> Markup:
    r"""A small number as people write it: 10 to the power of -8.

    >>> scientific(1e-8) == "10<sup>\N{MINUS SIGN}8</sup>"
    True
    """
    if value >= 0.001 or value <= 0:
        return Markup("{}").format(f"{value:g}")
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    digits = mantissa.rstrip("0").rstrip(".")
    factor = "" if digits == "1" else f"{digits} \N{MULTIPLICATION SIGN} "
    return Markup("{}10<sup>\N{MINUS SIGN}{}</sup>").format(factor, -int(exponent))


def unbroken(text: str) -> str:
    """Keep a number and its % on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def sentence_case(text: str) -> str:
    """Capitalise the first letter."""
    return text[:1].upper() + text[1:]


def asset(name: str) -> str:
    """Read a style sheet or a module of a script."""
    return files("inftda.pages").joinpath("assets", name).read_text(encoding="utf-8")


def script(module: str) -> str:
    """A module and all that it imports as one script, in one scope: pages open from disk.

    Every import is a line of its own that lists the imported names, and no two modules use one name
    for different objects.
    """
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in parts:
            code = asset(name)
            for needed in _IMPORT.findall(code):
                add(needed)
            parts[name] = _EXPORT.sub("", _IMPORT.sub("", code))

    add(module)
    return "(() => {\n'use strict';\n" + "\n".join(parts.values()) + "})();\n"


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
