"""Nothing but results goes to standard output, however long reading takes."""

from inftda.reading.workspace import Workspace

SETTING = "SELECT current_setting('enable_progress_bar') AS bar"


def test_reading_shows_no_progress_bar_of_its_own():
    with Workspace() as workspace:
        assert workspace.fetch(SETTING).to_pylist() == [{"bar": False}]
