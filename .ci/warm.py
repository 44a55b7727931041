"""Compile all kernels once and cache them, before several processes would do so side by side."""

import inftda
from inftda.cli.main import run

AREAS = {"region": ["N", "N", "S"], "town": ["1", "2", "3"]}
FLOWS = {"origin": ["1", "2", "3"], "destination": ["2", "3", "3"], "count": [30, 400, 5_000]}

inftda.release(FLOWS, AREAS, epsilon=1, delta=1e-6)
inftda.estimate(inftda.release(FLOWS, AREAS, epsilon=1, delta=1e-6))
raise SystemExit(run(["selftest"]))
