"""OpenDP: a contingency table of all pairs of finest areas, fitted by mbi."""

import dataclasses
import sys
import warnings

import numpy as np
import opendp.prelude as dp
import polars as pl
from mbi.estimation import mirror_descent
from tables import Task

warnings.filterwarnings("ignore")
dp.enable_features("contrib")
task = Task()
steps = int(sys.argv[3])
trips = pl.scan_parquet(task.input / "trips.parquet").select("origin", "destination")
context = dp.Context.compositor(
    data=trips,
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(rho=task.settings["rho of a row"]),
    split_evenly_over=1,
)
algorithm = dp.mbi.Fixed(queries=[dp.mbi.Count(("origin", "destination"))])
if steps:

    def estimate(domain, loss, *, potentials=None):
        return mirror_descent(domain, loss, potentials=potentials, iters=steps)

    algorithm = dataclasses.replace(algorithm, estimator=estimate)
keys = {"origin": task.finest, "destination": task.finest}
made = context.query().contingency_table(keys=keys, algorithm=algorithm).release()
flows = np.asarray(made.project(("origin", "destination")), float)
places = [[made.keys[end].to_list().index(code) for code in task.finest] for end in keys]
flows = flows[np.ix_(*places)]
task.write_matrix(np.where(flows > 1e-6, flows, 0))
