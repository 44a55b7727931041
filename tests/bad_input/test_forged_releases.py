"""Releases changed on purpose, in every way we could think of: nothing slips through `verify`.

The forger is careful: whenever a table is changed, its digest in the manifest is made right
again. What cannot be found out from the folder alone is listed with the reason why; the list is
exact, so that a check that goes missing is noticed.
"""

import copy
import gzip
import json
import math
import os
import shutil
from contextlib import suppress
from functools import partial
from itertools import count, product

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import inftda
from inftda.errors import InftdaError
from inftda.mechanisms.catalogue import mechanism_names
from inftda.publication import parquet_file
from inftda.publication.folder import write_flows
from inftda.publication.inventory import digest
from inftda.publication.measurements import save_measurements
from inftda.publication.pages import skeleton
from inftda.publication.totals import SCHEMA, save_totals
from inftda.publication.verify import verify

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


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    """A release with everything that a folder may have."""
    out = tmp_path_factory.mktemp("forging") / "release"
    inftda.release(
        TRIPS, AREAS, out=out, person="who", neighbours="add-remove", trips=2, epsilon=5,
        delta=1e-6, accountant="zcdp", across=0.2, measurements=True, unplaceable="outside",
    )  # fmt: skip
    return out


VERSIONS = {
    "another": ({"numpy": "9.9.9"}, True),
    "an unknown library": ({"truth": "17"}, False),
    "a sentence": ({"numpy": "as of 17 May"}, False),
    "very long": ({"numpy": "1" * 99}, False),
    "an escape": ({"numpy": "1\x1b[2J"}, False),
    "a number": ({"numpy": 2}, False),
}


@pytest.mark.parametrize("what", VERSIONS)
def test_versions_are_versions_of_what_makes_releases(slips, what):
    changes, passes = VERSIONS[what]
    assert slips(lambda folder: restate(folder, lambda d: d["software"].update(changes))) == passes
    assert not slips(lambda folder: restate(folder, lambda d: d["software"].pop("inftda")))


@pytest.fixture
def slips(genuine, tmp_path):
    """Changes a copy of the release; whether `verify` finds nothing wrong with it."""
    folder = tmp_path / "forged"

    def slips_through(change):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(genuine, folder)
        change(folder)
        try:
            list(verify(folder))
        except InftdaError:
            return False
        return True

    return slips_through


def test_the_release_itself_verifies_and_has_all_files(genuine, slips):
    assert slips(lambda _: None)
    names = {path.name for path in genuine.iterdir()}
    assert names == {*FILES}
    assert len(pq.read_table(genuine / "flows.parquet")) > 3


# --- The manifest: each field, in many ways ---

#: Words that stand in a manifest, and others that could stand in their place.
WORDS = {
    "mechanism": mechanism_names(),
    "accountant": ["exact", "pld", "zcdp", "stability", "auto"],
    "neighbours": ["substitute", "add-remove"],
    "scope": ["levels", "leaves", "positive leaves"],
    "unplaceable": ["error", "drop", "outside"],
    "noise": ["table", "opendp"],
    "objective": ["intopt", "intopt-descending", "l2", "linf"],
    "file": ["areas-1.csv", "areas-2.csv", "areas.csv.gz", "flows.parquet", "../areas.csv"],
}

