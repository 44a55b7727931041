"""Any change of a release folder is refused by `verify`.

The forger is thorough: the manifest states the digests of the forged files. Forgeries that
cannot be detected from the folder alone are listed with the reason; the list is exact, so that a
missing check is noticed.
"""

import copy
import json
import math
import os
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import inftda
from edited_folders import as_written, restate, seal
from inftda.demo import make_country
from inftda.errors import InftdaError, ReleaseError
from inftda.privacy.unit import Unit
from inftda.publication.parquet import CODE, write_flows
from inftda.publication.verify import verify
from inftda.reading import Columns
from inftda.tree import Cells
from tiers import some

AREAS = {
    "region": list("NNSS"),
    "town": ["1", "2", "3", "4"],
    "name": ["Aix", "Bourg", "Caux", None],
    "lon": [1.5, 2.5, 3.5, None],
    "lat": [0.5, 0.5, 0.5, None],
    "wkt": [*(f"POLYGON(({x} 0, {x + 1} 0, {x} 1, {x} 0))" for x in (1, 2, 3)), None],
}
TRIPS = {
    "who": [f"p{number}" for number in range(160)],
    "origin": ["1", "2", "3", "4"] * 40,
    "destination": ["2", "2", "1", "4"] * 40,
}


MANIFEST, AREAS_FILE = TEXT_FILES = "manifest.json", "areas.csv"
PLACES_FILE = "places.parquet"
FILES = (*TEXT_FILES, "flows.parquet", "measurements.parquet", PLACES_FILE)


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    """A release with everything that a folder may have."""
    out = tmp_path_factory.mktemp("forging") / "release"
    inftda.release(
        TRIPS, AREAS, out=out, columns=Columns(person="who", unplaceable="outside"),
        unit=Unit("add-remove", 2), epsilon=5,
        delta=1e-6, accountant="zcdp", cross_tables=0.2,
    )  # fmt: skip
    return out


@pytest.fixture
def slips(genuine, tmp_path):
    """Changes a copy of the release; whether `verify` finds nothing wrong with it."""
    folder = tmp_path / "forged"

    def slips_through(change):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(genuine, folder)
        change(folder)
        with suppress(InftdaError):
            list(verify(folder))
            return True
        return False

    return slips_through


def stated(change):
    return lambda folder: restate(folder, change)


def test_the_release_itself_verifies_and_has_all_files(genuine, slips):
    assert slips(lambda _: None)
    assert slips(seal)
    assert {path.name for path in genuine.iterdir()} == {*FILES}
    assert len(pq.read_table(genuine / "flows.parquet")) > 3


# --- The manifest: each field, in many ways ---

#: Words that stand in a manifest, and others that could stand in their place.
WORDS = {
    "accountant": ["exact", "pld", "zcdp", "stability", "auto"],
    "neighbours": ["substitute", "add-remove"],
    "unplaceable": ["error", "drop", "outside"],
    "distribution": ["gaussian", "laplace", "geometric"],
    "measurements": ["none", "totals", "all"],
    "file": ["areas-1.csv", "areas-2.csv", "areas.csv.gz", "flows.parquet", "../areas.csv"],
}

#: What a folder cannot prove: where it stands, what is put there, and why it must pass.
UNPROVABLE = {
    ("counted", "bounded", "other"): "the publisher's word; it follows from nothing in the folder",
    ("counted", "bounded", "emptied"): "likewise",
    ("counted", "unplaceable", "'error'"): "likewise: areas may have one called outside",
    ("counted", "unplaceable", "'drop'"): "likewise",
    ("counted", "what", "longer"): "likewise: it is a word",
    ("counted", "what", "capital"): "likewise",
    ("edition", "longer"): "likewise: it is a name",
    ("guarantee", "epsilon", "twice"): "a weaker guarantee is true as well",
    ("guarantee", "epsilon", "a little more"): "likewise",
    ("guarantee", "epsilon", "a little less"): "noise is rounded up, so this is still true",
    ("guarantee", "delta", "twice"): "a weaker guarantee is true as well",
    ("guarantee", "delta", "a little more"): "likewise",
    ("guarantee", "delta", "a little less"): "noise is rounded up, so this is still true",
    (
        "guarantee",
        "cross_table_share",
        "doubled",
    ): "what was asked for; what it is spent on is checked",
}
#: Nothing follows from versions: they may be any, and those of libraries may be absent.
FREE = ("software",)


