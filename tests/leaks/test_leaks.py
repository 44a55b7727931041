"""Nothing of the truth leaves but through the mechanism: in files, on the screen, in messages.

One release is watched from all sides: on a terminal, with the widest file mode, in its own
home and temporary directory, by a kernel that kills it if it opens an Internet socket.
"""

import json
import logging
import os
import platform
import pty
import re
import resource
import stat
import subprocess
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace

import canaries
import no_network
import numpy as np
import pyarrow.parquet as pq
import pytest

from inftda.cli.main import run
from inftda.errors import InftdaError
from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.reading import Columns, bounding
from inftda.reading.truth import Truth
from inftda.tree import Cells, Tree
from inftda.tree.hierarchy import Hierarchy
from patience import PATIENCE

HERE = Path(__file__).parent
N_PERSONS = 1237

pytestmark = pytest.mark.usefixtures("own_databases")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INFTDA_DEBUG", raising=False)
    write_input(tmp_path)
    return tmp_path


def write_input(folder):
    (folder / "areas.csv").write_text(canaries.AREAS)
    (folder / "flows.csv").write_text(canaries.flows_csv())
    (folder / "trips.csv").write_text(canaries.trips_csv(N_PERSONS))


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A release of persons' trips under add-remove, charged to a ledger, on a terminal."""
    if platform.machine() not in no_network.KNOWN:
        pytest.skip("system calls of this machine are not known here")
    folder = tmp_path_factory.mktemp("watched")
    work, home, temporary = (folder / name for name in ("work", "home", "temporary"))
    for path in (work, home, temporary):
        path.mkdir()
    write_input(work)
    environment = {
        **{key: value for key, value in os.environ.items() if key != "INFTDA_DEBUG"},
        "HOME": str(home), "TMPDIR": str(temporary), "TERM": "xterm", "COLUMNS": "120",
    }  # fmt: skip
    ledger = [
        "ledger", "create", str(work / "ledger.db"), "census", "--neighbours", "add-remove",
        "--rho", "1", "--delta", "1e-6",
    ]  # fmt: skip
    assert run(ledger) == 0
    given = {path.name for path in work.iterdir()}
    watcher = canaries.Watcher(work, temporary)
    watcher.start()
    code, screen = on_a_terminal(
        [
            "release", "trips.csv", "--areas", "areas.csv", "--person", "person",
            "--neighbours", "add-remove", "--epsilon", "0.5", "--delta", "1e-8", "--out", "out",
            "--ledger", "ledger.db", "--dataset", "census",
        ],
        work, environment,
    )  # fmt: skip
    watcher.end()
    assert code == 0, screen
    return SimpleNamespace(
        work=work, home=home, temporary=temporary, screen=screen, seen=watcher.seen, given=given
    )


