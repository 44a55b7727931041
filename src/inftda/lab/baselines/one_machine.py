"""Baselines that noise single leaves run on one machine: they need its counts and threads."""

from typing import Any

from inftda.engines.local import LocalEngine
from inftda.errors import InftdaError
from inftda.mechanisms.base import Setting
from inftda.truth import Truth


def on_one_machine(truth: Any, setting: Setting[Any, Any]) -> tuple[Truth, LocalEngine]:
    """The counts, and the engine with its threads.

    Raises:
        InftdaError: they are on a cluster.
    """
    if not isinstance(truth, Truth) or not isinstance(setting.engine, LocalEngine):
        raise InftdaError("this baseline runs on one machine only; leave out the engine")
    return truth, setting.engine
