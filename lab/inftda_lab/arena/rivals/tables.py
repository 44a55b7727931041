"""What all rivals read and write; for their own Pythons."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


class Task:
    """Folders and settings of a run: `python run_TOOL.py INPUT OUT`."""

    def __init__(self):
        self.input, self.out = map(Path, sys.argv[1:3])
        self.settings = json.loads((self.input / "settings.json").read_text())
        with (self.input / "areas.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.levels = list(rows[0])
        self.areas = rows
        #: For each level its codes in order of appearance, and the number of each finest area's.
        self.codes = {level: list(dict.fromkeys(row[level] for row in rows)) for level in rows[0]}
        self.within = {}
        for level, codes in self.codes.items():
            number = {code: place for place, code in enumerate(codes)}
            self.within[level] = np.array([number[row[level]] for row in rows])

    @property
    def finest(self):
        return self.codes[self.levels[-1]]

    def matrix(self):
        """True flows between finest areas."""
        number = {code: place for place, code in enumerate(self.finest)}
        flows = pq.read_table(self.input / "flows.parquet")
        found = np.zeros((len(number), len(number)))
        ends = [[number[c] for c in flows[end].to_pylist()] for end in ("origin", "destination")]
        found[ends[0], ends[1]] = flows["count"].to_numpy()
        return found

    def tree(self):
        """Levels at both ends, destination refined first: as the paper and inftda have it."""
        found, origin = [], "all"
        for level in self.levels:
            found += [(origin, level), (level, level)]
            origin = level
        return found

    def write_matrix(self, flows):
        """Write flows between finest areas; those that are 0 are left out."""
        origin, destination = np.nonzero(flows)
        codes = np.array(self.finest, dtype=object)
        self.write(codes[origin], codes[destination], flows[origin, destination])

    def write(self, origin, destination, flow, name="finest"):
        columns = {"origin": origin, "destination": destination}
        text = {end: pa.array(list(codes), pa.string()) for end, codes in columns.items()}
        pq.write_table(pa.table({**text, "flow": pa.array(flow)}), self.out / f"{name}.parquet")

    def say(self, text):
        """A remark for the page, such as whether a fit converged."""
        (self.out / "remark.txt").write_text(text, encoding="utf-8")
