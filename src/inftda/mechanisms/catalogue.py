"""The mechanisms by name.

The product has one, `inftda`. Others are found through the entry points of installed packages,
group `inftda.mechanisms`: each names an object that implements `Mechanism`. They are looked up
only when one is asked for, or all are listed.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final

from inftda.errors import InftdaError
from inftda.mechanisms.description import TOP_DOWN, Description

if TYPE_CHECKING:
    from inftda.mechanisms.base import Mechanism

#: The mechanism of this package.
OWN: Final = "inftda"
#: Its options, stated here so that a release can be verified without loading compiled code.
OWN_OPTIONS: Final = {"objective": "intopt"}
GROUP: Final = "inftda.mechanisms"


def mechanism_named(name: str) -> "Mechanism":
    """The mechanism the command line and the manifest call `name`.

    Raises:
        InftdaError: there is none, or it cannot be loaded.
    """
    if name == OWN:
        from inftda.mechanisms.topdown import INFTDA  # noqa: PLC0415 - compiled kernels

        return INFTDA
    return _load(name)


def description_of(name: str) -> Description:
    """What the mechanism of that name states about itself.

    Raises:
        InftdaError: there is none, or it cannot be loaded.
    """
    return TOP_DOWN if name == OWN else _load(name).description


def options_of(name: str) -> Mapping[str, Any]:
    """Options that a release states, by the name of its mechanism; where noise came from aside.

    Raises:
        InftdaError: there is none, or it cannot be loaded.
    """
    return OWN_OPTIONS if name == OWN else _load(name).options


def mechanism_names() -> list[str]:
    """All mechanisms that are installed; none is loaded."""
    return [OWN, *sorted({found.name for found in entry_points(group=GROUP)} - {OWN})]


def _load(name: str) -> "Mechanism":
    found = entry_points(group=GROUP, name=name)
    if not found:
        raise InftdaError(
            f"there is no mechanism {name!r}; there are {', '.join(mechanism_names())}"
        )
    if len(found) > 1:
        packages = ", ".join(sorted(map(_package, found)))
        raise InftdaError(f"several packages have a mechanism {name!r} ({packages}); keep one")
    (entry,) = found
    try:
        mechanism: Mechanism = entry.load()
    except (ImportError, AttributeError) as problem:
        raise InftdaError(
            f"the mechanism {name!r} of the package {_package(entry)} cannot be loaded: {problem}"
        ) from None
    if mechanism.name != name:
        raise InftdaError(
            f"the mechanism {name!r} of the package {_package(entry)} calls itself "
            f"{mechanism.name!r}; its entry point is wrong"
        )
    return mechanism


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"
