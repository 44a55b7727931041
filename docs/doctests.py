# ruff: noqa: INP001 - an extension of the documentation builder, not a package
"""Shows the examples in docstrings as code.

An extension of the API reference: a run of `>>>` lines with what they print, up to a blank
line, becomes a code block. Without it a list that is printed would be taken for a link.
"""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Fences examples before docstrings are read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(example: re.Match[str]) -> str:
    indent = example["indent"]
    return f"{indent}```pycon\n{example[0]}\n{indent}```"
