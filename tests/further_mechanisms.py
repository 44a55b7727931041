"""Mechanisms for tests, offered as if an installed package brought them."""

from inftda.mechanisms import catalogue


def offer(monkeypatch, name, mechanism):
    """Let `mechanism` be found by `name`."""
    load = catalogue._load
    monkeypatch.setattr(
        catalogue, "_load", lambda asked: mechanism if asked == name else load(asked)
    )
