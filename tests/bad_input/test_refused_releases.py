"""Tables, areas, options and ledgers that make no sense: one clear line, and nothing is left.

What is wrong with single cells, hierarchies and numbers is tested where these are read.
"""

import gzip
import io
import shlex
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.cli.main import run
from inftda.util.tabular import FORMAT_NAMES

AREAS = "region,town\nN,1\nN,2\nS,3\nS,4\n"
HEAD = "origin,destination,count\n"
FLOWS = HEAD + "1,2,30\n3,4,20\n"
MANY = HEAD + "".join(f"{1 + i % 4},{1 + i // 4 % 4},{i % 7}\n" for i in range(5000))
TABLE = pa.table({"origin": ["1"], "destination": ["2"], "count": [3]})


def misnamed(table):
    """A Parquet file one of whose column names is not UTF-8."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="none", store_schema=False)
    return sink.getvalue().replace(b"destination", b"destinatio\xee")


PLACED = "release flows.csv --areas areas.csv --out out"
BUDGET = "--epsilon 1 --delta 1e-8"
GOOD = f"{PLACED} {BUDGET}"
BY_QUERY = f"release --areas areas.csv {BUDGET} --out out"

#: A file that is read in the place of flows, areas or a configuration; what it is, and what is
#: said of it.
FILES = {
    "release FILE --areas areas.csv": {
        "an empty file": ("x.csv", b"", "is empty"),
        "a header only": ("x.csv", HEAD, "no rows"),
        "UTF-16": ("x.csv", FLOWS.encode("utf-16"), "not utf-8 text"),
        "Latin-1 in a cell": ("x.csv", f"{HEAD}1,\xe9,3\n".encode("latin-1"), "convert it to"),
        "Latin-1 in the header": ("x.csv", "or\xedgin,b\n".encode("latin-1"), "--encoding"),
        "wide digits in a count": ("x.csv", HEAD + "1,2,\uff11\uff12\n", "not a number as count"),
        "a zero byte in a count": ("x.csv", HEAD + "1,2,\0003\n", "not a number as count"),
        "a zero byte in the header": ("x.csv", "ori\0gin,destination\n1,2\n", "did you mean"),
        "text called .gz": ("x.csv.gz", FLOWS, "damaged or cut off"),
        "garbage after packed rows": (
            "x.csv.gz", gzip.compress(MANY.encode(), mtime=0) + b"garbage", "damaged or cut off"
        ),
        "counts that overflow": ("x.csv", HEAD + "1,2,9000000000000000000\n" * 3, "beyond 2^43"),
        "no workbook": ("x.xlsx", FLOWS, "damaged"),
        "CSV called .parquet": ("x.parquet", FLOWS, "as Parquet"),
        "Parquet called .csv": ("x.csv", TABLE, "is not utf-8 text"),
        "no rows": ("x.parquet", TABLE.slice(0, 0), "no rows"),
        "no columns": ("x.parquet", TABLE.select([]), "as Parquet"),
        "a name that is no text": ("x.parquet", misnamed(TABLE), "damaged"),
    },
    "release FILE --areas areas.csv --matrix": {
        "a matrix without a header": ("x.csv", "1,30,4\n2,5,6\n", "--skip-rows"),
    },
    "release FILE --areas areas.csv --sheet May": {
        "a sheet of CSV": ("x.csv", FLOWS, "leave out --sheet"),
    },
    "release flows.csv --areas FILE": {
        "Latin-1": ("x.csv", "region,town\nN,\xe9\n".encode("latin-1"), "save it as UTF-8"),
        "bytes of all values": ("x.csv", bytes(range(256)) * 20, "cannot read"),
        "a parent list with a cycle": ("x.csv", "area,parent\nA,B\nB,C\nC,B\n", "one parent"),
        "two areas inside each other": ("x.csv", "region,town\nA,B\nB,A\n", "cannot be placed"),
        "one single area": ("x.csv", "town\n1\n", "nothing to measure"),
        "codes that look alike": ("x.csv", "town\n\uff11\n\uff12\n3\n4\n", "unknown origin"),
        "a header only": ("x.csv", "region,town\n", "per finest area\n"),
        "an unknown ending": ("x.ods", AREAS, "unknown ending"),
        "text called .xlsx": ("x.xlsx", AREAS, "save it again as .xlsx, or as CSV"),
        "packed rows cut off": ("x.csv.gz", gzip.compress(AREAS.encode() * 99)[:40], "cannot read"),
        "Parquet cut off": ("x.parquet", b"PAR1aaaaPAR1", "cannot read"),
        "lists as codes": ("x.parquet", pa.table({"town": [["1"], ["2"]]}), "must be text"),
        "a name that is no text": (
            "x.parquet", misnamed(pa.table({"destination": list("1234")})), "areas table"
        ),
    },
    "release flows.csv --areas FILE --unplaceable outside": {
        "the code of the outside": ("x.csv", AREAS + "S,outside\n", "is taken"),
    },
    "release flows.csv --areas areas.csv --config FILE": {
        "a key twice": ("x.toml", "title = 1\ntitle = 2", "not TOML"),
        "a zero byte": ("x.toml", "\0", "not TOML"),
        "no text": ("x.toml", b"\xff\xfe\x00", "not TOML"),
        "a misspelt key": ("x.toml", "epsilonn = 1", "did you mean 'epsilon'"),
        "a list of one": ("x.toml", "trips = [1]", "'trips'"),
        "a text as a flag": ("x.toml", "force = 'maybe'", "'force'"),
        "another configuration": ("x.toml", "config = 'other.toml'", "unknown key"),
        "a table of weights": ("x.toml", "split = {leaves = 1}", "'uniform'"),
        "an axis without areas": ("x.toml", "axis = 'mode'", "--axis must be NAME=VALUE"),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "what"), [(line, what) for line, files in FILES.items() for what in files]
)
def test_a_file_that_cannot_be_read_is_refused(refuse, write, line, what):
    name, content, says = FILES[line][what]
    write(name, content)
    printed = refuse(*f"{line} {BUDGET} --out out".replace("FILE", name).split(), says=says)
    assert not printed.out


@pytest.fixture
def things(place, write, capsys):
    """Folders without one table, a database, and a ledger."""
    for folder in ("empty", "both", "differing"):
        (place / folder).mkdir()
    write("both/a.csv", FLOWS)
    write("both/b.parquet", TABLE)
    write("differing/a.csv", FLOWS)
    write("differing/b.csv", "origin,destination\n1,2\n")
    write("negative.csv", HEAD + "1,2,-3\n")
    with sqlite3.connect(place / "trips.db") as connection:
        connection.execute("CREATE TABLE trips (origin, destination)")
    connection.close()
    assert run(["ledger", "create", "ledger.db", "census", "--rho", "0.02"]) == 0
    capsys.readouterr()


CHARGED = "--ledger ledger.db --dataset census"
#: What is typed, and what is said.
WRONG = [
    # Areas
    (f"release flows.csv {BUDGET} --out out", "give areas"),
    (f"release flows.csv --areas nothing.csv {BUDGET} --out out", "check the path"),
    (f"release flows.csv --axis origin=areas.csv {BUDGET} --out out", "hierarchy for the dest"),
    (f"{GOOD} --axis =areas.csv", "NAME=VALUE"),
    (f"{GOOD} --axis flow=areas.csv", "another name"),
    (f"{GOOD} --axis Origin=areas.csv", "given twice"),
    (f"{GOOD} --order origin,origin,destination,up", "the axes are"),
    (f"{GOOD} --unplaceable hide", "error, outside, drop"),
    (f"{GOOD} --unplaceable drop", "--unplaceable outside"),
    # Tables
    (f"release nothing.csv --areas areas.csv {BUDGET} --out out", "check the path"),
    (f"release empty --areas areas.csv {BUDGET} --out out", f"no {FORMAT_NAMES} file in the"),
    (f"release both --areas areas.csv {BUDGET} --out out", "both CSV and Parquet"),
    (f"release differing --areas areas.csv {BUDGET} --out out", "a different header"),
    (f"release *.nothing --areas areas.csv {BUDGET} --out out", "check the path"),
    (f"release /dev/null --areas areas.csv {BUDGET} --out out", "a pipe or a device"),
    (f"{GOOD} --skip-rows -1", "at least 0"),
    (f"{GOOD} --count nothing", "no column 'nothing'"),
    (f"{GOOD} --count origin", "given twice"),
    (f"{GOOD} --encoding cp1252", "one of utf-8, utf-16, latin-1"),
    (f"{GOOD} --encoding utf-16", "not utf-16 text"),
    # Databases
    (f"{BY_QUERY} --sql 'SELECT 1' --database mysql://host/name", "export the table to Parquet"),
    (f"{BY_QUERY} --sql 'SELECT 1' --database sqlite://x.db", "sqlite:///path"),
    (f"{BY_QUERY} --sql 'SELECT 1' --database sqlite:///nothing.db", "check the path"),
    (f"{BY_QUERY} --sql '' --database sqlite:///trips.db", "empty"),
    (f"{BY_QUERY} --sql 'DROP TABLE trips' --database sqlite:///trips.db", "SELECT statement"),
    (f"{BY_QUERY} --sql 'SELECT 1 AS origin' --database sqlite:///trips.db", "no column 'destina"),
    (f"{BY_QUERY} --sql x --database postgresql://me:p@ss@host/name", "percent-encoded"),
    (f"{BY_QUERY} --sql x --database postgresql://a:b@127.0.0.1:1/c?connect_timeout=1", "server r"),
    (f"{BY_QUERY} --sql x --database sqlite:///trips.db --encoding latin-1", "--encoding"),
    (f"{GOOD} --sql 'SELECT 1'", "both --sql and --database"),
    # Budgets
    (f"{PLACED} --epsilon nan --delta 1e-8", "finite number"),
    (f"{PLACED} --epsilon 1e9 --delta 1e-8", "guarantees nothing"),
    (f"{PLACED} --epsilon one --delta 1e-8", "'--epsilon'"),
    (f"{PLACED} --epsilon 1 --delta 1e-101", "at least 1e-100"),
    (f"{PLACED} --epsilon 1", "got only epsilon = 1.0"),
    (PLACED, "--epsilon 1 and --delta 1e-8, or rho; got neither"),
    (f"{GOOD} --rho 1", "not all"),
    (f"{PLACED} --rho 1/0", "0.1 or 1/10"),
    (f"{PLACED} --rho 1_0", "0.1 or 1/10"),
    (f"{PLACED} --rho {'9' * 5000}", "0.1 or 1/10"),
    (f"{PLACED} --rho 1e-999", "larger epsilon or rho"),
    # A billion digits would fill the memory if they were written out.
    *((f"{PLACED} --rho {n}", "number such as") for n in ("1e999999999", "1e-999999999")),
    *((f"{PLACED} --rho {n}", "number such as") for n in ("1E+99999", "1e1_000_000_000")),
    # Other options
    (f"{GOOD} --trips 1.5", "'--trips'"),
    (f"{GOOD} --trips {'9' * 23}", "fewer trips"),
    (f"{GOOD} --accountant exact --trips 2", "use 'zcdp' or 'auto'"),
    (f"{GOOD} --split 1,,1,1", "must be numbers with commas"),
    (f"{GOOD} --split ''", "'uniform'"),
    (f"{GOOD} --engine steam", "local or spark"),
    (f"{GOOD} --threads 0", "at least 1"),
    (f"{GOOD} --threads 47171", "at most 1,024"),
    (f"{GOOD} --not-private-seed x", "'--not-private-seed'"),
    (f"{GOOD} --frobnicate", "--help"),
    (f"{GOOD} second.csv", "--help"),
    (f"{GOOD} --config nothing.toml", "cannot read the configuration"),
    (f"{GOOD} --config .", "cannot read the configuration"),
    (f"release flows.csv --areas areas.csv {BUDGET}", "--out"),
    (f"release --areas areas.csv {BUDGET} --out out", "FLOWS"),
    (f"plan {BUDGET} --sizes 1,99999999999999", "at most"),
    # Releases that cannot be charged
    (f"{GOOD} --ledger ledger.db", "both or neither"),
    (f"{GOOD} --ledger nothing.db --dataset census", "ledger create"),
    (f"{GOOD} {CHARGED} --not-private-seed 1", "seed"),
    (f"{GOOD} {CHARGED} --trips 2", "do not add up"),
    (f"{PLACED} {CHARGED} --rho 1e-100", "larger epsilon"),
    (f"release negative.csv --areas areas.csv {BUDGET} --out out {CHARGED}", "negative"),
    # Ledgers
    ("ledger create new.db x", "give one of the two"),
    ("ledger create new.db x --rho 0", "> 0"),
    ("ledger create new.db x --epsilon 1", "give both"),
    ("ledger create new.db 'a\nb' --rho 1", "single blanks"),
    ("ledger create no/new.db x --rho 1", "check the path"),
    ("ledger create . x --rho 1", "no ledger"),
    ("ledger create flows.csv x --rho 1", "not a ledger"),
    ("ledger create ledger.db census --rho 9", "fixed"),
    ("ledger list nothing.db", "ledger create"),
    ("ledger show ledger.db cencus", "it has 'census'"),
    ("ledger charge ledger.db census --rho 0.01", "--note"),
    ("ledger charge ledger.db census --note x", "--rho"),
    ("ledger charge ledger.db census --rho 0.01 --note 'a\nb'", "one line"),
    ("ledger charge ledger.db census --rho 0.03 --note x", "--rho 0.02 fits"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "says"), WRONG, ids=lambda text: repr(text)[:70])
@pytest.mark.usefixtures("things")
def test_what_makes_no_sense_is_refused(refuse, line, says):
    """A ledger is not charged either: no file changes."""
    printed = refuse(*shlex.split(line), says=says)
    assert not printed.out


@pytest.mark.slow
def test_a_pipe_is_refused_and_not_said_to_be_missing(shell):
    done = shell(*GOOD.replace("flows.csv", "/dev/stdin").split(), input=FLOWS)
    assert done.code == 2
    assert "write it to a file first" in done.err
