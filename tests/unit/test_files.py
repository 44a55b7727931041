"""Files and folders come out whole or not at all, and nothing of anybody else is touched.

Somebody else may be able to make, rename and remove whatever lies beside the target, but cannot
get into private folders. The tests stand for that by doing it themselves.
"""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from inftda.errors import InftdaError, ReleaseError
from inftda.util import files
from inftda.util.files import (
    LOCK,
    NEW,
    OLD,
    bring_back,
    check_file,
    check_folder,
    private_folder,
    whole_file,
    whole_folder,
)

TOKEN = "0123456789abcdef" * 2


def check(folder):
    """What the folders of these tests may have in them."""
    for path in folder.iterdir():
        if path.name not in {"table", "about"}:
            raise ReleaseError(f"{str(folder)!r} is not replaced: {path.name!r} is in it")


def fill(folder, text="new"):
    folder.mkdir(mode=0o700, exist_ok=True)
    for name in ("table", "about"):
        (folder / name).write_text(text)


def write(out, *, force=False, then=lambda: None):
    """Write a new folder; `then` is done before it is put in place."""
    with whole_folder(out, force=force, check=check) as folder:
        fill(folder)
        then()


def content(folder):
    return {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def left_over(parent, prefix, *inside, token=TOKEN):
    """A private folder as a killed process leaves it."""
    (folder := parent / f"{prefix}{token}").mkdir(mode=0o700)
    (folder / LOCK).touch()
    for name in inside:
        fill(folder / name, name)
    return folder


def raises(problem):
    def stop(*_):
        raise problem

    return stop


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


NEW_CONTENT, OLD_CONTENT = ({"table": text, "about": text} for text in ("new", "old"))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def old(out):
    """A folder that is there already."""
    fill(out, "old")
    return out


@pytest.fixture
def precious(tmp_path):
    """A folder of the same owner that has nothing to do with what is being done."""
    fill(folder := tmp_path / "precious", "precious")
    return folder


# --- Private folders ---


@pytest.mark.parametrize("problem", [None, ValueError, KeyboardInterrupt])
def test_a_folder_is_private_and_gone_at_the_end(tmp_path, problem):
    try:
        with private_folder(tmp_path, "work-") as folder:
            assert folder.parent == tmp_path
            assert mode(folder) == 0o700
            fill(folder / "deep", "secret")
            if problem:
                raise problem
    except (ValueError, KeyboardInterrupt):
        pass
    assert names(tmp_path) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from inftda.util.files import private_folder\n"
        "with private_folder(Path(sys.argv[1]), 'work-') as folder:\n"
        "    (folder / 'secret').write_text('x'); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    (begun := tmp_path / f"work-{TOKEN}").mkdir(mode=0o700)  # killed before it had a lock file
    with private_folder(tmp_path, "other-"), private_folder(tmp_path, "wor"):
        assert left.exists()
    with private_folder(tmp_path, "work-"):
        assert not left.exists()
        assert not begun.exists()


def test_folders_in_use_do_not_disturb_each_other(tmp_path):
    with private_folder(tmp_path, "work-") as first, private_folder(tmp_path, "work-") as second:
        assert first.exists()
        assert second.exists()


def test_a_folder_taken_away_before_it_is_locked_is_made_anew(tmp_path, monkeypatch):
    """Another process may take it for a left-over in between."""
    answers = iter([False, True])
    monkeypatch.setattr(files, "_has_taken", lambda *_, **__: next(answers))
    with private_folder(tmp_path, "work-") as folder:
        assert folder.exists()
    assert next(answers, None) is None


def test_where_folders_cannot_be_locked_none_is_removed(tmp_path, monkeypatch):
    left = left_over(tmp_path, "work-")
    monkeypatch.setattr(files.fcntl, "flock", raises(OSError(95, "not supported")))
    with private_folder(tmp_path, "work-") as folder:
        assert folder.exists()
    assert names(tmp_path) == [left.name]


def test_links_inside_a_left_over_are_removed_and_not_followed(tmp_path, precious):
    left = left_over(tmp_path, "work-", "inner")
    (left / "inner" / "link").symlink_to(precious)
    (left / "link").symlink_to(precious)
    with private_folder(tmp_path, "work-"):
        assert not left.exists()
    assert content(precious) == dict.fromkeys(["table", "about"], "precious")


@pytest.mark.parametrize("prefix", [".out.partial-", ".inftda-partial-"])
@pytest.mark.parametrize("plant", [Path.rename, lambda precious, at: at.symlink_to(precious)])
@pytest.mark.parametrize("force", [True, False])
def test_what_has_the_name_of_a_work_folder_is_left(out, precious, prefix, plant, force):
    """Who can write to a folder can rename what others have in it, and put links there."""
    if force:
        fill(out, "old")
    plant(precious, planted := out.parent / f"{prefix}{TOKEN}")
    write(out, force=force)
    with whole_file(out.parent / "file") as partial:
        partial.write_text("new")
    assert content(out) == NEW_CONTENT
    assert content(planted.resolve()) == dict.fromkeys(["table", "about"], "precious")


# --- Files ---


def test_a_file_comes_out_whole(tmp_path):
    (path := tmp_path / "table.csv").write_text("old")
    with whole_file(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
        assert partial.parent.parent == tmp_path, "a rename within one file system"
        assert mode(partial.parent) == 0o700
    assert path.read_text() == "new"
    assert names(tmp_path) == ["table.csv"]


def cut_off(path, problem):
    with whole_file(path) as partial:
        partial.write_text("half")
        raise problem


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("found", [[], ["table.csv"]])
def test_whatever_interrupts_the_writing_leaves_the_file_as_it_was(tmp_path, problem, found):
    for name in found:
        (tmp_path / name).write_text("old")
    with pytest.raises(type(problem)):
        cut_off(tmp_path / "table.csv", problem)
    assert content(tmp_path) == dict.fromkeys(found, "old")


def test_a_file_gets_the_rights_it_should_have(tmp_path):
    before = os.umask(0o027)
    try:
        for name, rights in {"usual": None, "private": 0o600}.items():
            with whole_file(tmp_path / name, mode=rights) as partial:
                partial.write_text("x")
    finally:
        os.umask(before)
    assert [mode(tmp_path / name) for name in ("usual", "private")] == [0o640, 0o600]


def test_a_file_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    steps = []
    replace, fsync = type(tmp_path).replace, os.fsync

    def replaced(path, target):
        steps.append("replace")
        return replace(path, target)

    def synced(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        return fsync(descriptor)

    monkeypatch.setattr(type(tmp_path), "replace", replaced)
    monkeypatch.setattr(os, "fsync", synced)
    with whole_file(tmp_path / "x") as partial:
        partial.write_text("x")
    assert steps == ["file", "replace", "folder"]


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    with whole_file(tmp_path / "link") as partial:
        partial.write_text("new")
    assert (tmp_path / "target").read_text() == "old"
    assert not (tmp_path / "link").is_symlink()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The current folder, with something published and other things in it."""
    monkeypatch.chdir(tmp_path)
    Path("release").mkdir()
    for name in ("flows.parquet", "manifest.json"):
        Path("release", name).touch()
    Path("file").write_text("years of work")
    Path("twin").hardlink_to("file")
    Path("link").symlink_to("file")
    Path("dangling").symlink_to("nowhere")
    Path("into").symlink_to("release")
    Path("folder").mkdir()
    os.mkfifo("pipe")
    return tmp_path


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("release/flows.parquet", "lies in the release"),
        ("release/new.csv", "lies in the release"),
        ("folder/../release/new.csv", "lies in the release"),
        ("into/new.csv", "lies in the release"),
        ("release", "is a folder"),
        ("", "is a folder"),
        ("link", "is a link"),
        ("dangling", "is a link"),
        ("into", "is a link"),
        ("pipe", "not a plain file"),
        ("/dev/null", "not a plain file"),
        ("none/new.csv", "make it first"),
        ("file/new.csv", "make it first"),
        ("x" * 256, "shorter"),
        ("x" * 256 + "/new.csv", "shorter"),
    ],
)
@pytest.mark.parametrize("force", [True, False])
@pytest.mark.usefixtures("place")
def test_a_file_that_must_not_be_written_is_refused_by_force_too(out, says, force):
    with pytest.raises(InftdaError, match=says):
        check_file(Path(out), force=force)


@pytest.mark.usefixtures("place")
def test_a_file_that_is_there_is_replaced_only_by_force():
    with pytest.raises(InftdaError, match=r"exists already.*force=True"):
        check_file(Path("file"))
    check_file(Path("file"), force=True)
    check_file(Path("new"))
    check_file(Path("folder/new"))


@pytest.mark.parametrize("name", ["file", "twin", "folder/../file"])
@pytest.mark.parametrize("read", ["file", "link"])
@pytest.mark.usefixtures("place")
def test_what_is_being_read_is_not_replaced_whatever_it_is_called(name, read):
    with pytest.raises(InftdaError, match="is being read"):
        check_file(Path(name), force=True, reads=[None, Path("nowhere"), Path(read)])


# --- Folders ---


@pytest.mark.parametrize("is_there", [True, False])
def test_a_folder_becomes_visible_when_it_is_complete(out, is_there):
    if is_there:
        fill(out, "old")
    with whole_folder(out, check=check, force=is_there) as folder:
        fill(folder)
        assert content(out) == (OLD_CONTENT if is_there else {})
        assert folder.parent.parent == out.parent, "a rename within one file system"
    assert content(out) == NEW_CONTENT
    assert names(out.parent) == ["out"]


@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("is_there", [True, False])
def test_whatever_interrupts_the_writing_leaves_what_was_there(out, problem, is_there):
    if is_there:
        fill(out, "old")
    with pytest.raises(problem):
        write(out, force=True, then=raises(problem))
    assert names(out.parent) == (["out"] if is_there else [])
    assert not is_there or content(out) == OLD_CONTENT


def test_what_comes_meanwhile_is_replaced_only_by_force_and_only_if_it_may_be(out):
    with pytest.raises(ReleaseError, match="exists already"):
        write(out, then=lambda: fill(out, "old"))
    assert content(out) == OLD_CONTENT
    with pytest.raises(ReleaseError, match=r"thesis\.txt"):
        write(out, force=True, then=lambda: (out / "thesis.txt").write_text("years of work"))
    assert content(out) == {**OLD_CONTENT, "thesis.txt": "years of work"}
    assert names(out.parent) == ["out"]


def at_rename(monkeypatch, then, *, of):
    """Do something before each rename of a folder with this name."""
    rename = Path.rename

    def renamed(self, target):
        if self.name == of:
            then()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", renamed)


@pytest.mark.parametrize("problem", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_if_the_new_folder_cannot_be_put_in_place_the_old_one_is_back(old, monkeypatch, problem):
    at_rename(monkeypatch, raises(problem), of=NEW)
    with pytest.raises(type(problem)):
        write(old, force=True)
    assert content(old) == OLD_CONTENT
    assert names(old.parent) == ["out"]


def test_pressing_ctrl_c_twice_loses_nothing(old, monkeypatch):
    """Once when the new one is put in place, again when the old one is brought back."""
    for name in (NEW, OLD):
        at_rename(monkeypatch, raises(KeyboardInterrupt), of=name)
    with pytest.raises(KeyboardInterrupt):
        write(old, force=True)
    assert not old.exists()
    monkeypatch.undo()
    with pytest.raises(ReleaseError, match="exists already"):
        check_folder(old, check=check, force=False)
    assert content(old) == OLD_CONTENT
    assert names(old.parent) == ["out"]


def test_a_folder_whose_replacement_was_cut_off_is_brought_back(out):
    left_over(out.parent, ".out.partial-", NEW, OLD)
    with pytest.raises(ReleaseError, match="exists already"):
        check_folder(out, check=check, force=False)
    assert content(out) == OLD_CONTENT
    left_over(out.parent, ".out.partial-", OLD)  # killed after the new one was in place
    write(out, force=True)
    assert content(out) == NEW_CONTENT
    assert names(out.parent) == ["out"]


def test_names_that_contain_each_other_do_not_mix(out):
    """The old folder of `out.partial-b` waits in a folder that begins like one of `out`."""
    left_over(out.parent, ".out.partial-b.partial-", OLD)
    write(out)
    write(out, force=True)
    other = out.with_name("out.partial-b")
    bring_back(other)
    assert content(other) == OLD_CONTENT


def test_only_the_owner_can_read_a_folder_whatever_the_umask(out):
    before = os.umask(0)
    try:
        with whole_folder(out, check=check) as folder:
            fill(folder)
    finally:
        os.umask(before)
    assert [mode(out), *map(mode, out.iterdir())] == [0o700, 0o600, 0o600]


@pytest.mark.parametrize(
    ("umask", "rights"),
    [
        (0, (0o755, 0o644)),
        (0o022, (0o755, 0o644)),
        (0o027, (0o750, 0o640)),
        (0o077, (0o700, 0o600)),
    ],
)
def test_a_public_folder_follows_the_umask(out, umask, rights):
    before = os.umask(umask)
    try:
        with whole_folder(out, check=check, is_public=True) as folder:
            fill(folder)
            assert mode(folder.parent) == 0o700
    finally:
        os.umask(before)
    assert (mode(out), *{*map(mode, out.iterdir())}) == rights


@pytest.mark.parametrize("is_there", [True, False])
def test_checking_a_folder_changes_nothing(out, is_there):
    if is_there:
        out.mkdir()
    check_folder(out, check=check, force=True)
    assert names(out.parent) == (["out"] if is_there else [])
