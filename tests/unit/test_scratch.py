"""Private folders: made, locked, removed, and cleared up after those who cannot."""

import os
import stat
import subprocess
import sys

import pytest

from inftda import scratch
from inftda.scratch import private_folder, whole_file


def test_a_folder_is_private_and_gone_at_the_end(tmp_path):
    with private_folder(tmp_path, "work-") as folder:
        assert folder.parent == tmp_path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "secret").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_it_is_gone_after_an_error_too(tmp_path):
    with pytest.raises(ValueError, match="stop"), private_folder(tmp_path, "work-"):
        raise ValueError("stop")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_moved_away_stays(tmp_path):
    with private_folder(tmp_path, "work-") as folder:
        (folder / "result").write_text("x")
        folder.rename(tmp_path / "result")
    assert (tmp_path / "result" / "result").read_text() == "x"


def test_what_a_killed_process_left_is_cleared_by_the_next(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from inftda.scratch import private_folder\n"
        "with private_folder(Path(sys.argv[1]), 'work-') as folder:\n"
        "    (folder / 'secret').write_text('x'); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    with private_folder(tmp_path, "other-"):
        assert left.exists()
    with private_folder(tmp_path, "work-"):
        assert not left.exists()


def test_folders_in_use_do_not_disturb_each_other(tmp_path):
    with private_folder(tmp_path, "work-") as first, private_folder(tmp_path, "work-") as second:
        assert first.exists()
        assert second.exists()
        assert first != second


def test_a_prefix_is_no_pattern(tmp_path):
    other = tmp_path / "work-1"
    other.mkdir(mode=0o700)
    with private_folder(tmp_path, "work-*"), private_folder(tmp_path, "[a-z]"):
        assert other.exists()


def test_a_folder_taken_away_before_it_is_locked_is_made_anew(tmp_path, monkeypatch):
    """Another process may take it for abandoned in between."""
    take, tries = scratch._take, []

    def taken_by_another(descriptor):
        tries.append(descriptor)
        return take(descriptor) and len(tries) > 1

    monkeypatch.setattr(scratch, "_take", taken_by_another)
    with private_folder(tmp_path, "work-") as folder:
        assert folder.exists()
    assert len(tries) >= 2


def test_where_folders_cannot_be_locked_none_is_cleared(tmp_path, monkeypatch):
    left = tmp_path / "work-left"
    left.mkdir(mode=0o700)

    def refuse(_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(scratch, "_take", refuse)
    with private_folder(tmp_path, "work-") as folder:
        assert folder.exists()
    assert left.exists()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_out_whole(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with whole_file(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
        assert partial.parent.parent == tmp_path, "a rename within one file system"
        assert stat.S_IMODE(partial.parent.stat().st_mode) == 0o700
    assert path.read_text() == "new"
    assert names(tmp_path) == ["table.csv"]


def cut_off(path, problem):
    with whole_file(path) as partial:
        partial.write_text("half")
        raise problem


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("is_there", [True, False])
def test_whatever_interrupts_the_writing_leaves_the_file_as_it_was(tmp_path, problem, is_there):
    path = tmp_path / "table.csv"
    if is_there:
        path.write_text("old")
    with pytest.raises(type(problem)):
        cut_off(path, problem)
    assert names(tmp_path) == (["table.csv"] if is_there else [])
    assert not is_there or path.read_text() == "old"


def test_a_file_gets_the_rights_it_should_have(tmp_path):
    before = os.umask(0o027)
    try:
        for name, mode in {"usual": None, "private": 0o600}.items():
            with whole_file(tmp_path / name, mode=mode) as partial:
                partial.write_text("x")
    finally:
        os.umask(before)
    rights = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "private")]
    assert rights == [0o640, 0o600]


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


def test_an_interrupt_at_any_moment_leaves_no_folder(tmp_path):
    """One at every line that is run, the first before the folder is there."""
    n_lines = 0
    while not _is_done_before_line(n_lines, tmp_path):
        assert list(tmp_path.iterdir()) == [], f"interrupted at line {n_lines}"
        n_lines += 1
    assert n_lines > 10


def _is_done_before_line(number, parent):
    """Make a folder with an interrupt at a line of `scratch`, counted as they are run."""
    lines = iter(range(number + 1))

    def watch(frame, event, _):
        if frame.f_code.co_filename != scratch.__file__:
            return None
        if event == "line" and next(lines, None) == number:
            raise KeyboardInterrupt
        return watch

    is_inside = False
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        with private_folder(parent, "work-"):
            is_inside = True
            sys.settrace(before)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return is_inside
