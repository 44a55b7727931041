"""Publish origin/destination tables under differential privacy.

The names below are loaded when they are first used, so that `import inftda` is instant.

>>> import inftda
>>> inftda.intopt([5, -2, 1], 3).sum()
np.int64(3)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inftda.areas.cells import grid_areas as grid_areas
    from inftda.areas.cells import h3_areas as h3_areas
    from inftda.areas.reader import read_areas as read_areas
    from inftda.disclosure.compare import compare as compare
    from inftda.dossiers.dossier import dossier as dossier
    from inftda.editions.series import open_series as open_series
    from inftda.errors import InftdaError as InftdaError
    from inftda.estimates import Estimate as Estimate
    from inftda.estimates import estimate as estimate
    from inftda.estimates import open_estimate as open_estimate
    from inftda.evaluation.outlook import plan as plan
    from inftda.exports.export import export as export
    from inftda.hierarchy import Hierarchy as Hierarchy
    from inftda.mechanism.intopt import intopt as intopt
    from inftda.noise.bits import SecureSource as SecureSource
    from inftda.noise.bits import SeededSource as SeededSource
    from inftda.noise.gaussian import DiscreteGaussian as DiscreteGaussian
    from inftda.noise.laplace import DiscreteLaplace as DiscreteLaplace
    from inftda.pages.editions import change as change
    from inftda.pages.evaluate import evaluate as evaluate
    from inftda.pages.report import report as report
    from inftda.previews.preview import preview as preview
    from inftda.privacy.plan import make_plan as make_plan
    from inftda.privacy.unit import Unit as Unit
    from inftda.publication.release import Release as Release
    from inftda.publication.release import open_release as open_release
    from inftda.publication.verify import verify as verify
    from inftda.publish import release as release
    from inftda.reading import Columns as Columns
    from inftda.reading import SqlQuery as SqlQuery
    from inftda.reading import TableFile as TableFile
    from inftda.tree import Axis as Axis
    from inftda.tree import Tree as Tree
    from inftda.tree import build_tree as build_tree

_HOMES = {
    "Axis": "inftda.tree",
    "Columns": "inftda.reading",
    "TableFile": "inftda.reading",
    "DiscreteGaussian": "inftda.noise.gaussian",
    "DiscreteLaplace": "inftda.noise.laplace",
    "Estimate": "inftda.estimates",
    "Hierarchy": "inftda.hierarchy",
    "InftdaError": "inftda.errors",
    "Release": "inftda.publication.release",
    "SecureSource": "inftda.noise.bits",
    "SeededSource": "inftda.noise.bits",
    "SqlQuery": "inftda.reading",
    "Tree": "inftda.tree",
    "Unit": "inftda.privacy.unit",
    "build_tree": "inftda.tree",
    "change": "inftda.pages.editions",
    "compare": "inftda.disclosure.compare",
    "dossier": "inftda.dossiers.dossier",
    "estimate": "inftda.estimates",
    "evaluate": "inftda.pages.evaluate",
    "export": "inftda.exports.export",
    "grid_areas": "inftda.areas.cells",
    "h3_areas": "inftda.areas.cells",
    "intopt": "inftda.mechanism.intopt",
    "make_plan": "inftda.privacy.plan",
    "open_estimate": "inftda.estimates",
    "open_release": "inftda.publication.release",
    "open_series": "inftda.editions.series",
    "plan": "inftda.evaluation.outlook",
    "preview": "inftda.previews.preview",
    "read_areas": "inftda.areas.reader",
    "release": "inftda.publish",
    "report": "inftda.pages.report",
    "verify": "inftda.publication.verify",
}
__all__ = list(_HOMES)

#: The one place where the version stands; pyproject.toml, manifests and pages take it from here.
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'inftda' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HOMES, "__version__", "__doc__"})
