"""`python -m inftda_lab.arena.baseline NAME INPUT OUT`: one of the laboratory's own mechanisms."""

import secrets
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from inftda_lab.arena.tools import EPSILON
from inftda_lab.baselines import MECHANISMS, OTHERS, Budget
from inftda_lab.tables import read_table


def main() -> None:
    """Read a table, release it, write the flows."""
    name, given, out = sys.argv[1:]
    table = read_table(Path(given))
    made = {**MECHANISMS, **OTHERS}[name](table, Budget(EPSILON), secrets.randbits(62))
    codes = table.areas.codes(table.areas.depth)
    ends = [codes.take(pa.array(number)) for number in made[:2]]
    flows = pa.table([*ends, made.trips], ["origin", "destination", "flow"])
    pq.write_table(flows, Path(out) / "finest.parquet")


if __name__ == "__main__":
    main()
