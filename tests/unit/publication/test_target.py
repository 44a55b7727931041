"""The file a command is asked to write: nothing that is needed is ever replaced."""

import os
from pathlib import Path

import pytest
from small_release import OD, make_release

from inftda.errors import InftdaError
from inftda.publication.target import check_target


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The current folder, with a release and other things in it."""
    monkeypatch.chdir(tmp_path)
    release, _ = make_release(OD)
    release.save("release")
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
        ("release/manifest.json", "lies in the release"),
        ("release/new.csv", "lies in the release"),
        ("folder/../release/new.csv", "lies in the release"),
        ("into/new.csv", "lies in the release"),
        ("release", "is a folder"),
        ("", "is a folder"),
        ("folder", "is a folder"),
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
        check_target(Path(out), force=force)


@pytest.mark.usefixtures("place")
def test_a_file_that_is_there_is_replaced_only_by_force():
    with pytest.raises(InftdaError, match=r"exists already.*--force"):
        check_target(Path("file"))
    check_target(Path("file"), force=True)
    check_target(Path("new"))
    check_target(Path("folder/new"))


@pytest.mark.parametrize("name", ["file", "twin", "folder/../file"])
@pytest.mark.parametrize("read", ["file", "link"])
@pytest.mark.usefixtures("place")
def test_what_is_being_read_is_not_replaced_whatever_it_is_called(name, read):
    with pytest.raises(InftdaError, match="is being read"):
        check_target(Path(name), force=True, reads=[None, Path("nowhere"), Path(read)])
