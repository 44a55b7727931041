"""A folder that others can write to: whatever they put there, nothing foreign is touched.

Somebody else can make, rename and remove whatever lies beside the output folder, but cannot get
into private folders. The tests stand for that by doing it themselves.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_folder import content, fill, names, write

from inftda import scratch
from inftda.cli.main import run
from inftda.errors import ReleaseError
from inftda.publication.folder import check_writable, writing
from inftda.scratch import MARK, private_folder, whole_file

#: Names of work files beside the release `out`, as they are now or were once.
WORK_FILES = (
    ".out.replaced", ".out.replaced-x", ".out.partial-x", ".inftda-partial-x",
)  # fmt: skip


@pytest.fixture
def parent(tmp_path):
    return tmp_path


@pytest.fixture
def precious(parent):
    """A release of the same owner that has nothing to do with what is being done."""
    (folder := parent / "precious").mkdir(mode=0o700)
    fill(folder, "precious")
    return folder


@pytest.fixture
def cli_release(parent):
    (parent / "areas.csv").write_text("town\n1\n2\n")
    (parent / "flows.csv").write_text("origin,destination\n1,2\n")
    out = parent / "release"
    code = run(
        ["release", str(parent / "flows.csv"), "--areas", str(parent / "areas.csv"), "--epsilon",
         "1", "--delta", "1e-6", "--out", str(out), "--quiet"]
    )  # fmt: skip
    assert code == 0
    return out


def everything(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("name", WORK_FILES)
@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("force", [True, False])
def test_a_planted_link_is_never_followed(parent, precious, name, is_there, force):
    """`.out.replaced` as a link to another release emptied that release."""
    out = parent / "out"
    if is_there:
        out.mkdir()
        fill(out, "old")
    (parent / name).symlink_to(precious)
    before = everything(precious)
    if is_there and not force:
        with pytest.raises(ReleaseError, match="exists already"):
            write(out, force=force)
    else:
        write(out, force=force)
        assert content(out)["flows.parquet"] == "new"
    assert everything(precious) == before
    assert (parent / name).is_symlink(), "nor is the link ours"


@pytest.mark.parametrize("name", WORK_FILES)
@pytest.mark.parametrize("force", [True, False])
def test_another_release_renamed_to_a_work_file_is_left(parent, precious, name, force):
    """Who can write to the folder can rename what others have in it."""
    out = parent / "out"
    if force:
        out.mkdir()
        fill(out, "old")
    precious.rename(parent / name)
    before = everything(parent / name)
    write(out, force=force)
    assert content(out)["flows.parquet"] == "new"
    assert everything(parent / name) == before


def test_a_planted_link_is_not_followed_by_the_command_line_either(parent, precious, capsys):
    """Without --force and with exit code 2 it emptied the other release all the same."""
    (out := parent / "out").mkdir()
    fill(out, "old")
    (parent / ".out.replaced").symlink_to(precious)
    (parent / "areas.csv").write_text("town\n1\n2\n")
    (parent / "flows.csv").write_text("origin,destination\n1,2\n")
    before = everything(precious)
    code = run(
        ["release", str(parent / "flows.csv"), "--areas", str(parent / "areas.csv"), "--epsilon",
         "1", "--delta", "1e-6", "--out", str(out)]
    )  # fmt: skip
    assert code == 2
    assert "exists already" in capsys.readouterr().err
    assert everything(precious) == before


def test_a_folder_put_in_the_place_of_a_private_one_is_not_removed(parent, precious):
    before = everything(precious)
    with private_folder(parent, "work-") as folder:
        (folder / "secret").write_text("x")
        folder.rename(parent / "taken")
        precious.rename(folder)
    assert everything(folder) == before
    assert (parent / "taken" / "secret").exists(), "where it is now is not known"


def test_a_folder_swapped_while_it_is_cleared_away_is_not_removed(parent, precious, monkeypatch):
    """Between the look at an abandoned folder and its removal."""
    (left := parent / "work-left").mkdir(mode=0o700)
    (left / MARK).touch()
    (left / "secret").write_text("x")
    before = everything(precious)
    take = scratch._take

    def swapped(descriptor):
        if left.exists() and not (parent / "aside").exists():
            left.rename(parent / "aside")
            precious.rename(left)
        return take(descriptor)

    monkeypatch.setattr(scratch, "_take", swapped)
    with private_folder(parent, "work-"):
        pass
    assert everything(left) == before


def test_links_inside_an_abandoned_folder_are_removed_and_not_followed(parent, precious):
    (left := parent / "work-left").mkdir(mode=0o700)
    (left / MARK).touch()
    (left / "inner").mkdir()
    (left / "inner" / "link").symlink_to(precious)
    (left / "link").symlink_to(precious)
    before = everything(precious)
    with private_folder(parent, "work-"):
        assert not left.exists()
    assert everything(precious) == before


@pytest.mark.parametrize("rights", [0o770, 0o707, 0o750])
def test_a_marked_folder_that_others_can_enter_is_left(parent, rights):
    (left := parent / "work-left").mkdir()
    (left / MARK).touch()
    left.chmod(rights)
    with private_folder(parent, "work-"):
        pass
    assert (left / MARK).exists()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.write_text("x"), Path.mkdir])
def test_a_mark_of_another_kind_or_a_file_of_that_name_is_no_folder_of_ours(parent, make):
    make(parent / "work-1")
    (left := parent / "work-2").mkdir(mode=0o700)
    (left / MARK).symlink_to("/dev/null")
    with private_folder(parent, "work-"):
        pass
    assert (left / MARK).is_symlink()
    assert make is Path.mkdir or (parent / "work-1").exists()


def test_files_are_written_beside_a_planted_link(parent, precious):
    (parent / ".inftda-partial-x").symlink_to(precious)
    (parent / "page.html").symlink_to(precious / "manifest.json")
    before = everything(precious)
    with whole_file(parent / "page.html") as partial:
        partial.write_text("new")
    assert everything(precious) == before
    assert not (parent / "page.html").is_symlink()


def test_confidential_measures_go_through_no_link(parent, precious, cli_release):
    (precious / "manifest.json").unlink()  # so that it is no release, which is refused anyway
    (parent / "measures").symlink_to(precious)
    before = everything(precious)
    code = run(
        ["evaluate", str(cli_release), "--truth", str(parent / "flows.csv"), "--out",
         str(parent / "measures")]
    )  # fmt: skip
    assert code == 2
    assert everything(precious) == before


def test_what_is_handed_over_is_no_longer_cleared_away(parent):
    """A release just published, renamed back to the name of its work folder."""
    out = parent / "out"
    with writing(out) as folder:
        fill(folder, "new")
        name = folder.parent.name
    assert MARK not in names(out)
    out.rename(parent / name)
    write(out)
    assert content(parent / name)["flows.parquet"] == "new"


def test_a_manifest_that_is_a_pipe_is_refused_and_not_waited_for(parent):
    (out := parent / "out").mkdir()
    os.mkfifo(out / "manifest.json")
    with pytest.raises(ReleaseError, match="not replaced"):
        check_writable(out, force=True)


def test_a_killed_process_leaves_nothing_that_stays(parent):
    """At any moment of making and marking a folder."""
    code = (
        "import os, sys; from pathlib import Path; from inftda import scratch\n"
        "scratch._has_marked = lambda _: os.kill(os.getpid(), 9)\n"
        "with scratch.private_folder(Path(sys.argv[1]), 'work-'): pass\n"
    )
    subprocess.run([sys.executable, "-c", code, str(parent)], check=False)
    (left,) = parent.iterdir()
    with private_folder(parent, "work-"):
        assert not left.exists()


def test_a_copy_of_the_mark_does_not_outlive_the_release(parent):
    (out := parent / "out").mkdir()
    fill(out, "old")
    write(out, force=True)
    assert names(out) == ["areas-1.csv", "areas-2.csv", "flows.parquet", "manifest.json"]
    assert names(parent) == ["out"]
    shutil.rmtree(out)


def interrupted(monkeypatch, *, when):
    """Ctrl-C at each rename that `when` says yes to."""
    rename = Path.rename

    def stopped(self, target):
        if when(self, target):
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", stopped)


def test_pressing_ctrl_c_twice_loses_no_release(parent, monkeypatch):
    """Once when the new one is put in place, again when the older one is brought back."""
    (out := parent / "out").mkdir()
    fill(out, "old")
    interrupted(monkeypatch, when=lambda path, _: path.name == "release")
    with pytest.raises(KeyboardInterrupt):
        write(out, force=True)
    assert not out.exists()
    monkeypatch.undo()
    with pytest.raises(ReleaseError, match="exists already"):
        check_writable(out, force=False)
    assert content(out)["flows.parquet"] == "old"
    assert names(parent) == ["out"]


def test_ctrl_c_when_a_release_is_in_place_leaves_the_new_one(parent, monkeypatch):
    (out := parent / "out").mkdir()
    fill(out, "old")
    rename = Path.rename

    def late(self, target):
        rename(self, target)
        if ".partial-" in self.parent.name:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", late)
    with pytest.raises(KeyboardInterrupt):
        write(out, force=True)
    monkeypatch.undo()
    assert content(out)["flows.parquet"] == "new"
    assert MARK not in names(out)
    write(parent / "another")
    check_writable(out, force=True)
    assert names(parent) == ["another", "out"]


@pytest.mark.parametrize("kind", ["partial", "replaced"])
def test_names_that_contain_each_other_do_not_mix(parent, kind):
    """The older release of `out.partial-b` waits in a folder that begins like one of `out`."""
    waiting = parent / f".out.{kind}-b.replaced-abcdefgh"
    (waiting / "release").mkdir(parents=True)
    waiting.chmod(0o700)
    (waiting / MARK).touch()
    fill(waiting / "release", "old")
    write(parent / "out")
    write(parent / "out", force=True)
    with pytest.raises(ReleaseError, match="exists already"):
        check_writable(parent / f"out.{kind}-b", force=False)
    assert content(parent / f"out.{kind}-b")["flows.parquet"] == "old"


def test_a_folder_of_somebody_else_in_the_place_of_ours_is_not_filled(parent, monkeypatch):
    found = os.fstat

    def of_somebody(descriptor):
        values = list(found(descriptor))
        return os.stat_result([*values[:4], values[4] + 1, *values[5:]])

    monkeypatch.setattr(os, "fstat", of_somebody)
    with pytest.raises(PermissionError, match="somebody else"), private_folder(parent, "work-"):
        pytest.fail("it was filled")