#: What a folder cannot prove: where it stands, what is put there, and why it must pass.
UNPROVABLE = {
    ("counted", "bounded", "other"): "the publisher's word; it follows from nothing in the folder",
    ("counted", "bounded", "emptied"): "likewise",
    ("counted", "unplaceable", "'error'"): "likewise: areas may have one called outside",
    ("counted", "unplaceable", "'drop'"): "likewise",
    ("options", "noise", "'opendp'"): "noise of both kinds has the same distribution",
    ("guarantee", "epsilon", "twice"): "a weaker promise is true as well",
    ("guarantee", "epsilon", "a little more"): "likewise",
    ("guarantee", "epsilon", "a little less"): "noise is rounded up, so this is still true",
    ("guarantee", "delta", "twice"): "a weaker promise is true as well",
    ("guarantee", "delta", "a little more"): "likewise",
    ("guarantee", "delta", "a little less"): "noise is rounded up, so this is still true",
    ("guarantee", "across", "doubled"): "what was asked for; what it is spent on is checked",
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
    yield from {"null": None, "text": str(value), "listed": [value], "boxed": {"x": value}}.items()
    yield "emptied", type(value)()
    if isinstance(value, bool):
        yield from {"other": not value, "number": int(value)}.items()
    elif isinstance(value, int | float):
        yield from {"twice": 2 * value, "half": value / 2, "negative": -value}.items()
        yield from {"float": float(value), "truth": bool(value), "huge": 10**400}.items()
        yield "NaN", math.nan
        yield "endless", math.inf
        more = value + 1 if isinstance(value, int) else math.nextafter(value, math.inf)
        less = value - 1 if isinstance(value, int) else math.nextafter(value, -math.inf)
        yield from {"a little more": more, "a little less": less, "whole": int(value)}.items()
    elif isinstance(value, str):
        yield from {"longer": value + "x", "blank": f" {value}", "capital": value.upper()}.items()
        yield from {
            "half a letter": value + "\ud800",
            "number": 1,
            "escape": value + "\x1b[2J",
        }.items()
        if "/" in value and value[0].isdigit():
            top, bottom = map(int, value.split("/"))
            yield from {
                "unreduced": f"{2 * top}/{2 * bottom}",
                "doubled": f"{2 * top}/{bottom}",
            }.items()
        yield from {repr(word): word for word in WORDS.get(key, ())}.items()
    elif isinstance(value, list):
        yield from {
            "backwards": value[::-1],
            "shorter": value[1:],
            "again": value + value[:1],
        }.items()
    elif isinstance(value, dict):
        yield "with an unknown key", {**value, "unknown": 1}
        yield "with another unknown key", {**value, "negative": "kept"}


def placed(manifest, at, value):
    """A copy of the manifest with another value at a place."""
    if not at:
        return value
    changed = copy.deepcopy(manifest)
    holder = changed
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = value
    return changed


def without(manifest, at):
    changed = copy.deepcopy(manifest)
    holder = changed
    for key in at[:-1]:
        holder = holder[key]
    del holder[at[-1]]
    return changed


def is_same(one, other):
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def as_written(manifest):
    """As inftda writes it, so that nothing but the forgery can be wrong."""
    return json.dumps(manifest, indent=2) + "\n"


def forged_manifests(manifest):
    """Where, what is done, and the text of the forged manifest."""
    for at, value in everywhere(manifest):
        for what, other in other_values(at[-1] if at else "", value):
            changed = placed(manifest, at, other)
            if not is_same(changed, manifest):
                yield (*at, what), as_written(changed)
        if at:
            yield (*at, "gone"), as_written(without(manifest, at))
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


def test_no_field_of_the_manifest_can_be_changed_unseen(copied):
    found, n_tried = passing(copied, every=1)
    assert n_tried > 900
    assert found == set(UNPROVABLE), "what slips through is exactly what cannot be known"


def test_of_some_fields_of_the_manifest_none_can_be_changed_unseen(copied):
    found, n_tried = passing(copied, every=29)
    assert n_tried > 30
    assert found <= set(UNPROVABLE)


def as_text(change):
    """A change of the manifest's text."""

    def apply(folder):
        path = folder / "manifest.json"
        path.write_bytes(change(path.read_bytes()))

    return apply


MANIFESTS = {
    "nothing": as_text(lambda _: b""),
    "cut off": as_text(lambda text: text[:-4]),
    "two objects": as_text(lambda text: text + text),
    "a byte order mark": as_text(lambda text: b"\xef\xbb\xbf" + text),
    "other encoding": as_text(lambda text: text.decode().encode("utf-16")),
    "a comment": as_text(lambda text: b"// fine\n" + text),
    "something after it": as_text(lambda text: text + b"secret"),
    "very long": as_text(lambda text: text + b" " * (17 << 20)),
    "blanks that spell something": as_text(lambda text: text + b" \t\t \t"),
    "other ends of lines": as_text(lambda text: text.replace(b"\n", b"\r\n")),
    "another end of a line": as_text(lambda text: text.replace(b"\n", b"\r", 1)),
    "blanks in between": as_text(lambda text: text.replace(b"{", b"{ \t\t ", 1)),
    "escapes": as_text(lambda text: text.replace(b'"total"', b'"\\u0074otal"')),
    "longer numbers": as_text(lambda text: text.replace(b'"epsilon": 5.0', b'"epsilon": 5.0017e0')),
    "zeros": as_text(lambda text: text.replace(b'"epsilon": 5.0', b'"epsilon": 5.00000')),
    "another order": as_text(
        lambda text: as_written(dict(reversed(json.loads(text).items()))).encode()
    ),
    "nested without end": as_text(lambda _: b"[" * 100_000),
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_no_other_text_is_a_manifest(slips, what):
    assert not slips(MANIFESTS[what])


# --- The folder: each file, and files that do not belong there ---


def linked(name):
    def change(folder):
        (folder / name).rename(folder.parent / "elsewhere")
        (folder / name).symlink_to(folder.parent / "elsewhere")

    return change


def edited(name, change):
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def piped(name):
    def change(folder):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


def boxed(name):
    """The file in a folder of its name."""

    def change(folder):
        (folder / name).rename(folder.parent / "inner")
        (folder / name).mkdir()
        (folder.parent / "inner").rename(folder / name / name)

    return change


FILES = (
    "manifest.json", "flows.parquet", "areas.csv", "totals.parquet", "places.parquet",
    "measurements.parquet",
)  # fmt: skip
PARQUET_FILES = [name for name in FILES if name.endswith(".parquet")]
DAMAGES = {
    "gone": lambda name: lambda folder: (folder / name).unlink(),
    "renamed": lambda name: lambda folder: (folder / name).rename(folder / name.upper()),
    "a link": linked,
    "a pipe": piped,
    "a folder": boxed,
    "empty": lambda name: edited(name, lambda _: b""),
    "cut off": lambda name: edited(name, lambda content: content[: len(content) // 2]),
    "a byte short": lambda name: edited(name, lambda content: content[:-1].rstrip(b"\n}")),
    "a byte long": lambda name: edited(name, lambda content: content + b"x"),
    "a byte before": lambda name: edited(name, lambda content: b"x" + content),
    "packed": lambda name: edited(name, gzip.compress),
    "another's": lambda name: lambda folder: shutil.copy(__file__, folder / name),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_no_file_can_be_damaged_unseen(slips, name, damage):
    assert not slips(DAMAGES[damage](name))


STRANGERS = (
    "truth.csv", "CONFIDENTIAL-levels.csv", "CONFIDENTIAL-evaluation.html", "areas-1.csv",
    "areas.csv.gz", "flows.csv", "flows.parquet.crc", ".DS_Store", ".hidden", "README", "_SUCCESS",
    "manifest.json~", "Manifest.json", "part-00000.parquet", "measurements.csv", " ", "\x1b[2J",
)  # fmt: skip


@pytest.mark.parametrize("name", STRANGERS)
def test_no_file_can_be_added_unseen(slips, name):
    assert not slips(lambda folder: (folder / name).write_bytes(b""))
    assert not slips(lambda folder: (folder / name).mkdir())
    assert not slips(lambda folder: (folder / name).symlink_to("manifest.json"))


def packed_areas(folder):
    """13 MB that became 3 GB."""
    (folder / "areas.csv.gz").write_bytes(gzip.compress((folder / "areas.csv").read_bytes()))
    (folder / "areas.csv").unlink()
    restate(
        folder, lambda data: [axis.update(file="areas.csv.gz") for axis in data["tree"]["axes"]]
    )


def reversed_rows(text):
    head, *rows = text.splitlines(keepends=True)
    return b"".join([head, *rows[::-1]])


AREAS_TEXTS = {
    "other order": reversed_rows,
    "a blank line": lambda text: text + b"\n",
    "no quotes": lambda text: text.replace(b'"', b""),
    "other line ends": lambda text: text.replace(b"\n", b"\r\n"),
    "other delimiter": lambda text: text.replace(b",", b";"),
    "blanks in the header": lambda text: text.replace(b'"town"', b'"town "'),
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "a column more": lambda text: text.replace(b"\n", b',"secret"\n'),
    "a row more": lambda text: text + text.splitlines(keepends=True)[-1],
    "an area more": lambda text: text + b'"N","5"\n',
    "an area less": lambda text: b"".join(text.splitlines(keepends=True)[:-1]),
    "another code": lambda text: text.replace(b'"1"', b'"11"'),
}


@pytest.mark.parametrize("what", AREAS_TEXTS)
def test_the_areas_cannot_be_written_otherwise(slips, what):
    assert not slips(edited("areas.csv", AREAS_TEXTS[what]))


def test_packed_areas_are_refused(slips):
    assert not slips(packed_areas)


# --- The tables, by a forger who makes the digest right again ---


def restate(folder, change):
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(as_written(data))


def sealed(folder, **facts):
    """Make the manifest state what is in the folder now."""
    facts["flows_sha256"] = digest(folder / "flows.parquet")
    for name in ("totals", "measurements"):
        if (folder / f"{name}.parquet").exists():
            facts[f"{name}_sha256"] = digest(folder / f"{name}.parquet")
    if (folder / "places.parquet").exists():
        places = {"places_sha256": digest(folder / "places.parquet")}
        restate(folder, lambda data: [axis.update(places) for axis in data["tree"]["axes"]])
    restate(folder, lambda data: data.update(facts))


def rewritten(change=lambda table: table, *, name="flows.parquet", **options):
    """The same file with other rows, or written in another way."""

    def apply(folder):
        table = change(pq.read_table(folder / name))
        columns = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
        options_ = {"compression": "zstd", "use_dictionary": columns, **options}
        pq.write_table(table, folder / name, **options_)
        if name == "flows.parquet" and "flow" in table.column_names:
            try:
                flows = table["flow"].cast(pa.int64())
                sealed(folder, total=pc.sum(flows).as_py() or 0, n_flows=len(table))
            except pa.ArrowInvalid:
                sealed(folder)
        else:
            sealed(folder)

    return apply


def with_column(name, make):
    """One column replaced."""

    def change(table):
        at = table.column_names.index(name)
        return table.set_column(at, name, make(table[name]))

    return change


def flows_as(*first):
    """Other values for the first flows."""
    return with_column(
        "flow", lambda flow: pa.array([*first, *flow.to_pylist()[len(first) :]], pa.int64())
    )


def codes_as(*first, kind=None):
    return with_column(
        "origin",
        lambda codes: pa.array([*first, *codes.to_pylist()[len(first) :]], kind or pa.string()),
    )


def again(table):
    return pa.concat_tables([table, table.slice(0, 1)])


def with_key(key, value=b"secret"):
    return lambda table: table.replace_schema_metadata({key: value})


def with_field_key(table):
    field = table.schema.field("flow").with_metadata({"truth": "17"})
    return table.cast(table.schema.set(2, field))


def patched(old, new, name="flows.parquet"):
    """The last occurrence of some bytes replaced, as in a footer."""

    def apply(folder):
        content = (folder / name).read_bytes()
        assert old in content, "there is nothing to patch"
        before, _, after = content.rpartition(old)
        (folder / name).write_bytes(before + new + after)
        sealed(folder)

    return apply


def false_statistics(folder):
    """Tools that trust the footer would not see small flows."""
    flows = pq.read_table(folder / "flows.parquet")["flow"].to_numpy()
    least, most = (int(value).to_bytes(8, "little") for value in (flows.min(), flows.max()))
    content = (folder / "flows.parquet").read_bytes()
    assert least in content
    (folder / "flows.parquet").write_bytes(content.replace(least, most))
    sealed(folder)


def first_bytes(other, name="flows.parquet"):
    """Readers look at the signature at the end only."""

    def apply(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(other + content[len(other) :])
        sealed(folder)

    return apply


def hidden_bytes(name):
    """Between the last column and the footer, where no reader looks."""

    def apply(folder):
        content = (folder / name).read_bytes()
        start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        (folder / name).write_bytes(content[:start] + b"secret" * 9 + content[start:])
        sealed(folder)

    return apply


def varint(number):
    """A signed number as Thrift writes it."""
    number, found = 2 * number, []
    while number > 127:
        found.append(128 | number & 127)
        number >>= 7
    return bytes([*found, number])


def read_varint(text):
    return sum((byte & 127) << 7 * place for place, byte in enumerate(text)) // 2


def in_last_chunk(hidden, name="flows.parquet", *, chunk_size=None):
    """Bytes after the last page of a column, which the footer counts as that column's."""

    def apply(folder):
        content = (folder / name).read_bytes()
        start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        footer = content[start:-8]
        group = pq.read_metadata(folder / name).row_group(0)
        chunk = group.column(group.num_columns - 1)
        packed, expanded = chunk.total_compressed_size, chunk.total_uncompressed_size
        before = b"\x16" + varint(expanded) + b"\x16" + varint(packed)
        assert before in footer
        after = b"\x16" + varint(chunk_size or expanded)
        after += b"\x16" + varint(packed + len(hidden))
        start_of, _, end_of = footer.rpartition(before)
        footer = start_of + after + end_of
        size = len(footer).to_bytes(4, "little")
        (folder / name).write_bytes(content[:start] + hidden + footer + size + b"PAR1")
        assert len(pq.read_table(folder / name)), "other readers notice nothing"
        sealed(folder)

    return apply


def with_footer(change, name="flows.parquet"):
    """Another footer; its length is made right again."""

    def apply(folder):
        content = (folder / name).read_bytes()
        start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        footer = change(content[start:-8])
        assert footer != content[start:-8], "there is nothing to change"
        size = len(footer).to_bytes(4, "little")
        (folder / name).write_bytes(content[:start] + footer + size + b"PAR1")
        assert len(pq.read_table(folder / name)), "other readers notice nothing"
        sealed(folder)

    return apply


def first_field_last(footer):
    """The version of the format, which every reader finds at the end as well."""
    assert footer.startswith(b"\x15\x04\x19")
    return b"\x29" + footer[3:-1] + b"\x05\x02\x04\x00"


#: The same footer in other bytes, by Thrift's compact protocol.
FOOTERS = {
    "a number longer than it is": lambda footer: footer.replace(b"\x15\x04", b"\x15\x84\x00", 1),
    "a field that states its number": lambda f: f.replace(b"\x15\x04", b"\x05\x02\x04", 1),
    "fields in another order": first_field_last,
    "values of another kind": lambda f: f.replace(b"\x11\x11", b"\x15\x02\x15\x02"),
}

ZSTD = b"\x28\xb5\x2f\xfd"
SKIPPED = b"\x50\x2a\x4d\x18" + (24).to_bytes(4, "little") + b"secret" * 4


def in_last_page(change, name="flows.parquet"):
    """Other packed bytes in the last page; headers and footer are made right again."""

    def apply(folder):
        content = (folder / name).read_bytes()
        end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        metadata = pq.read_metadata(folder / name)
        group = metadata.row_group(metadata.num_row_groups - 1)
        chunks = [group.column(number) for number in range(group.num_columns)]
        start = chunks[-1].data_page_offset
        body = content.index(ZSTD, start)
        packed = change(content[body:end])
        before, _, after = content[start:body].partition(b"\x15" + varint(end - body) + b"\x2c")
        header = before + b"\x15" + varint(len(packed)) + b"\x2c" + after
        longer = len(header) - (body - start)
        more = len(packed) - (end - body) + longer
        footer = content[end:-8]
        of_group = sum(chunk.total_compressed_size for chunk in chunks)
        for old, added in (
            (b"\x16" + varint(of_group), more),
            (b"\x16" + varint(group.total_byte_size), longer),
            (b"\x16" + varint(chunks[-1].total_compressed_size), more),
            (b"\x16" + varint(chunks[-1].total_uncompressed_size), longer),
        ):
            first, found, last = footer.rpartition(old)
            assert found
            footer = first + b"\x16" + varint(read_varint(old[1:]) + added) + last
        size = len(footer).to_bytes(4, "little")
        (folder / name).write_bytes(content[:start] + header + packed + footer + size + b"PAR1")
        assert len(pq.read_table(folder / name)), "other readers notice nothing"
        sealed(folder)

    return apply


def with_empty_block(frame):
    """A block of no bytes before the others; so many of them spell something."""
    assert frame[4] & 0x20, "one segment"
    start = 5 + ((0, 2, 4, 8)[frame[4] >> 6] or 1)
    return frame[:start] + b"\x00\x00\x00" + frame[start:]


def page(body, *, n_values=0, expanded=None):
    """A page of data of which no reader reads a value."""
    sizes = b"\x15\x00\x15" + varint(expanded or len(body)) + b"\x15" + varint(len(body))
    return sizes + b"\x2c\x15" + varint(n_values) + b"\x15\x00\x15\x06\x15\x06\x00\x00" + body


def listed_only(column, name):
    """A text in the list of a column that no row has; data frames show it as a category."""

    def apply(folder):
        table = pq.read_table(folder / name)
        codes = table[column].cast(pa.string()).combine_chunks().dictionary_encode()
        texts = pa.concat_arrays([codes.dictionary, pa.array(["17 from 1 to 2"])])
        listed = pa.DictionaryArray.from_arrays(codes.indices, texts)
        field = pa.field(column, listed.type, nullable=False)
        table = table.set_column(table.column_names.index(column), field, listed)
        pq.write_table(table, folder / name, compression="zstd")
        sealed(folder)

    return apply


def false_size(folder):
    """A list of texts that expands to more than the footer says."""
    texts = ["1", "2", "3", "4", "outside", "0" * 3_000_000]
    table = pq.read_table(folder / "flows.parquet")
    column = pa.array(table["destination"].cast(pa.string()).to_pylist())
    codes = pc.index_in(column, value_set=pa.array(texts))
    listed = pa.DictionaryArray.from_arrays(codes, pa.array(texts))
    table = table.set_column(1, pa.field("destination", listed.type, nullable=False), listed)
    pq.write_table(
        table, folder / "flows.parquet", compression="zstd", use_dictionary=["destination"]
    )
    size = pq.read_metadata(folder / "flows.parquet").row_group(0).column(1).total_uncompressed_size
    with_footer(lambda footer: varint(40).join(footer.rsplit(varint(size), 1)))(folder)
    found = pq.read_metadata(folder / "flows.parquet").row_group(0).column(1)
    assert found.total_uncompressed_size == 40
    sealed(folder)


def as_if_by_spark(folder):
    """Spark's files have an index of pages, which leaves room; not in one file, and not as much."""
    hidden_bytes("flows.parquet")(folder)
    content = (folder / "flows.parquet").read_bytes()
    start = content.rindex(b"parquet-cpp-arrow version ")
    end = start + len("parquet-cpp-arrow version ")
    name = b"parquet-mr version 0000000"
    assert len(name) == end - start
    (folder / "flows.parquet").write_bytes(content[:start] + name + content[end:])
    sealed(folder)


def wrapped_sum(folder):
    """Flows whose sum is right in 64 bits only."""
    table = pq.read_table(folder / "flows.parquet")
    before = pc.sum(table["flow"]).as_py()
    flow = table["flow"].to_pylist()
    flow[:4] = [flow[0] + 2**62, *(value + 2**62 for value in flow[1:4])]
    assert len(flow) > 3
    rewritten(with_column("flow", lambda _: pa.array(flow, pa.int64())))(folder)
    sealed(folder, total=before)


def beyond_any_sum(folder):
    """Flows whose sum is stated, but beyond 64 bits, in which it is what it was."""
    flow = pq.read_table(folder / "flows.parquet")["flow"].to_pylist()
    flow[:4] = [value + 2**62 for value in flow[:4]]
    assert len(flow) > 3
    as_released(with_column("flow", lambda _: pa.array(flow, pa.int64())), total=sum(flow))(folder)


def negative_by_option(folder):
    """Made legal by an option of another mechanism."""
    rewritten(flows_as(-3))(folder)
    restate(folder, lambda data: data["options"].update(negative="kept"))


def bomb(folder):
    """A few bytes that expand to as many rows as one likes."""
    n = 1_000_000
    flows = pa.table({"origin": ["1"] * n, "destination": ["2"] * n, "flow": [1] * n})
    pq.write_table(flows, folder / "flows.parquet", compression="zstd")
    assert (folder / "flows.parquet").stat().st_size < n / 50
    sealed(folder, total=n, n_flows=n)


def long_texts(folder):
    """A code that is no area and very long."""
    rewritten(codes_as("x" * 3_000_000))(folder)


def as_released(change, *, name="flows.parquet", total=None):
    """The same file with other rows, written by inftda itself."""

    def apply(folder):
        release = inftda.open_release(folder)
        table = change(pq.read_table(folder / name))
        if name == "totals.parquet":
            save_totals(folder / name, table.cast(SCHEMA))
            sealed(folder)
        elif name == "measurements.parquet":
            save_measurements(folder / name, table, release.tree, release.manifest.plan)
            sealed(folder)
        else:
            write_flows(folder / name, release.tree, table)
            sealed(folder, total=total or pc.sum(table["flow"]).as_py(), n_flows=len(table))

    return apply


def of_measurements(change=lambda table: table, **options):
    """As inftda writes them, but for what is asked for."""
    options = {"column_encoding": {"measured": "DELTA_BINARY_PACKED"}, **options}
    return rewritten(change, name="measurements.parquet", **options)


def of_places(change=lambda table: table, **options):
    """As inftda writes them, but for what is asked for."""
    texts = ["level", "code", "name"]
    options = {"use_dictionary": texts, "write_statistics": [*texts, "lon", "lat"], **options}
    return rewritten(change, name="places.parquet", **options)


def with_first(text):
    """A column of text whose first row is another one."""
    return lambda column: pa.array([text, *column.to_pylist()[1:]]).dictionary_encode()


def nudged(folder):
    """The last value is one of a table off the tree, which only steers."""
    as_released(
        with_column("measured", lambda m: pa.array([*m.to_pylist()[:-1], m[-1].as_py() + 1])),
        name="measurements.parquet",
    )(folder)


def without_measurements(folder):
    (folder / "measurements.parquet").unlink()
    restate(folder, lambda data: data.pop("measurements_sha256"))


def both(first, second):
    def apply(folder):
        first(folder)
        second(folder)

    return apply


TABLES = {
    "a flow of NULL": rewritten(flows_as(None)),
    "flows of NULL and one more": rewritten(flows_as(None, None, 7)),
    "an area of NULL": rewritten(codes_as(None)),
    "a negative flow": rewritten(flows_as(-3)),
    "a negative flow and an option that allows it": negative_by_option,
    "a flow of zero": rewritten(flows_as(0)),
    "a sum beyond 64 bits": wrapped_sum,
    "a sum beyond 64 bits that is stated": beyond_any_sum,
    "a sum beyond 64 bits without measurements": lambda folder: (
        without_measurements(folder),
        beyond_any_sum(folder),
    ),
    "a row twice": rewritten(again),
    "an unknown area": rewritten(codes_as("9")),
    "a coarse area": rewritten(codes_as("N")),
    "an area with a blank": rewritten(codes_as("1 ")),
    "a column more": rewritten(lambda table: table.append_column("truth", table["flow"])),
    "a column less": rewritten(lambda table: table.drop_columns(["origin"])),
    "columns in another order": rewritten(lambda t: t.select(["destination", "origin", "flow"])),
    "another name": rewritten(lambda table: table.rename_columns(["origin", "to", "flow"])),
    "a column twice": rewritten(lambda t: t.rename_columns(["origin", "origin", "flow"])),
    "flows of 32 bits": rewritten(with_column("flow", lambda flow: flow.cast(pa.int32()))),
    "decimal flows": rewritten(with_column("flow", lambda flow: flow.cast(pa.float64()))),
    "flows as text": rewritten(with_column("flow", lambda flow: flow.cast(pa.string()))),
    "codes as bytes": rewritten(codes_as(kind=pa.binary())),
    "codes as long text": rewritten(codes_as(kind=pa.large_string())),
    "metadata": rewritten(with_key("truth")),
    "metadata of pandas": rewritten(with_key("pandas", b"{}")),
    "metadata of Spark": rewritten(with_key("org.apache.spark.version", b"4.0 secret!")),
    "Spark's schema": rewritten(with_key("org.apache.spark.sql.parquet.row.metadata", b'{"x":1}')),
    "metadata at a column": rewritten(with_field_key),
    "not compressed": rewritten(compression="none"),
    "compressed otherwise": rewritten(compression="snappy"),
    "compressed by gzip": rewritten(compression="gzip"),
    "rows in many groups": rewritten(row_group_size=1),
    "an index of pages": rewritten(write_page_index=True),
    "another writer": patched(b"parquet-cpp-arrow version", b"parquet-cpp-arrow, truth "),
    "false statistics": false_statistics,
    "another encoding of the same": rewritten(use_dictionary=False),
    "flows that are listed": rewritten(use_dictionary=True),
    "smaller pages": rewritten(data_page_size=16, write_batch_size=1),
    "another version of the format": rewritten(version="1.0"),
    "without statistics": rewritten(write_statistics=False),
    "with checksums of pages": rewritten(write_page_checksum=True),
    "another signature at the beginning": first_bytes(b"17th"),
    "totals: another encoding of the same": rewritten(name="totals.parquet", use_dictionary=False),
    "totals: another signature at the beginning": first_bytes(b"17th", "totals.parquet"),
    "bytes before the footer": hidden_bytes("flows.parquet"),
    "bytes before the footer as if by Spark": as_if_by_spark,
    "bytes after the last page": in_last_chunk(b"secret" * 9),
    "a page after the last": in_last_chunk(page(b"secret" * 9)),
    "a page of rows that nobody reads": in_last_chunk(page(b"secret" * 9, n_values=3)),
    "a frame that is skipped": in_last_page(lambda frame: SKIPPED + frame),
    "a frame that is skipped after the others": in_last_page(lambda frame: frame + SKIPPED),
    "a block of nothing": in_last_page(with_empty_block),
    "measurements: a frame that is skipped": in_last_page(
        lambda frame: SKIPPED + frame, "measurements.parquet"
    ),
    **{what: with_footer(change) for what, change in FOOTERS.items()},
    **{
        f"{name}: {what}": with_footer(change, f"{name}.parquet")
        for name in ("totals", "measurements", "places")
        for what, change in FOOTERS.items()
    },
    "totals: a page after the last": in_last_chunk(page(b"secret" * 9), "totals.parquet"),
    "an area that is listed only": listed_only("origin", "flows.parquet"),
    "totals: a level that is listed only": listed_only("level", "totals.parquet"),
    "a bomb": bomb,
    "a bomb with a false footer": false_size,
    "a very long code": long_texts,
    "totals: metadata": rewritten(with_key("truth"), name="totals.parquet"),
    "totals: NULL": rewritten(
        with_column("measured", lambda m: pa.array([None, *m.to_pylist()[1:]], pa.int64())),
        name="totals.parquet",
    ),
    "totals: a row twice": rewritten(again, name="totals.parquet"),
    "totals: a row less": rewritten(lambda table: table.slice(1), name="totals.parquet"),
    "totals: another order": rewritten(
        lambda table: table.take(list(range(len(table)))[::-1]), name="totals.parquet"
    ),
    "totals: a smaller sigma": rewritten(
        with_column("sigma", lambda sigma: pc.divide(sigma, 2.0)), name="totals.parquet"
    ),
    "totals: another area": rewritten(
        with_column("area", lambda area: pa.array(["9", *area.to_pylist()[1:]])),
        name="totals.parquet",
    ),
    "totals: a column more": rewritten(
        lambda table: table.append_column("truth", table["measured"]), name="totals.parquet"
    ),
    "totals: not compressed": rewritten(name="totals.parquet", compression="none"),
    "totals: bytes before the footer": hidden_bytes("totals.parquet"),
    "totals: not those that were measured": rewritten(
        with_column("measured", lambda measured: pc.add(measured, 1)), name="totals.parquet"
    ),
    "flows that do not follow": rewritten(with_column("flow", lambda flow: pc.add(flow, 1))),
    "measurements: a row less": of_measurements(lambda table: table.slice(1)),
    "measurements: the last row less": of_measurements(lambda t: t.slice(0, len(t) - 1)),
    "measurements: only those above 0": of_measurements(
        lambda table: table.filter(pc.greater(table["measured"], 0))
    ),
    "measurements: a row twice": of_measurements(again),
    "measurements: another order": of_measurements(
        lambda table: table.take(list(range(len(table)))[::-1])
    ),
    "measurements: two rows exchanged": of_measurements(
        lambda table: table.take([*range(len(table) - 2), len(table) - 1, len(table) - 2])
    ),
    "measurements: no rows": of_measurements(lambda table: table.slice(0, 0)),
    "measurements: a column more": of_measurements(
        lambda table: table.append_column("truth", table["measured"])
    ),
    "measurements: a column less": of_measurements(lambda table: table.drop_columns(["table"])),
    "measurements: NULL": of_measurements(
        with_column("measured", lambda m: pa.array([None, *m.to_pylist()[1:]], pa.int64()))
    ),
    "measurements: another area": of_measurements(with_column("origin", with_first("9"))),
    "measurements: an area of another level": of_measurements(
        with_column("destination", with_first("1"))
    ),
    "measurements: another table": of_measurements(with_column("table", with_first("truth"))),
    "measurements: another total": of_measurements(
        with_column("measured", lambda m: pa.array([m[0].as_py() + 1, *m.to_pylist()[1:]]))
    ),
    "measurements: all of them larger": of_measurements(
        with_column("measured", lambda measured: pc.add(measured, 1))
    ),
    "measurements: decimal": of_measurements(
        with_column("measured", lambda measured: measured.cast(pa.float64())), column_encoding=None
    ),
    "measurements: so large that sums overflow": of_measurements(
        with_column("measured", lambda m: pc.add(m, 1 << 61))
    ),
    "measurements: metadata": of_measurements(with_key("truth")),
    "measurements: not compressed": of_measurements(compression="none"),
    "measurements: rows in many groups": of_measurements(row_group_size=1),
    "measurements: bytes before the footer": hidden_bytes("measurements.parquet"),
    "measurements: an area that is listed only": listed_only("origin", "measurements.parquet"),
    "measurements: a table that is listed only": listed_only("table", "measurements.parquet"),
    "measurements: a page after the last": in_last_chunk(
        page(b"secret" * 9), "measurements.parquet"
    ),
    "measurements: another encoding": rewritten(name="measurements.parquet"),
    "measurements: texts that are not listed": of_measurements(use_dictionary=False),
    "measurements: smaller pages": of_measurements(data_page_size=16, write_batch_size=1),
    "measurements: another version of the format": of_measurements(version="1.0"),
    "measurements: without statistics": of_measurements(write_statistics=False),
    "measurements: with checksums of pages": of_measurements(write_page_checksum=True),
    "measurements: an index of pages": of_measurements(write_page_index=True),
    "measurements: cells that may be empty": of_measurements(
        lambda table: table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))
    ),
    "measurements: another signature at the beginning": first_bytes(
        b"17th", "measurements.parquet"
    ),
    "places: another encoding": of_places(use_dictionary=["level"]),
    "places: texts that are not listed": of_places(use_dictionary=False),
    "places: numbers that are listed": of_places(use_dictionary=True),
    "places: smaller pages": of_places(data_page_size=16, write_batch_size=1),
    "places: another version of the format": of_places(version="1.0"),
    "places: without statistics": of_places(write_statistics=False),
    "places: statistics of outlines": of_places(write_statistics=True),
    "places: with checksums of pages": of_places(write_page_checksum=True),
    "places: an index of pages": of_places(write_page_index=True),
    "places: rows in many groups": of_places(row_group_size=1),
    "places: another signature at the beginning": first_bytes(b"17th", "places.parquet"),
}


#: What is seen only where the rows can be written again by the same version of Arrow.
ONLY_WRITTEN_AGAIN = {
    "another encoding of the same",
    "flows that are listed",
    "smaller pages",
    "another version of the format",
    "without statistics",
    "with checksums of pages",
    "another signature at the beginning",
    "totals: another encoding of the same",
    "totals: another signature at the beginning",
    "measurements: another encoding",
    "measurements: texts that are not listed",
    "measurements: smaller pages",
    "measurements: another version of the format",
    "measurements: without statistics",
    "measurements: with checksums of pages",
    "measurements: cells that may be empty",
    "measurements: another signature at the beginning",
    "places: another encoding",
    "places: texts that are not listed",
    "places: numbers that are listed",
    "places: smaller pages",
    "places: another version of the format",
    "places: without statistics",
    "places: with checksums of pages",
    "places: rows in many groups",
    "places: another signature at the beginning",
}
#: Kinds of values, unlike all else in a footer, are compared with those that Arrow writes.
ONLY_WRITTEN_AGAIN |= {what for what in TABLES if "values of another kind" in what}
#: With measurements the flows and totals are known from them: what remains are numbers that
#: would have given the same flows.
WITHOUT_MEASUREMENTS = ("other flows of the same kind", "totals: another number")


@pytest.mark.parametrize("what", TABLES)
def test_no_table_can_be_forged_even_with_its_digest(slips, what):
    assert not slips(TABLES[what])


@pytest.mark.parametrize("what", TABLES)
def test_nor_if_another_version_of_arrow_wrote_it(slips, what, monkeypatch):
    writers = count()
    monkeypatch.setattr(parquet_file, "skeleton", lambda _: (next(writers), []))
    assert slips(TABLES[what]) == (what in ONLY_WRITTEN_AGAIN)


@pytest.mark.parametrize("level", [1, 19])
def test_another_build_of_the_compression_is_honest(slips, level, monkeypatch):
    """It may pack the same bytes in another way."""

    def apply(folder):
        without_measurements(folder)
        release = inftda.open_release(folder)
        before = (folder / "flows.parquet").read_bytes()
        plain = pq.ParquetWriter
        with monkeypatch.context() as patch:
            patch.setattr(pq, "ParquetWriter", partial(plain, compression_level=level))
            write_flows(folder / "flows.parquet", release.tree, many)
        assert (folder / "flows.parquet").read_bytes() != before
        sealed(folder, total=pc.sum(many["flow"]).as_py(), n_flows=len(many))

    codes = ["1", "2", "3", "4", "outside"]
    pairs = list(product(codes, codes))
    many = pa.table(
        {
            "origin": [start for start, _ in pairs],
            "destination": [end for _, end in pairs],
            "flow": [10 + number % 7 for number in range(len(pairs))],
        }
    )
    assert slips(apply)


def test_another_version_of_arrow_is_honest(slips):
    def apply(folder):
        rewritten(use_dictionary=False)(folder)
        content = (folder / "flows.parquet").read_bytes()
        version = f"parquet-cpp-arrow version {pa.__version__}".encode()
        assert version in content
        other = version[:-1] + (b"8" if version[-1:] == b"9" else b"9")
        (folder / "flows.parquet").write_bytes(content.replace(version, other))
        sealed(folder)

    assert slips(apply)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARQUET_FILES)
def test_no_bit_of_headers_and_footers_can_be_changed_even_with_the_digest(slips, name, genuine):
    """But for the version of Arrow, and some of the compression: it differs from build to build."""
    content = (genuine / name).read_bytes()
    writer, expected = skeleton(content)

    def flip(bit):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)

    def says_the_same(changed):
        try:
            by, found = skeleton(changed)
        except ValueError:
            return False
        return found == expected or by != writer

    for bit in range(0, 8 * len(content), 97):
        changed = flip(bit)

        def apply(folder, changed=changed):
            (folder / name).write_bytes(changed)
            sealed(folder)

        assert not slips(apply) or says_the_same(changed), bit


#: What a folder cannot prove: other numbers of the same kind, in whatever order. A signature under
#: the manifest would.
UNPROVABLE_TABLES = {
    "other flows of the same kind": as_released(
        with_column("flow", lambda flow: pc.add(flow, 1)),
    ),
    "rows in another order": as_released(lambda table: table.take(list(range(len(table)))[::-1])),
    "measurements: another number off the tree": nudged,
    "totals: another number": as_released(
        with_column("measured", lambda measured: pc.add(measured, 1)), name="totals.parquet"
    ),
}


@pytest.mark.parametrize("what", UNPROVABLE_TABLES)
def test_numbers_of_the_same_kind_are_told_by_their_digest_alone(slips, what):
    change = UNPROVABLE_TABLES[what]
    if what in WITHOUT_MEASUREMENTS:
        assert not slips(change)
        change = both(without_measurements, change)
    assert slips(change)

    def careless(folder):
        manifest = (folder / "manifest.json").read_bytes()
        change(folder)
        (folder / "manifest.json").write_bytes(manifest)

    assert not slips(careless)


ROWS_OF_A_BOMB = {
    "all in one group": (1 << 21, "other groups"),
    "the same in every group": (1 << 20, "twice"),
}


@pytest.mark.parametrize("what", ROWS_OF_A_BOMB)
def test_bombs_of_rows_are_refused_before_all_is_unpacked(tmp_path, what):
    """A few bytes are as many rows as one likes, which many areas allow for."""
    group, says = ROWS_OF_A_BOMB[what]
    codes = [f"{number:04d}" for number in range(1_200)]
    trips = {"origin": codes[:2], "destination": codes[:2]}
    inftda.release(trips, {"town": codes}, out=tmp_path / "out", epsilon=1, delta=1e-6, across=0)
    n = (1 << 20) + 1
    flows = pa.table(
        {
            "origin": pa.array([*["0000"] * (n - 1), "nowhere"]),
            "destination": pa.repeat("0000", n),
            "flow": pa.repeat(1, n),
        }
    )
    pq.write_table(
        flows, tmp_path / "out" / "flows.parquet", compression="zstd", row_group_size=group
    )
    assert (tmp_path / "out" / "flows.parquet").stat().st_size < n / 50
    sealed(tmp_path / "out", total=n, n_flows=n)
    with pytest.raises(InftdaError, match=says):
        list(verify(tmp_path / "out"))


# --- Flows in parts, as Spark writes them ---


def in_parts(then=lambda _: None, name="flows.parquet"):
    def apply(folder):
        release = inftda.open_release(folder)
        tree, plan = release.tree, release.manifest.plan
        table = pq.read_table(folder / name)
        (folder / name).unlink()
        (parts := folder / name).mkdir()
        for number in range(2):
            half = table.slice(2 * number, 2 if number == 0 else None)
            part = parts / f"part-{number:05d}.parquet"
            if name == "flows.parquet":
                write_flows(part, tree, half)
            elif name == "measurements.parquet":
                save_measurements(part, half, tree, plan)
            else:
                pq.write_table(half, part, compression="zstd")
        then(parts)
        sealed(folder)

    return apply


def part_linked(parts):
    (part := parts / "part-00001.parquet").rename(parts.parent.parent / "elsewhere")
    part.symlink_to(parts.parent.parent / "elsewhere")


PARTS = {
    "truth.csv": lambda parts: (parts / "truth.csv").write_text("1,2,3"),
    "_SUCCESS": lambda parts: (parts / "_SUCCESS").touch(),
    "a folder": lambda parts: (parts / "part-00002.parquet").mkdir(),
    "a folder with a part": lambda parts: shutil.copytree(parts, parts / "part-00002.parquet"),
    "a part twice": lambda parts: shutil.copy(
        parts / "part-00001.parquet", parts / "part-00002.parquet"
    ),
    "a part that is missing": lambda parts: (parts / "part-00001.parquet").unlink(),
    "a number left out": lambda parts: (parts / "part-00001.parquet").rename(
        parts / "part-00007.parquet"
    ),
    "a link": part_linked,
    "no part": lambda parts: [path.unlink() for path in parts.iterdir()],
}


@pytest.mark.parametrize("name", ["flows.parquet", "measurements.parquet"])
def test_tables_in_parts_verify(slips, name):
    assert slips(in_parts(name=name))


@pytest.mark.parametrize("name", ["flows.parquet", "measurements.parquet"])
@pytest.mark.parametrize("what", PARTS)
def test_nothing_can_be_put_among_the_parts(slips, what, name):
    assert not slips(in_parts(PARTS[what], name))


def test_no_other_table_is_in_parts(slips):
    assert not slips(in_parts(name="totals.parquet"))


# --- Names, locations and outlines, which are the publisher's word, but nothing else ---


def places_as(column, make, row=3):
    """Another value in a row of the places: by default of the first finest area."""

    def change(table):
        at = table.column_names.index(column)
        values = table[column].to_pylist()
        values[row] = make(values[row])
        field = table.schema.field(column)
        return table.set_column(at, field, pa.array(values, field.type))

    return of_places(change)


def test_places_written_again_verify(slips):
    assert slips(places_as("name", lambda name: name))
    assert slips(places_as("name", lambda _: "Arles")), "whose names they are cannot be known"


PLACES = {
    "another level": places_as("level", lambda _: "city"),
    "another code": places_as("code", lambda _: "17"),
    "a long name": places_as("name", lambda _: "x" * 1001),
    "a name of two lines": places_as("name", lambda _: "17\nfrom here"),
    "a name that a terminal obeys": places_as("name", lambda _: "\x1b[2J"),
    "a name of blanks": places_as("name", lambda _: " "),
    "a name with blanks around it": places_as("name", lambda _: " Aix"),
    "a location of a region": places_as("lon", lambda _: 1.0, row=0),
    "half a location": places_as("lat", lambda _: math.nan),
    "a location off the globe": places_as("lat", lambda _: 91.0),
    "an endless location": places_as("lon", lambda _: math.inf),
    "an outline of a region": places_as("outline", lambda _: b"\x01" * 9, row=0),
    "an outline that is none": places_as("outline", lambda _: b"secret"),
    "an outline with something after it": places_as("outline", lambda wkb: wkb + b"secret"),
    "an outline of the other kind": places_as("outline", lambda wkb: b"\x00" + wkb[1:]),
    "an outline that is a point": places_as("outline", lambda wkb: wkb[:1] + b"\x01" + wkb[2:]),
    "an outline that is not closed": places_as("outline", lambda wkb: wkb[:-1] + b"\x01"),
    "nothing at all": rewritten(
        lambda table: pa.table(
            {
                **{name: table[name] for name in ("level", "code")},
                "name": [""] * len(table),
                "lon": [math.nan] * len(table),
                "lat": [math.nan] * len(table),
                "outline": pa.array([b""] * len(table), pa.binary()),
            }
        ).cast(table.schema),
        name="places.parquet", write_statistics=["level", "code", "name", "lon", "lat"],
    ),
    "a row less": rewritten(lambda table: table.slice(1), name="places.parquet"),
    "a row more": rewritten(again, name="places.parquet"),
    "a column more": rewritten(
        lambda table: table.append_column("truth", table["lon"]), name="places.parquet"
    ),
    "other metadata": rewritten(with_key("truth"), name="places.parquet"),
    "another codec": rewritten(name="places.parquet", compression="gzip"),
    "hidden bytes": hidden_bytes("places.parquet"),
    "a page that nobody reads": in_last_chunk(page(b"secret"), "places.parquet"),
    "a name that no row has": listed_only("name", "places.parquet"),
}  # fmt: skip


@pytest.mark.parametrize("what", PLACES)
def test_places_hold_nothing_else(slips, what):
    assert not slips(PLACES[what])


def test_two_axes_cannot_state_different_places(slips):
    def change(data):
        data["tree"]["axes"][0]["places_sha256"] = "0" * 64

    assert not slips(lambda folder: restate(folder, change))
