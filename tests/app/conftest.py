"""An app for a folder with a small table."""

import pytest

from app_server import started_app

AREAS = "region,town\nN,001\nN,002\nS,003\nS,004\n"
FLOWS = "origin,destination,count\n001,002,300\n003,003,500\n002,004,70\n"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    inside = tmp_path_factory.mktemp("around") / "inside"
    inside.mkdir()
    (inside / "areas.csv").write_text(AREAS)
    (inside / "flows.csv").write_text(FLOWS)
    (inside.parent / "secret.csv").write_text(FLOWS)
    (inside / "link.csv").symlink_to(inside.parent / "secret.csv")
    (inside / "away").symlink_to(inside.parent)
    return inside.resolve()


@pytest.fixture(scope="session")
def app(folder):
    """With its owner inside."""
    with started_app(folder) as visitor:
        yield visitor.enter()


@pytest.fixture
def document():
    """Everything that a release needs."""
    return {
        "areas": "areas.csv", "epsilon": "1", "delta": "1e-6",
        "neighbours": "substitute", "trips": "1",
        "release": {"flows": "flows.csv", "out": "made"},
    }  # fmt: skip
