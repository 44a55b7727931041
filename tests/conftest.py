"""Three tiers of tests, and which tests must share a process.

A test that is marked `slow` is left out by `make test`. One that is marked `nightly` is slow as
well, and is left out by `make test-gate` too. `make test-all` runs everything.
"""

import gc
import re
from functools import cache
from pathlib import Path

import pytest

import tiers

HERE = Path(__file__).parent
#: Takes seconds to set up: Spark, a database server, a release under watch.
SLOW_FIXTURES = frozenset({"spark", "server", "watched"})
#: Folders and fixtures that share what takes long to start or all cores: each by one process.
GROUPS = {"browser": "browser", "crash": "crash", "integration": "server", "spark": "spark"}
#: How a file says that all of its tests are slow.
ALL_SLOW = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(slow|nightly)", re.MULTILINE)


def pytest_configure(config):
    tiers.is_fast = config.option.markexpr == "not slow"


def pytest_ignore_collect(collection_path, config):
    """A fast run of everything does not read slow files: they load large libraries."""
    if not tiers.is_fast or config.args != config.getini("testpaths") or collection_path.is_dir():
        return None
    text = collection_path.read_text(encoding="utf-8") if collection_path.suffix == ".py" else ""
    return ALL_SLOW.search(text) and True


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue  # of the laboratory
        is_on_spark = uses_spark(item)
        folder = item.path.relative_to(HERE).parts[0]
        if group := GROUPS.get("spark" if is_on_spark else folder):
            item.add_marker(pytest.mark.xdist_group(group))
        needs_time = is_on_spark or SLOW_FIXTURES & {*item.fixturenames}
        if needs_time or item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.slow)


def uses_spark(item):
    call = getattr(item, "callspec", None)
    chosen = None if call is None else call.params.get("engine")
    return "spark" in item.fixturenames or chosen == "spark"


def pytest_collection_finish(session):
    """What is there now stays to the end: the collector of garbage need not look at it again."""
    gc.collect()
    gc.freeze()
    grouped = [item for item in session.items if item.get_closest_marker("xdist_group")]
    if getattr(session.config.option, "loadgroup", False) and grouped:
        # Not so with every version of pytest; Spark would be started by every process.
        assert "@" in grouped[0].nodeid, "xdist does not keep groups of tests together"


def pytest_sessionfinish():
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def installed_packages():
    """Looked up once, not for every release: none is installed while tests run."""
    from inftda.publication import manifest  # noqa: PLC0415 - it may be loaded late only

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest, "version", cache(manifest.version))
        yield


@pytest.fixture(scope="session", autouse=True)
def databases(tmp_path_factory):
    """Few of them in a fast run, which would open thousands."""
    if not tiers.is_fast:
        yield
        return
    from shared_databases import shared_databases  # noqa: PLC0415 - it loads DuckDB

    with shared_databases(str(tmp_path_factory.mktemp("spilled"))):
        yield


@pytest.fixture
def own_databases(monkeypatch):
    """Every database opened anew also in a fast run, for tests of where it writes."""
    import duckdb  # noqa: PLC0415 - only for those who ask

    from shared_databases import CONNECT  # noqa: PLC0415 - likewise

    monkeypatch.setattr(duckdb, "connect", CONNECT)
