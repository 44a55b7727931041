"""Publish origin/destination tables under differential privacy.

The names below are loaded when they are first used, so that `import inftda` is instant.

>>> import inftda
>>> inftda.intopt([5, -2, 1], 3).sum()
np.int64(3)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inftda.areas.build import build_tree as build_tree
    from inftda.areas.grids import grid_areas as grid_areas
    from inftda.areas.grids import h3_areas as h3_areas
    from inftda.areas.reader import read_areas as read_areas
    from inftda.confidential.compare import compare as compare
    from inftda.confidential.evaluate import evaluate as evaluate
    from inftda.documents.dossier import dossier as dossier
    from inftda.errors import InftdaError as InftdaError
    from inftda.estimates.estimate import Estimate as Estimate
    from inftda.estimates.estimate import estimate as estimate
    from inftda.estimates.estimate import open_estimate as open_estimate
    from inftda.exports.export import export as export
    from inftda.mechanism.intopt import intopt as intopt
    from inftda.noise.bits import SecureSource as SecureSource
    from inftda.noise.bits import SeededSource as SeededSource
    from inftda.noise.distribution import Noise as Noise
    from inftda.pages.change import change as change
    from inftda.pages.report import report as report
    from inftda.pipeline import release as release
    from inftda.planning.plan import plan as plan
    from inftda.planning.preview import preview as preview
    from inftda.privacy.noise_plan import make_plan as make_plan
    from inftda.privacy.unit import Unit as Unit
    from inftda.publication.release import Release as Release
    from inftda.publication.release import open_release as open_release
    from inftda.publication.verify import verify as verify
    from inftda.reading import Columns as Columns
    from inftda.reading import SqlQuery as SqlQuery
    from inftda.reading import TableFile as TableFile
    from inftda.series.series import open_series as open_series
    from inftda.tree import Axis as Axis
    from inftda.tree import Tree as Tree
    from inftda.tree.hierarchy import Hierarchy as Hierarchy

_HOMES = {
    "Axis": "inftda.tree",
    "Columns": "inftda.reading",
    "TableFile": "inftda.reading",
    "Estimate": "inftda.estimates.estimate",
    "Hierarchy": "inftda.tree.hierarchy",
    "InftdaError": "inftda.errors",
    "Noise": "inftda.noise.distribution",
    "Release": "inftda.publication.release",
    "SecureSource": "inftda.noise.bits",
    "SeededSource": "inftda.noise.bits",
    "SqlQuery": "inftda.reading",
    "Tree": "inftda.tree",
    "Unit": "inftda.privacy.unit",
    "build_tree": "inftda.areas.build",
    "change": "inftda.pages.change",
    "compare": "inftda.confidential.compare",
    "dossier": "inftda.documents.dossier",
    "estimate": "inftda.estimates.estimate",
    "evaluate": "inftda.confidential.evaluate",
    "export": "inftda.exports.export",
    "grid_areas": "inftda.areas.grids",
    "h3_areas": "inftda.areas.grids",
    "intopt": "inftda.mechanism.intopt",
    "make_plan": "inftda.privacy.noise_plan",
    "open_estimate": "inftda.estimates.estimate",
    "open_release": "inftda.publication.release",
    "open_series": "inftda.series.series",
    "plan": "inftda.planning.plan",
    "preview": "inftda.planning.preview",
    "read_areas": "inftda.areas.reader",
    "release": "inftda.pipeline",
    "report": "inftda.pages.report",
    "verify": "inftda.publication.verify",
}
__all__ = list(_HOMES)

#: The one place where the version stands; pyproject.toml, manifests and pages take it from here.
__version__ = "1.0.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'inftda' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HOMES, "__version__", "__doc__"})
