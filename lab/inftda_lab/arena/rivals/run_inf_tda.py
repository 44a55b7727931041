"""The authors' own package."""

import numpy as np
import pandas as pd
from InfTDA import inf_tda
from tables import Task

task = Task()
n = len(task.finest)
origin, destination = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
columns = []
for level in task.levels:
    codes = np.array(task.codes[level], dtype=object)[task.within[level]]
    columns += [codes[destination], codes[origin]]
table = pd.Series(task.matrix().ravel().astype(np.int32), index=pd.MultiIndex.from_arrays(columns))
budget = (task.settings["epsilon"], task.settings["delta"])
made = inf_tda(table, budget, 1, "bounded", True)
ends = made.index.to_frame(index=False)
last = len(columns) - 1
task.write(ends[last].to_numpy(), ends[last - 1].to_numpy(), made.to_numpy().astype(np.int64))