def on_a_terminal(arguments, folder, environment):
    """Runs a command on a terminal of its own with nothing masked; exit code and screen."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(HERE / "no_network.py"), *arguments],
        cwd=folder, env=environment, stdin=slave, stdout=slave, stderr=slave, umask=0,
    )  # fmt: skip
    os.close(slave)
    screen = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        screen += part
    os.close(master)
    return process.wait(timeout=PATIENCE), screen


def released_files(out):
    return [path for path in sorted(out.rglob("*")) if path.is_file()]


# --- the scanner itself ----------------------------------------------------------------------


@pytest.mark.parametrize("form", list(canaries.forms(700_000_012_347)))
def test_the_scanner_finds_a_number_in_every_form(form):
    assert canaries.found_in(b"abc" + form + b"def", [700_000_012_347]) == ["700000012347"]
    assert canaries.found_in(b"abc def", [700_000_012_347]) == []


def test_the_scanner_finds_a_number_in_colours_and_a_name_in_wide_letters():
    coloured = b"\x1b[36m700,000,\x1b[0m012,347"
    assert canaries.found_in(coloured, [700_000_012_347])
    assert canaries.found_in("person-canary-1".encode("utf-16-le"), texts=["person-canary-"])


def test_the_scanner_looks_into_packed_columns(tmp_path):
    import pyarrow as pa  # noqa: PLC0415

    path = tmp_path / "flows.parquet"
    pq.write_table(pa.table({"flow": [1, 700_000_012_347]}), path, compression="zstd")
    assert canaries.found_in(canaries.unpacked(path), [700_000_012_347])


def test_the_kernel_kills_what_opens_an_internet_socket():
    if platform.machine() not in no_network.KNOWN:
        pytest.skip("system calls of this machine are not known here")
    done = subprocess.run([sys.executable, str(HERE / "no_network.py"), "--try"], check=False)
    assert done.returncode == -31  # SIGSYS


# --- a watched release: that it ended well shows that it opened no Internet socket -----------


def test_no_person_is_named_anywhere(watched):
    for path in [*released_files(watched.work / "out"), watched.work / "ledger.db"]:
        assert canaries.found_in(canaries.unpacked(path), texts=[canaries.PERSON]) == []
    assert canaries.found_in(watched.screen, texts=[canaries.PERSON]) == []
    for word in (b"reading", b"town", b"Guarantee"):
        assert word in watched.screen, "nobody watched the screen"


def test_the_number_of_persons_is_nowhere_in_words(watched):
    """The total is noised under add-remove; it may come out right only by chance."""
    manifest = json.loads((watched.work / "out" / "manifest.json").read_text())
    texts = [watched.screen, (watched.work / "out" / "manifest.json").read_bytes()]
    if manifest["total"] != N_PERSONS:
        for text in texts:
            assert re.search(rb"\b(1237|1,237)\b", text) is None


def test_only_what_belongs_to_a_release_is_in_its_folder(watched):
    names = [path.name for path in released_files(watched.work / "out")]
    assert names == ["areas.csv", "flows.parquet", "manifest.json", "measurements.parquet"]
    assert {path.name for path in watched.work.iterdir()} == {*watched.given, "out"}


def test_nothing_is_left_in_the_temporary_directory_or_at_home(watched):
    assert list(watched.temporary.iterdir()) == []
    assert list(watched.home.rglob("*")) == []


def test_a_release_can_be_served_and_its_ledger_is_for_its_owner_only(watched):
    out = watched.work / "out"
    assert stat.S_IMODE(out.stat().st_mode) == 0o755
    assert {stat.S_IMODE(path.stat().st_mode) for path in released_files(out)} == {0o644}
    assert stat.S_IMODE((watched.work / "ledger.db").stat().st_mode) == 0o600


def test_temporary_files_are_private_while_they_are_there(watched):
    published = {"out", *(path.name for path in released_files(watched.work / "out"))}
    known = {*watched.given, *published}
    new = {name: mode for name, mode in watched.seen.items() if name not in known}
    assert any(name.startswith(".out.partial-") for name in new), "the watcher saw nothing"
    assert any(name.startswith("inftda-") for name in new), "the watcher saw nothing"
    # Folders, the ledger's journal, and the empty file by which Python tries a temporary folder.
    assert set(new.values()) <= {0o700, 0o600}


def test_the_manifest_says_what_was_planned_and_nothing_else(watched):
    manifest = json.loads((watched.work / "out" / "manifest.json").read_text())
    assert set(manifest) == {
        "format", "requires", "private", "edition", "counted", "total", "n_flows", "guarantee",
        "axes", "order", "measurements", "algorithm", "division_seed", "files", "software",
    }  # fmt: skip
    assert set(manifest["counted"]) == {"bounded", "unplaceable", "what"}
    flows = pq.read_table(watched.work / "out" / "flows.parquet")
    assert manifest["total"] == sum(flows["flow"].to_pylist())
    assert manifest["n_flows"] == flows.num_rows


# --- true counts ------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
def test_no_true_count_of_any_level_is_written_or_printed(place, capfd, caplog, neighbours):
    """Sums of rows, columns and groups are true numbers, too."""
    caplog.set_level(logging.DEBUG)
    true = canaries.true_numbers(is_total_public=neighbours == "substitute")
    common = ["release", "flows.csv", "--areas", "areas.csv", *canaries.WIDE_NOISE]
    common += ["--neighbours", neighbours]
    totals = ["--origin-level", "town", "--destination-level", "all", "--intervals"]
    found = []
    for out, how in (("out", []), ("more", ["--json"])):
        caplog.clear()
        assert run([*common, "--out", out, *how]) == 0, capfd.readouterr().err
        assert run(["verify", out]) == 0
        assert run(["query", out, "--origin-level", "region", "--destination-level", "all"]) == 0
        assert run(["query", out, *totals]) == 0
        assert run(["report", out, "--out", f"{out}.html"]) == 0, capfd.readouterr().err
        printed = capfd.readouterr()
        files = [*released_files(place / out), place / f"{out}.html"]
        assert "measurements.parquet" in {path.name for path in files}
        seen = [(printed.out + printed.err + caplog.text).encode(), *map(canaries.unpacked, files)]
        found.append({name for text in seen for name in canaries.found_in(text, true)})
    assert not found[0] & found[1], "noise alone would hardly ever hit one number twice"


def test_secrets_that_would_undo_the_noise_or_the_choice_of_trips_are_not_written(
    place, capfd, monkeypatch
):
    key = b"secret-canary-0123456789abcdefgh"
    monkeypatch.setattr(bounding, "draw_key", lambda _: key)
    arguments = ["release", "trips.csv", "--areas", "areas.csv", "--person", "person"]
    arguments += ["--neighbours", "add-remove", *canaries.WIDE_NOISE, "--out", "out"]
    assert run([*arguments, "--not-private-seed", str(canaries.SEED), "--json"]) == 0
    printed = capfd.readouterr()
    seen = [canaries.unpacked(path) for path in released_files(place / "out")]
    for text in [*seen, (printed.out + printed.err).encode()]:
        assert canaries.found_in(text, [canaries.SEED], ["secret-canary"]) == []


# --- what the form of a release could tell ----------------------------------------------------


def test_the_order_of_the_input_leaves_no_trace(place):
    lines = canaries.flows_csv().splitlines(keepends=True)
    (place / "other.csv").write_text("".join([lines[0], *reversed(lines[1:])]))
    made = [
        release(
            name, "areas.csv", epsilon=1, delta=1e-14, out=out, source=SeededSource(1),
        )
        for name, out in (("flows.csv", "a"), ("other.csv", "b"))
    ]  # fmt: skip
    first, second = ((one.table.read_bytes(), one.measured.read_bytes()) for one in made)
    assert first == second


def test_what_holds_the_truth_does_not_print_it():
    tree = Tree.destination_first(Hierarchy.read({"town": ["1", "2"]}))
    areas = (np.array([0], np.int32), np.array([1], np.int32))
    count = np.array([700_000_012_347], np.int64)
    counts = Truth.from_leaves(tree, areas, count)
    shown = repr(counts) + repr(counts.levels) + repr(Cells(areas, count)) + str(counts)
    level = tree.splitting_levels[-1]
    shown += repr(counts.level(level))
    assert canaries.found_in(shown.encode(), [700_000_012_347]) == []


# --- messages ---------------------------------------------------------------------------------

NAME = canaries.PERSON + "000001"
NUMBER = 700_000_012_347

BAD_TABLES = {
    what: f"{head}\n{row}\n"
    for head, rows in {
        "origin,destination,person,count": {
            "a cell too many": f"1,2,{NAME},{NUMBER},5",
            "a cell too few": f"1,2,{NAME}",
            "an open quote": f'1,2,"{NAME},{NUMBER}',
            "wrong bytes": f"1,2,{NAME}\udcff,{NUMBER}",
            "a negative count": f"1,2,{NAME},-{NUMBER}",
            "a fractional count": f"1,2,{NAME},{NUMBER}.5",
            "a count in words": f"1,2,{NAME},{NUMBER}x",
            "too large a count": f"1,2,{NAME},{NUMBER}{NUMBER}",
            "no count": f"1,2,{NAME},",
            "too many trips": f"1,2,{NAME},{NUMBER}",
            "an unknown area": f"9,2,{NAME},{NUMBER}",
            "no area": f",2,{NAME},{NUMBER}",
        },
        "origin,origin,person,count": {"two columns of one name": f"1,2,{NAME},{NUMBER}"},
        f"1,2,{NAME},{NUMBER}": {"no header": ""},
    }.items()
    for what, row in rows.items()
}


@pytest.mark.parametrize("what", BAD_TABLES)
def test_a_message_about_a_bad_table_names_no_person_and_no_count(place, capfd, what):
    """Nor does its traceback: in Python an error is printed with all that it was chained to."""
    (place / "bad.csv").write_bytes(BAD_TABLES[what].encode(errors="surrogateescape"))
    arguments = ["release", "bad.csv", "--areas", "areas.csv", "--person", "person", "--epsilon"]
    assert run([*arguments, "1", "--delta", "1e-8", "--out", "out"]) == 2
    with pytest.raises(InftdaError) as raised:
        release("bad.csv", "areas.csv", columns=Columns(person="person"), epsilon=1, delta=1e-8)
    said = capfd.readouterr().err + "".join(traceback.format_exception(raised.value))
    assert canaries.found_in(said.encode(), [NUMBER], [canaries.PERSON, str(NUMBER)]) == []


def test_a_bug_shows_its_place_but_not_what_it_held(place, capfd, monkeypatch):
    def broken(*_, **__):
        raise ValueError(f"{NAME} {NUMBER}")

    monkeypatch.setattr(Truth, "of", broken)
    arguments = ["release", "flows.csv", "--areas", "areas.csv", *canaries.WIDE_NOISE]
    assert run([*arguments, "--out", "out"]) == 1
    said = capfd.readouterr().err
    assert "unexpected ValueError at broken" in said
    assert canaries.found_in(said.encode(), [NUMBER], [canaries.PERSON]) == []
    assert not (place / "out").exists()


@pytest.mark.parametrize("address", ["127.0.0.1:1/x?connect_timeout=1", "nowhere.invalid/x"])
def test_a_password_is_never_shown(place, capfd, address):
    database = f"postgresql://me:{canaries.PASSWORD}@{address}"
    (place / "config.toml").write_text(f'database = "{database}"\nsql = "SELECT 1"\n')
    arguments = ["release", "--areas", "areas.csv", *canaries.WIDE_NOISE, "--out", "out"]
    for how in (["--sql", "SELECT 1", "--database", database], ["--config", "config.toml"]):
        assert run([*arguments, *how]) == 2
    printed = capfd.readouterr()
    assert canaries.found_in((printed.out + printed.err).encode(), texts=["Sesame"]) == []


def test_a_crash_leaves_no_memory_on_disk():
    """Core dumps are off in the command line's own process."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_CORE, (4096, -1));"
        "from inftda.cli import main as cli; cli.run = lambda _: 0;\n"
        "try: cli.main()\n"
        "except SystemExit: print(resource.getrlimit(resource.RLIMIT_CORE)[0])"
    )
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    code = code.replace("(4096, -1)", f"(min(4096, {hard}) if {hard} >= 0 else 4096, {hard})")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
