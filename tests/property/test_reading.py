"""Reading back gives the input, whatever the order, the pieces and the kind of table."""

import csv
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inftda.noise.bits import SeededSource
from inftda.privacy.unit import Unit
from inftda.reading import Columns, TableFile, read_leaves
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy
from leaf_counts import leaf_counts
from tiers import some

#: Codes that a reader might be tempted to mend; the last two differ in their normal form only.
CODES = ["1", "01", "1.0", "a,b", 'q"q', " x ", "NULL", "true", "1e3", "ß;|", "\u00e9", "e\u0301"]
AREAS = Hierarchy.read({"area": CODES})
AXES = (Axis("origin", AREAS), Axis("destination", AREAS))

codes = st.sampled_from(CODES)
rows = st.lists(st.tuples(codes, codes, st.integers(0, 2**40)), min_size=1, max_size=40).filter(
    lambda rows: any(n for *_, n in rows)
)
modest = settings(
    max_examples=some(12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def table_of(rows):
    origin, destination, count = zip(*rows, strict=True)
    return pa.table({"origin": origin, "destination": destination, "count": pa.array(count, "i8")})


def expected(rows):
    total = Counter()
    for origin, destination, n in rows:
        total[origin, destination] += n
    return {pair: n for pair, n in total.items() if n}


def counted(source, *, random_source=None, unit=None, **options):
    columns = Columns(**options)
    found = leaf_counts(read_leaves(source, columns, AXES, unit=unit, random_source=random_source))
    code = AREAS.codes(1).to_pylist()
    return {(code[origin], code[destination]): n for (origin, destination), n in found.items()}


@modest
@given(rows=rows, data=st.data())
def test_flows_read_back_are_the_flows_in_any_order_and_any_chunks(rows, data):
    shuffled = data.draw(st.permutations(rows))
    size = data.draw(st.integers(1, len(rows)))
    table = table_of(shuffled)
    batches = table.to_batches(max_chunksize=size)
    stream = pa.RecordBatchReader.from_batches(table.schema, batches)
    added = {"repeated_rows": "add"}
    assert counted(table_of(rows), **added) == counted(stream, **added) == expected(rows)


@modest
@given(pairs=st.lists(st.tuples(codes, codes), min_size=1, max_size=40), data=st.data())
def test_trips_read_back_are_the_trips_in_any_order_and_any_chunks(pairs, data):
    trips = [(origin, destination, 1) for origin, destination in pairs]
    table = table_of(data.draw(st.permutations(trips))).drop_columns("count")
    size = data.draw(st.integers(1, len(pairs)))
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=size))
    assert counted(table) == counted(stream) == expected(trips)


@pytest.mark.slow
@modest
@given(rows=rows, separator=st.sampled_from(",;\t|"), n_files=st.integers(1, 3))
def test_files_read_back_are_the_flows(tmp_path_factory, rows, separator, n_files):
    folder = tmp_path_factory.mktemp("flows")
    for i in range(n_files):
        part = rows[i::n_files]
        if part:
            pq.write_table(table_of(part), folder / f"{i}.parquet")
        with (folder / f"{i}.csv").open("w", newline="", encoding="utf-8") as handle:
            writer = csv.writer(handle, delimiter=separator)
            writer.writerows([("origin", "destination", "count"), *part])
    sources = (
        str(folder / "*.parquet"),
        TableFile(folder / "*.csv", delimiter=separator),
        str(folder / "*.csv"),
    )
    for source in sources:
        assert counted(source, repeated_rows="add") == expected(rows)


people = st.lists(st.tuples(st.integers(0, 5), codes, codes), min_size=1, max_size=40)


@modest
@given(people=people, m=st.integers(1, 4), seed=st.integers(0, 99))
@pytest.mark.parametrize("distinct", [False, True])
def test_no_person_keeps_more_than_m_trips_and_none_that_was_not_made(people, m, seed, distinct):
    names = ["who", "origin", "destination"]
    table = dict(zip(names, map(list, zip(*people, strict=True)), strict=True))
    made = Counter(people)
    if distinct:
        made = Counter(made.keys())
    per_person = Counter(who for who, *_ in made.elements())
    kept = counted(
        table,
        person="who",
        unit=Unit("add-remove", trips=m, distinct=distinct),
        random_source=SeededSource(seed),
    )
    assert sum(kept.values()) == sum(min(n, m) for n in per_person.values())
    possible = Counter()
    for (_, origin, destination), n in made.items():
        possible[origin, destination] += min(n, m)
    assert all(n <= possible[pair] for pair, n in kept.items())
