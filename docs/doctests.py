# ruff: noqa: INP001 - an extension of the documentation builder, not a package
"""Shows docstrings as `help` does, and the examples in them as code.

An extension of the API reference. Parameters that carry their options are explained, with plain
types. A run of `>>>` lines with what they print, up to a blank
line, becomes a code block. Without it a list that is printed would be taken for a link.
"""

import importlib
import inspect
import re
from contextlib import suppress
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Fences examples before docstrings are read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        found: Any = _shown_by_help(obj.path)
        if found is not None:
            obj.docstring = griffe.Docstring(found.__doc__, parent=obj)
            for name, one in inspect.signature(found).parameters.items():
                with suppress(KeyError, AttributeError):  # the parameters of a class are its fields
                    obj.parameters[name].annotation = inspect.formatannotation(one.annotation)
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _shown_by_help(path: str) -> Any:
    """What has this path, if its docstring is filled in from its annotations."""
    module, _, name = path.rpartition(".")
    with suppress(ImportError, AttributeError, ValueError):
        found = getattr(importlib.import_module(module), name)
        return found if callable(found) and hasattr(found, "__options__") else None
    return None


def _fenced(example: re.Match[str]) -> str:
    indent = example["indent"]
    return f"{indent}```pycon\n{example[0]}\n{indent}```"
