"""The mechanisms by name."""

from inftda.errors import InftdaError
from inftda.mechanisms.base import Mechanism
from inftda.mechanisms.topdown import TopDown
from inftda.optimize.segments import optimize_intopt_descending

_MECHANISMS: dict[str, Mechanism] = {
    "inftda": TopDown(),
    "inftda-descending": TopDown(
        "inftda-descending", "intopt-descending", optimize_intopt_descending
    ),
}


def mechanism_named(name: str) -> Mechanism:
    """The mechanism the command line and the manifest call `name`.

    Raises:
        InftdaError: there is none.
    """
    if name not in _MECHANISMS:
        raise InftdaError(f"there is no mechanism {name!r}; there are {', '.join(_MECHANISMS)}")
    return _MECHANISMS[name]
