"""The top-down loop with other parts than a release takes."""

from inftda.mechanisms.topdown import TopDown


def use(monkeypatch, **parts):
    """Let releases be made by a `TopDown` with these parts."""
    monkeypatch.setattr("inftda.publish.TopDown", lambda: TopDown(**parts))
