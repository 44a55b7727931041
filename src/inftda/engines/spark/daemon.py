"""The parent of Python processes on this machine: it has everything loaded before it forks.

Spark forks workers from one process, by default one that has loaded hardly anything, so each
of them would load the same libraries and compiled kernels. Named by `spark.python.daemon.module`.
"""

import atexit
import gc
from importlib import import_module
from typing import Final

import numpy as np
from pyspark.daemon import manager

from inftda.bars import no_progress
from inftda.engines.local import LocalEngine
from inftda.hierarchy import Hierarchy
from inftda.mechanisms.step import LevelStep
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import SeededSource
from inftda.optimize.segments import optimize_intopt
from inftda.tree import Tree
from inftda.truth import Truth

#: What workers import.
MODULES: Final = (
    "pandas",  # by pyspark
    "pyspark.worker",
    "inftda.engines.spark.flows",
    "inftda.engines.spark.files",
    "inftda.engines.spark.parts",
    "inftda.engines.spark.tasks",
)


def load_kernels() -> None:
    """Divide one made-up trip, which loads the compiled kernels."""
    towns = Hierarchy.read({"town": ["1", "2"]})
    tree = Tree.destination_first(towns)
    here = np.zeros(1, np.int32)
    counts = Truth.from_leaves(tree, [here, here], np.ones(1, np.int64), threads=1)
    engine, source = LocalEngine(1), SeededSource(0)
    nodes = engine.root(counts, 1)
    for level in tree.splitting_levels:
        step = LevelStep(level, DiscreteGaussian(1), optimize_intopt, source)
        nodes = engine.step(nodes, counts, step, no_progress)


if __name__ == "__main__":
    for name in MODULES:
        import_module(name)
    load_kernels()
    # Workers look for garbage after every task, and there is none among what is loaded here.
    gc.freeze()
    atexit.register(gc.unfreeze)
    manager()
