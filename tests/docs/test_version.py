"""One version, in one place, and what is said of it."""

import re
import tomllib
from importlib.metadata import version

from documents import ROOT

import inftda


def test_the_installed_package_has_the_version_it_states():
    assert re.fullmatch(r"\d+\.\d+\.\d+", inftda.__version__)
    assert version("inftda") == inftda.__version__


def test_the_version_stands_nowhere_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/inftda/__init__.py"


def test_the_changelog_begins_with_this_version_and_its_privacy():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", text, flags=re.MULTILINE)[0] == inftda.__version__
    assert re.findall(r"^### (\w+)", text, flags=re.MULTILINE)[0] == "Privacy"


def test_development_tools_are_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tools = project["project"]["optional-dependencies"]["dev"]
    assert [tool for tool in tools if "==" not in tool and not tool.startswith("inftda[")] == []
