"""Tables of areas that are no hierarchy."""

import gzip

import pyarrow as pa
import pytest

AREAS = "region,town\nN,1\nN,2\nS,3\nS,4\n"

FILES = {
    "an empty file": ("x.csv", b"", "first line is blank"),
    "a blank first line": ("x.csv", "\n" + AREAS, "first line is blank"),
    "a header only": ("x.csv", "region,town\n", "no rows"),
    "Latin-1": ("x.csv", "region,town\nN,\xe9\n".encode("latin-1"), "save it as UTF-8"),
    "UTF-16": ("x.csv", AREAS.encode("utf-16"), "save it as UTF-8"),
    "bytes of all values": ("x.csv", bytes(range(256)) * 20, "cannot read"),
    "two parents": ("x.csv", "region,town\nN,1\nS,1\n", "give each area one parent"),
    "a parent list with a cycle": ("x.csv", "area,parent\nA,B\nB,C\nC,B\n", "one parent"),
    "two areas inside each other": ("x.csv", "region,town\nA,B\nB,A\n", "cannot be placed"),
    "a finest area twice": ("x.csv", "region,town\nN,1\nN,1\n", "one row per finest area"),
    "a gap at the finest level": ("x.csv", "region,town\nN,\nS,2\n", "blank in row 1"),
    "a gap at a coarse level": ("x.csv", "region,town\nN,1\n ,2\n", "blank in row 2"),
    "a column twice": ("x.csv", "town,town\nN,1\n", "given twice"),
    "a column without a name": ("x.csv", ",town\nN,1\n", "has no name"),
    "a level called all": ("x.csv", "all,town\nN,1\n", "rename that column"),
    "too few cells": ("x.csv", "region,town\nN\n", "Row #2"),
    "too many cells": ("x.csv", "region,town\nN,1,2\n", "Row #2"),
    "a quote that is not closed": ("x.csv", 'region,town\n"N,1\n', "close it"),
    "one single area": ("x.csv", "town\n1\n", "nothing to measure"),
    "codes with blanks": ("x.csv", "town\n1 \n2 \n3 \n4 \n", "unknown origin"),
    "codes that look alike": ("x.csv", "town\n\uff11\n\uff12\n3\n4\n", "unknown origin"),
    "an unknown ending": ("x.ods", AREAS, "unknown ending"),
    "text called .xlsx": ("x.xlsx", AREAS, "save it again as .xlsx, or as CSV"),
    "a packed file cut off": ("x.csv.gz", gzip.compress(AREAS.encode() * 99)[:40], "cannot read"),
    "text called .gz": ("x.csv.gz", AREAS, "cannot read"),
    "Parquet cut off": ("x.parquet", b"PAR1aaaaPAR1", "cannot read"),
    "decimal codes": ("x.parquet", pa.table({"town": [1.0, 2.0]}), "read it as text"),
    "lists as codes": ("x.parquet", pa.table({"town": [["1"], ["2"]]}), "must be text"),
    "a missing code": ("x.parquet", pa.table({"town": ["1", None]}), "blank in row 2"),
}


@pytest.mark.parametrize("what", FILES)
def test_areas_that_are_no_hierarchy_are_refused(refuse_release, write, what):
    name, content, says = FILES[what]
    refuse_release(areas=write(name, content), says=says)


@pytest.mark.parametrize(
    ("extra", "areas", "says"),
    [
        ((), None, "give areas"),
        ((), "nothing.csv", "check the path"),
        ((), ".", "check the path"),
        (("--axis", "origin=areas.csv"), None, "hierarchy for the destination"),
        (("--axis", "mode"), "areas.csv", "NAME=VALUE"),
        (("--axis", "=areas.csv"), "areas.csv", "NAME=VALUE"),
        (("--axis", "mode=nothing.csv"), "areas.csv", "check the path"),
        (("--axis", "flow=areas.csv"), "areas.csv", "another name"),
        (("--axis", "Origin=areas.csv"), "areas.csv", "given twice"),
        (("--axis", " =areas.csv"), "areas.csv", "another name"),
        (("--order", "destination"), "areas.csv", "once for each level"),
        (("--order", "origin,origin,destination,up"), "areas.csv", "the axes are"),
        (("--unplaceable", "hide"), "areas.csv", "error, outside, drop"),
        (("--unplaceable", "drop"), "areas.csv", "--unplaceable outside"),
    ],
)
def test_a_tree_that_cannot_be_built_is_refused(refuse_release, extra, areas, says):
    refuse_release(*extra, areas=areas, says=says)


def test_the_code_of_the_outside_area_must_be_free(refuse_release, write):
    areas = write("x.csv", AREAS + "S,outside\n")
    refuse_release("--unplaceable", "outside", areas=areas, says="is taken")
