"""Libraries of geography, which not everybody has: loaded when they are first needed."""

from importlib import import_module
from typing import Any

from inftda.errors import MissingExtraError


def library(name: str, *, needed_for: str) -> Any:
    """A library of the extra `geo`.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(
            f"{needed_for} need {name.partition('.')[0]}, which is not installed; install "
            "inftda[geo]"
        ) from None