def everywhere(value, at=()):
    """Every place in a manifest, from the whole to single values."""
    yield at, value
    inside = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):  # the first and the last stand for all
        inside = [(key, value[key]) for key in sorted({0, len(value) - 1}) if value]
    for key, item in inside:
        yield from everywhere(item, (*at, key))


def other_values(key, value):
    """Other values for a place, by what is done."""
    found = {"null": None, "text": str(value), "listed": [value], "boxed": {"x": value}}
    found["emptied"] = type(value)()
    if isinstance(value, bool):
        found |= {"other": not value, "number": int(value)}
    elif isinstance(value, int | float):
        found |= {"twice": 2 * value, "half": value / 2, "negative": -value, "huge": 10**400}
        found |= {"float": float(value), "truth": bool(value), "whole": int(value)}
        found |= {"NaN": math.nan, "endless": math.inf}
        is_whole = isinstance(value, int)
        found["a little more"] = value + 1 if is_whole else math.nextafter(value, math.inf)
        found["a little less"] = value - 1 if is_whole else math.nextafter(value, -math.inf)
    elif isinstance(value, str):
        found |= {"longer": value + "x", "blank": f" {value}", "capital": value.upper()}
        found |= {"half a letter": value + "\ud800", "number": 1, "escape": value + "\x1b[2J"}
        found |= {repr(word): word for word in WORDS.get(key, ())}
        if "/" in value and value[0].isdigit():
            top, bottom = map(int, value.split("/"))
            found |= {"unreduced": f"{2 * top}/{2 * bottom}", "doubled": f"{2 * top}/{bottom}"}
    elif isinstance(value, list):
        found |= {"backwards": value[::-1], "shorter": value[1:], "again": value + value[:1]}
    elif isinstance(value, dict):
        found |= {"with an unknown key": {**value, "unknown": 1}}
        found["in another order"] = dict(reversed(value.items()))
    return found.items()


GONE = object()


def placed(manifest, at, value):
    """A copy of the manifest with another value at a place, or without it."""
    if not at:
        return value
    changed = copy.deepcopy(manifest)
    holder = get(changed, at[:-1])
    holder[at[-1]] = value
    if value is GONE:
        del holder[at[-1]]
    return changed


def forged_manifests(manifest):
    """Where, what is done, and the text of the forged manifest."""
    for at, value in everywhere(manifest):
        for what, other in other_values(at[-1] if at else "", value):
            changed = placed(manifest, at, other)
            if as_written(changed) != as_written(manifest):
                yield (*at, what), as_written(changed)
        if at:
            yield (*at, "gone"), as_written(placed(manifest, at, GONE))
        if isinstance(value, dict):
            for key in value:
                yield (*at, key, "stated twice"), stated_twice(manifest, (*at, key))


def stated_twice(manifest, at):
    """The manifest with the same key and value two times."""
    mark = "a key that no manifest has"
    *path, key = at
    changed = placed(manifest, tuple(path), {**get(manifest, path), mark: get(manifest, at)})
    return as_written(changed).replace(json.dumps(mark), json.dumps(key))


def get(manifest, at):
    for key in at:
        manifest = manifest[key]
    return manifest


def passing(folder, *, every):
    """Which forged manifests verify, of every so many; and how many were tried."""
    path = folder / "manifest.json"
    forged = [*forged_manifests(json.loads(path.read_text()))][::every]
    found = set()
    for where, text in forged:
        path.write_text(text)
        with suppress(InftdaError):
            list(verify(folder))
            found.add(where)
    assert every != 1 or {at[0] for at in found} & {*FREE}, "a list that is not needed"
    return {at for at in found if at[0] not in FREE}, len(forged)


@pytest.fixture
def copied(genuine, tmp_path):
    return shutil.copytree(genuine, tmp_path / "copy")


@pytest.mark.slow
def test_no_field_of_the_manifest_can_be_changed_unseen(copied):
    found, n_tried = passing(copied, every=1)
    assert n_tried > 900
    assert found == set(UNPROVABLE), "what slips through is exactly what cannot be known"


def test_of_some_fields_of_the_manifest_none_can_be_changed_unseen(copied):
    found, n_tried = passing(copied, every=29)
    assert n_tried > 30
    assert found <= set(UNPROVABLE)


