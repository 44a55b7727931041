"""Tables of areas that are no hierarchy; what is wrong with one is tested with hierarchies."""

import gzip

import pyarrow as pa
import pytest

AREAS = "region,town\nN,1\nN,2\nS,3\nS,4\n"

FILES = {
    "Latin-1": ("x.csv", "region,town\nN,\xe9\n".encode("latin-1"), "save it as UTF-8"),
    "bytes of all values": ("x.csv", bytes(range(256)) * 20, "cannot read"),
    "a parent list with a cycle": ("x.csv", "area,parent\nA,B\nB,C\nC,B\n", "one parent"),
    "two areas inside each other": ("x.csv", "region,town\nA,B\nB,A\n", "cannot be placed"),
    "one single area": ("x.csv", "town\n1\n", "nothing to measure"),
    "codes that look alike": ("x.csv", "town\n\uff11\n\uff12\n3\n4\n", "unknown origin"),
    "the code of the outside": ("x.csv", AREAS + "S,outside\n", "is taken"),
    "a header only": ("x.csv", "region,town\n", "per finest area\n"),
    "an unknown ending": ("x.ods", AREAS, "unknown ending"),
    "text called .xlsx": ("x.xlsx", AREAS, "save it again as .xlsx, or as CSV"),
    "a packed file cut off": ("x.csv.gz", gzip.compress(AREAS.encode() * 99)[:40], "cannot read"),
    "Parquet cut off": ("x.parquet", b"PAR1aaaaPAR1", "cannot read"),
    "lists as codes": ("x.parquet", pa.table({"town": [["1"], ["2"]]}), "must be text"),
}


@pytest.mark.parametrize("what", FILES)
def test_areas_that_are_no_hierarchy_are_refused(refuse_release, write, what):
    name, content, says = FILES[what]
    options = ("--unplaceable", "outside") if what == "the code of the outside" else ()
    refuse_release(*options, areas=write(name, content), says=says)


@pytest.mark.parametrize(
    ("extra", "areas", "says"),
    [
        ((), None, "give areas"),
        ((), "nothing.csv", "check the path"),
        (("--axis", "origin=areas.csv"), None, "hierarchy for the destination"),
        (("--axis", "=areas.csv"), "areas.csv", "NAME=VALUE"),
        (("--axis", "flow=areas.csv"), "areas.csv", "another name"),
        (("--axis", "Origin=areas.csv"), "areas.csv", "given twice"),
        (("--order", "origin,origin,destination,up"), "areas.csv", "the axes are"),
        (("--unplaceable", "hide"), "areas.csv", "error, outside, drop"),
        (("--unplaceable", "drop"), "areas.csv", "--unplaceable outside"),
    ],
)
def test_a_tree_that_cannot_be_built_is_refused(refuse_release, extra, areas, says):
    refuse_release(*extra, areas=areas, says=says)
