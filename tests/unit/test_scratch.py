"""Private folders: made, locked, removed, and cleared up after those who cannot."""

import stat
import subprocess
import sys

import pytest

from inftda import scratch
from inftda.scratch import private_folder


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
