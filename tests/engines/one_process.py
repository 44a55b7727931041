"""The work of a cluster carried out in this process: same steps, same tasks, no Spark."""

from fractions import Fraction
from math import inf

import numpy as np
import pyarrow as pa

from inftda.engines.local import LocalEngine
from inftda.engines.spark import tasks
from inftda.engines.spark.cost import CostModel
from inftda.engines.spark.keys import draw_secret
from inftda.engines.spark.scales import charge_all
from inftda.engines.spark.shipment import Shipment, pack
from inftda.engines.spark.trunk import Trunk
from inftda.mechanisms.base import Setting
from inftda.mechanisms.catalogue import mechanism_named
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import SeededSource
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import PrivacyUnit


class LocalLeaves:
    """Leaves in one Arrow table, summed up by the task that runs on executors."""

    def __init__(self, areas, counts):
        self.names = [f"area_{i}" for i in range(len(areas))]
        self.table = pa.table([*areas, counts], names=[*self.names, "n"])

    def sum_up(self, within, ascent):
        batches = list(tasks.climb(within, ascent, self.table.to_batches(max_chunksize=7)))
        nodes = pa.Table.from_batches(batches, self.table.schema)
        sums = nodes.group_by(self.names).aggregate([("n", "sum")])
        return sums.rename_columns([*self.names, "n"])


class OneProcess:
    """One release, step by step; `frontier` is what was left to the executors."""

    def __init__(
        self, tree, areas, counts, *, groups, unit=None, rho=1, mechanism="inftda", seed=0
    ):
        self.tree = tree
        self.leaves = LocalLeaves(areas, counts)
        plan = make_plan(tree, unit or PrivacyUnit(), rho=Fraction(rho))
        source = SeededSource(seed)
        self.spending = plan.spending()
        charged = charge_all(plan, self.spending)
        setting = Setting(charged.whole(), DiscreteGaussian, source, LocalEngine(1))
        chosen = mechanism_named(mechanism)
        self.model = CostModel.of(tree, plan)
        self.frontier = Trunk(self.model, self.leaves, chosen, setting, groups, inf).grow()
        self.shipment = Shipment(
            tree, pack(chosen), charged, DiscreteGaussian, draw_secret(source), is_secure=False
        )

    def partitions(self):
        """The rows of each group, seeds included, as tasks are given them."""
        keys = np.arange(self.frontier.n_groups, dtype=np.int64)
        rows = list(tasks.route(self.frontier, keys, self.leaves.table.to_batches()))
        for key in keys:
            seed = [[key], [self.frontier.group_start[key]], *([0] for _ in self.tree.axes), [0]]
            here = [batch.filter(pa.array(batch["key"].to_numpy() == key)) for batch in rows]
            types = [pa.int64(), *[pa.int32()] * (1 + len(self.tree.axes)), pa.int64()]
            names = ["key", "node", *self.leaves.table.column_names]
            arrays = [pa.array(column, kind) for column, kind in zip(seed, types, strict=True)]
            yield [*here, pa.RecordBatch.from_arrays(arrays, names=names)]

    def run_task(self, batches):
        return list(tasks.refine(self.shipment, self.frontier, batches))

    def release(self):
        """Cell to flow, as a dictionary of codes."""
        self.spending.finish()
        flows = [batch for rows in self.partitions() for batch in self.run_task(rows)]
        return as_cells(flows)


def as_cells(batches):
    cells = {}
    for batch in batches:
        *codes, flow = (column.to_pylist() for column in batch.columns)
        for *cell, value in zip(*codes, flow, strict=True):
            assert tuple(cell) not in cells, "no cell stands twice"
            cells[tuple(cell)] = value
    return cells


def true_cells(tree, areas, counts):
    """The same from area numbers."""
    names = [
        axis.hierarchy.codes(axis.hierarchy.depth).take(pa.array(numbers)).to_pylist()
        for axis, numbers in zip(tree.axes, areas, strict=True)
    ]
    cells = {}
    for *cell, n in zip(*names, counts.tolist(), strict=True):
        cells[tuple(cell)] = cells.get(tuple(cell), 0) + n
    return {cell: n for cell, n in cells.items() if n}
