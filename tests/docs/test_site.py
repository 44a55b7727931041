"""The documentation builds strictly, is complete, and loads nothing from elsewhere."""

import re
import runpy
import subprocess
import sys

import click
import pyarrow.parquet as pq
import pytest
from documents import ROOT, environment, read

import inftda
from inftda.cli.main import app
from inftda.publication.folder import SCHEMA

#: What would make a browser fetch something.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src=["'](https?:)?//"""
    r"""|<link[^>]+href=["'](https?:)?//|@import|url\(["']?(https?:)?//"""
)


@pytest.mark.slow
def test_the_site_builds_strictly_and_a_reader_without_a_network_misses_nothing(tmp_path):
    pytest.importorskip("material", reason="the site needs mkdocs-material")
    pytest.importorskip("mkdocstrings", reason="the site needs mkdocstrings")
    # Not quiet, which would be lenient: warnings that are not shown do not count.
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**environment(), "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    built = [*tmp_path.rglob("*.html"), *tmp_path.rglob("*.css")]
    assert len(built) > len([*(ROOT / "docs").rglob("*.md")])
    assert not [path.name for path in built if FETCHED.search(path.read_text(encoding="utf-8"))]
    assert FETCHED.search('<link rel="stylesheet" href="//fonts.example/x.css">')


def test_no_formula_is_left_as_markup_that_nothing_renders():
    for path in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"\\\(|\\\[|\$\$|\\(sum|frac|delta|varepsilon)\b", text), path.name


def test_every_command_and_option_is_in_the_reference():
    page = runpy.run_path(str(ROOT / "docs/generate_cli.py"))["page"]()
    for where, command in commands(app, "inftda"):
        section = page.partition(f"\n## {where}\n")[2].partition("\n## ")[0]
        assert section, where
        for parameter in command.params:
            for name in (*parameter.opts, *parameter.secondary_opts):
                assert name.startswith("--") <= (f"`{name}`" in section), f"{where} {name}"


def commands(group, path):
    for name in group.list_commands(None):
        inner = group.get_command(None, name)
        if isinstance(inner, click.Group):
            yield from commands(inner, f"{path} {name}")
        else:
            yield f"{path} {name}", inner


def test_every_public_name_is_in_the_reference():
    page = read("docs/reference/api.md")
    assert [name for name in inftda.__all__ if f"inftda.{name}" not in page] == []


def test_the_reference_of_manifests_is_that_of_the_records():
    """And the published JSON Schemas: `python docs/generate_manifest.py` writes both."""
    for path, text in runpy.run_path(str(ROOT / "docs/generate_manifest.py"))["files"]().items():
        assert path.read_text(encoding="utf-8") == text, path.name


def test_every_column_of_a_release_is_in_the_reference(tmp_path):
    flows = {"origin": ["1", "2"], "destination": ["2", "2"], "count": [40, 50]}
    inftda.release(flows, {"town": ["1", "2"]}, epsilon=1, delta=1e-6, out=tmp_path / "release")
    columns = {*pq.read_schema(tmp_path / "release/measurements.parquet").names, *SCHEMA.names}
    page = read("docs/reference/manifest.md")
    assert [name for name in columns if f"`{name}`" not in page] == []


def test_every_package_is_on_the_map_of_the_architecture():
    packages = [path.parent.name for path in (ROOT / "src/inftda").glob("*/__init__.py")]
    page = read("docs/architecture.md")
    assert [name for name in packages if f"| `{name}/` |" not in page] == []