VERSIONS = {
    "another": ({"numpy": "9.9.9"}, True),
    "another library": ({"another": "17"}, True),
    "an unknown name": ({"the truth": "17"}, False),
    "a sentence": ({"numpy": "as of 17 May"}, False),
    "very long": ({"numpy": "1" * 99}, False),
    "an escape": ({"numpy": "1\x1b[2J"}, False),
}


@pytest.mark.parametrize("what", VERSIONS)
def test_versions_are_versions_of_what_makes_releases(slips, what):
    changes, passes = VERSIONS[what]
    assert slips(stated(lambda data: data["software"].update(changes))) == passes


# --- The folder: every byte, each file, and files that do not belong there ---


def may_pass(genuine, forged):
    """Whether a forged table has nothing but other values of what a folder cannot prove."""
    for name, column in {"measurements": "measured", "places": "name"}.items():
        one, other = (pq.read_table(at / f"{name}.parquet") for at in (genuine, forged))
        if one != other and str(one.drop(column).to_pylist()) != str(
            other.drop(column).to_pylist()
        ):
            return False
    return all((genuine / at).read_bytes() == (forged / at).read_bytes() for at in FILES[1:-2])


EACH_IN_A_COPY = settings(
    max_examples=some(400), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
PIECES = b' \n\r\t\0"\\,:;x019'


@EACH_IN_A_COPY
@given(
    name=st.sampled_from(FILES[1:]),
    where=st.floats(0, 1),
    removed=st.sampled_from([0, 0, 1, 1, 2, 9, 1 << 30]),
    put=st.sampled_from([*(bytes([sign]) for sign in PIECES), b"\r\n"]) | st.binary(max_size=5),
)
def test_no_bytes_can_be_changed_even_with_the_digest(  # noqa: PLR0917 - by name
    genuine, slips, tmp_path, name, where, removed, put
):
    """Of the manifest all changes are tried above."""
    before = (genuine / name).read_bytes()
    at = round(where * len(before))
    after = before[:at] + put + before[at + removed :]
    assume(after != before)
    passes = slips(lambda folder: ((folder / name).write_bytes(after), seal(folder)))
    assert not passes or may_pass(genuine, tmp_path / "forged")


#: Other texts, some with the same meaning, that random bytes rarely make.
TEXTS = {
    "another encoding": lambda text: text.decode().encode("utf-16"),
    "escapes": lambda text: text.replace(b'"total"', b'"\\u0074otal"'),
    "zeros": lambda text: text.replace(b'"epsilon": 5.0', b'"epsilon": 5.00000'),
    "very long": lambda text: text + b" " * (17 << 20),
    "nested without end": lambda _: b"[" * 100_000,
    "a column more": lambda text: text.replace(b"\n", b',"secret"\n'),
    "an area more": lambda text: text + b'"N","5"\n',
    "another code": lambda text: text.replace(b'"1"', b'"11"'),
}


@pytest.mark.parametrize("what", TEXTS)
@pytest.mark.parametrize("name", TEXT_FILES)
def test_no_text_can_be_written_otherwise(slips, genuine, name, what):
    before = (genuine / name).read_bytes()
    after = TEXTS[what](before)

    def change(folder):
        (folder / name).write_bytes(after)
        if name != MANIFEST:
            seal(folder)

    assert after == before or not slips(change)


def linked(file):
    file.rename(file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


def piped(file):
    file.unlink()
    os.mkfifo(file)


def boxed(file):
    file.rename(inner := file.parent.parent / "inner")
    file.mkdir()
    inner.rename(file / file.name)


DAMAGES = {
    "gone": lambda file: file.unlink(),
    "renamed": lambda file: file.rename(file.with_name(file.name.upper())),
    "a link": linked,
    "a pipe": piped,
    "in a folder of its name": boxed,
}
STRANGERS = (
    "truth.csv", "CONFIDENTIAL-levels.csv", "areas-1.csv", "areas.csv.gz", "flows.parquet.crc",
    ".ds_store", ".hidden", "README", "manifest.json~", "Manifest.json", " ", "\x1b[2J",
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_file_can_be_gone_or_something_else(slips, damage):
    for name in FILES:
        assert not slips(lambda folder, name=name: DAMAGES[damage](folder / name)), name


def test_no_file_can_be_added(slips):
    for name in STRANGERS:
        for add in (Path.touch, Path.mkdir, lambda path: path.symlink_to(MANIFEST)):
            assert not slips(lambda folder, name=name, add=add: add(folder / name)), name


@pytest.mark.parametrize("name", [".DS_Store", "Thumbs.db", "desktop.ini"])
def test_files_of_desktop_systems_are_ignored_and_named(copied, slips, name):
    (copied / name).write_bytes(b"x")
    assert f"no unexpected files in the folder except {name}, which was not read" in verify(copied)
    assert not slips(lambda folder: (folder / name).mkdir())
    assert not slips(lambda folder: (folder / name).symlink_to(MANIFEST))


# --- The tables: other rows, or the same rows in another file ---

#: How each table is written by a release.
HOW = {
    "flows": {"use_dictionary": ["origin", "destination"]},
    "measurements": {
        "use_dictionary": ["table", "origin", "destination"],
        "column_encoding": {"measured": "DELTA_BINARY_PACKED"},
        "write_statistics": False,
    },
    "places": {
        "use_dictionary": ["level", "code", "name"],
        "write_statistics": ["level", "code", "name", "lon", "lat"],
    },
}


def rewritten(name, change=lambda table: table, **options):
    """A table with other rows, or written in another way; the manifest states what is there."""

    def apply(folder):
        path = folder / f"{name}.parquet"
        table = change(pq.read_table(path))
        known = {
            key: [column for column in value if column in table.column_names]
            if isinstance(value, list) else value
            for key, value in HOW[name].items()
        }  # fmt: skip
        pq.write_table(table, path, **{"compression": "zstd", **known, **options})
        facts = {}
        if name == "flows" and "flow" in table.column_names:
            with suppress(pa.ArrowInvalid):
                flows = table["flow"].cast(pa.int64())
                facts = {"total": pc.sum(flows).as_py() or 0, "n_flows": len(table)}
        seal(folder, **facts)

    return apply


def column_as(name, make):
    """One column replaced by what is made of its values."""

    def change(table):
        at, field = table.column_names.index(name), table.schema.field(name)
        made = make(table[name])
        if isinstance(made, list):
            made = pa.array(made, field.type.value_type if field.type == CODE else field.type)
        has_null = bool(made.null_count)
        return table.set_column(at, pa.field(name, made.type, nullable=has_null), made)

    return change


def first_as(name, value, row=0):
    """One value replaced."""

    def make(column):
        values = column.to_pylist()
        values[row] = value(values[row]) if callable(value) else value
        return values

    return column_as(name, make)


def listed_only(column):
    """A text in the list of a column that no row has; data frames show it as a category."""

    def make(values):
        codes = values.cast(pa.string()).combine_chunks().dictionary_encode()
        listed = pa.concat_arrays([codes.dictionary, pa.array(["17 from 1 to 2"])])
        return pa.DictionaryArray.from_arrays(codes.indices, listed)

    return column_as(column, make)


def larger(by):
    return lambda column: pc.add(column, by)


def four_larger(column):
    """Sums are what they were, in 64 bits."""
    values = column.to_pylist()
    return [value + 2**62 for value in values[:4]] + values[4:]


def sliced(*bounds):
    return lambda table: table.take(pa.array([*range(len(table))][slice(*bounds)], pa.int64()))


def renamed(change):
    return lambda table: table.rename_columns(change(table.column_names))


def cast(column, *types):
    def make(values):
        for one in types:
            values = values.cast(one)
        return values

    return column_as(column, make)


def at_a_column(table):
    field = table.schema.field(0).with_metadata({"truth": "17"})
    return table.cast(table.schema.set(0, field))


OF_ALL = {
    "a row twice": lambda table: pa.concat_tables([table, table.slice(0, 1)]),
    "a row less": sliced(1, None),
    "the last row less": sliced(0, -1),
    "no rows": sliced(0),
    "rows in another order": sliced(None, None, -1),
    "a column more": lambda table: table.append_column("truth", table[-1]),
    "a column less": lambda table: table.select(table.column_names[1:]),
    "columns in another order": lambda table: table.select(table.column_names[::-1]),
    "a column of another name": renamed(lambda names: ["to", *names[1:]]),
    "a column twice": renamed(lambda names: [names[1], *names[1:]]),
    "metadata": lambda table: table.replace_schema_metadata({"pandas": b"secret"}),
    "metadata at a column": at_a_column,
}
OF_ONE = {
    "flows": {
        "a listed origin": listed_only("origin"),
        "a flow of NULL": first_as("flow", None),
        "an area of NULL": first_as("origin", None),
        "a negative flow": first_as("flow", -3),
        "a flow of zero": first_as("flow", 0),
        "an unknown area": first_as("origin", "9"),
        "a coarse area": first_as("origin", "N"),
        "an area with a blank": first_as("origin", lambda code: f"{code} "),
        "a very long code": first_as("origin", "x" * 3_000_000),
        "flows of 32 bits": cast("flow", pa.int32()),
        "decimal flows": cast("flow", pa.float64()),
        "flows as text": cast("flow", pa.string()),
        "codes as bytes": cast("origin", pa.string(), pa.binary()),
        "flows that do not follow": column_as("flow", larger(1)),
        "a sum beyond 64 bits": column_as("flow", four_larger),
    },
    "measurements": {
        "a listed origin": listed_only("origin"),
        "a listed table": listed_only("table"),
        "only those above 0": lambda t: t.filter(pc.greater(t["measured"], 0)),
        "two rows exchanged": lambda t: t.take([*range(len(t) - 2), len(t) - 1, len(t) - 2]),
        "NULL": first_as("measured", None),
        "another area": first_as("origin", "9"),
        "an area of another level": first_as("destination", "1"),
        "another table": first_as("table", "truth"),
        "another total": first_as("measured", lambda value: value + 1),
        "all of them larger": column_as("measured", larger(1)),
        "so large that sums overflow": column_as("measured", larger(1 << 61)),
    },
    "places": {
        "another level": first_as("level", "city", 3),
        "another code": first_as("code", "17", 3),
        "a long name": first_as("name", "x" * 1001, 3),
        "a name of two lines": first_as("name", "17\nfrom here", 3),
        "a name that a terminal obeys": first_as("name", "\x1b[2J", 3),
        "a name with blanks around it": first_as("name", " Aix", 3),
        "a location of a region": first_as("lon", 1.0, 0),
        "half a location": first_as("lat", math.nan, 3),
        "a location off the globe": first_as("lat", 91.0, 3),
        "an endless location": first_as("lon", math.inf, 3),
        "an outline of a region": first_as("outline", b"\x01" * 9, 0),
        "an outline that is none": first_as("outline", b"secret", 3),
        "an outline with something after it": first_as("outline", lambda o: o + b"secret", 3),
        "an outline of the other kind": first_as("outline", lambda o: b"\x00" + o[1:], 3),
        "an outline that is a point": first_as("outline", lambda o: o[:1] + b"\x01" + o[2:], 3),
        "an outline that is not closed": first_as("outline", lambda o: o[:-1] + b"\x01", 3),
    },
}
#: Other files of the same rows, which are told by their bytes alone.
OTHER_BYTES = {
    "not compressed": {"compression": "none"},
    "an index of pages": {"write_page_index": True},
    "texts that are not listed": {"use_dictionary": False},
    "smaller pages": {"data_page_size": 16, "write_batch_size": 1},
    "another version of the format": {"version": "1.0"},
    "with checksums of pages": {"write_page_checksum": True},
}


def with_totals_only(folder):
    """As it would be published with --measurements totals."""
    release = inftda.open_release(folder)
    totals = [table.name for table in release.published_tables() if table.is_total]
    restate(folder, lambda data: data.update(measurements="totals"))

    def filtered(table):
        kept = table.filter(pc.is_in(table["table"].cast(pa.string()), pa.array(totals)))
        for name in ("table", "origin", "destination"):
            plain = column_as(name, lambda column: column.cast(pa.string()).dictionary_encode())
            kept = plain(kept)
        return kept

    rewritten("measurements", filtered)(folder)


def bomb(folder):
    """A few bytes that expand to as many rows as one likes."""
    n = 1_000_000
    flows = pa.table({"origin": ["1"] * n, "destination": ["2"] * n, "flow": [1] * n})
    pq.write_table(flows, folder / "flows.parquet", compression="zstd")
    assert (folder / "flows.parquet").stat().st_size < n / 50
    seal(folder, total=n, n_flows=n)


def both(first, second):
    def apply(folder):
        first(folder)
        second(folder)

    return apply


#: Forgeries of a folder, written and sealed by inftda itself where that is possible.
WHOLE = {
    "a bomb": bomb,
    "a negative flow and an option that allows it": both(
        rewritten("flows", first_as("flow", -3)), stated(lambda data: data.update(negative="kept"))
    ),
    "no measurements": both(
        lambda folder: (folder / "measurements.parquet").unlink(),
        lambda folder: seal(folder, measurements="none"),
    ),
    "measurements called totals": stated(lambda data: data.update(measurements="totals")),
    "a total less": both(with_totals_only, rewritten("measurements", sliced(1, None))),
    "another file listed": stated(lambda data: data["files"].update({"areas-1.csv": "0" * 64})),
}


def forgeries():
    """What is done, how, and whether what the folder says is something else."""
    for name, of_one in OF_ONE.items():
        for what, change in {**OF_ALL, **of_one}.items():
            yield f"{name}: {what}", rewritten(name, change), True
        yield f"{name}: rows in many groups", rewritten(name, row_group_size=1), True
        for what, options in OTHER_BYTES.items():
            yield f"{name}: {what}", rewritten(name, **options), False
    for what, change in WHOLE.items():
        yield what, change, True


FORGERIES = {what: (change, is_content) for what, change, is_content in forgeries()}


@pytest.mark.parametrize("what", FORGERIES)
def test_no_table_can_be_forged_even_with_its_digest(slips, what):
    assert not slips(FORGERIES[what][0])


@pytest.mark.nightly
@pytest.mark.parametrize("what", FORGERIES)
def test_nor_its_content_if_another_arrow_is_said_to_have_written_it(slips, what):
    change, is_content = FORGERIES[what]
    other = stated(lambda data: data["software"].update(arrow="1.0+wheel"))
    assert slips(both(change, other)) != is_content


def test_files_by_another_arrow_are_said_to_be_compared_by_content(copied):
    rewritten("flows", use_dictionary=False)(copied)
    restate(copied, lambda data: data["software"].update(arrow="1.0+wheel"))
    assert "their contents were compared, not their bytes" in " ".join(verify(copied))


def areas_backwards(folder):
    head, *rows = (folder / AREAS_FILE).read_text().splitlines(keepends=True)
    (folder / AREAS_FILE).write_text("".join([head, *rows[::-1]]))
    seal(folder)


#: What a folder cannot prove: other numbers of the same kind. A signature does.
UNPROVABLE_TABLES = {
    "flows, where only totals are published": both(
        with_totals_only, rewritten("flows", column_as("flow", larger(1)))
    ),
    "totals, where only these are published": both(
        with_totals_only, rewritten("measurements", column_as("measured", larger(1)))
    ),
    "names of areas": rewritten("places", first_as("name", "Arles", 3)),
    "areas in another order": areas_backwards,
}


@pytest.mark.parametrize("what", UNPROVABLE_TABLES)
def test_numbers_of_the_same_kind_are_told_by_their_digest_alone(slips, what):
    change = UNPROVABLE_TABLES[what]
    assert slips(change)

    def careless(folder):
        manifest = (folder / "manifest.json").read_bytes()
        change(folder)
        (folder / "manifest.json").write_bytes(manifest)

    assert not slips(careless)


def test_trips_moved_between_flows_do_not_follow_from_the_measurements(tmp_path):
    """The same cells, and the same sums at all levels above; written and sealed by inftda."""
    country = make_country((3, 6, 24), 20_000, seed=3)
    made = inftda.release(
        country.flows(), country.areas, epsilon=1, delta=1e-6, cross_tables=0.08,
        out=tmp_path / "out",
    )  # fmt: skip
    areas, flow = made.leaves()
    parents = np.stack(made.tree.splitting_levels[-1].parents(areas))
    _, first, group = np.unique(parents, axis=1, return_index=True, return_inverse=True)
    moved = np.ones_like(flow)
    np.add.at(moved, first[group], flow - 1)
    assert moved.sum() == flow.sum()
    assert np.abs(moved - flow).sum() > flow.sum() / 2
    list(verify(tmp_path / "out"))
    write_flows(tmp_path / "out" / "flows.parquet", made.tree, Cells(areas, moved))
    seal(tmp_path / "out")
    with pytest.raises(ReleaseError, match="do not follow from"):
        list(verify(tmp_path / "out"))
