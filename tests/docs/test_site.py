"""The documentation builds strictly, is complete, and loads nothing from elsewhere."""

import json
import re
import runpy
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from documents import ROOT, environment

import inftda
from inftda.cli.main import app
from inftda.publication.folder import SCHEMA

pytest.importorskip("material", reason="the site needs mkdocs-material")
pytest.importorskip("mkdocstrings", reason="the site needs mkdocstrings")

pytestmark = pytest.mark.slow

#: What would make a browser fetch something.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src=["'](https?:)?//"""
    r"""|<link[^>]+href=["'](https?:)?//|@import|url\(["']?(https?:)?//"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**environment(), "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    # Quiet would be lenient: warnings that are not shown do not count.
    assert done.returncode == 0, done.stderr
    return out


def test_every_page_is_built(site):
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    pages = {
        path.with_name("index") if path.name == "README.md" else path.with_suffix("")
        for path in sources
    }
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert pages <= built


def test_a_reader_without_a_network_misses_nothing(site):
    found = {
        str(path.relative_to(site)): match[0]
        for path in [*site.rglob("*.html"), *site.rglob("*.css")]
        for match in FETCHED.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == {}


def test_what_would_be_fetched_is_noticed():
    assert FETCHED.search('<script src="https://unpkg.com/x"></script>')
    assert FETCHED.search('<link rel="stylesheet" href="//fonts.example/x.css">')
    assert not FETCHED.search('<a href="https://example.org">a link</a>')


def test_no_formula_is_left_as_markup_that_nothing_renders():
    for path in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"\\\(|\\\[|\$\$|\\(sum|frac|delta|varepsilon)\b", text), path.name


def test_every_command_and_option_is_in_the_reference():
    page = runpy.run_path(str(ROOT / "docs/generate_cli.py"))["page"]()
    import typer  # noqa: PLC0415 - only here

    for where, command in commands(typer.main.get_command(app), "inftda"):
        assert f"\n## {where}\n" in page
        section = page.partition(f"\n## {where}\n")[2].partition("\n## ")[0]
        for parameter in command.params:
            for name in (*parameter.opts, *parameter.secondary_opts):
                assert name.startswith("--") <= (f"`{name}`" in section), f"{where} {name}"


def commands(group, path):
    for name, inner in group.commands.items():
        if hasattr(inner, "commands"):
            yield from commands(inner, f"{path} {name}")
        else:
            yield f"{path} {name}", inner


def test_every_public_name_is_in_the_reference():
    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    for name in inftda.__all__:
        assert f"inftda.{name}" in page, name


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    out = tmp_path_factory.mktemp("manifest") / "release"
    flows = {"origin": ["1", "2"], "destination": ["2", "2"], "count": [40, 50]}
    asked = {"epsilon": 1, "delta": 1e-6, "across": 0.08, "measurements": True}
    inftda.release(flows, {"town": ["1", "2"]}, **asked, out=out)
    columns = {*pq.read_schema(out / "measurements.parquet").names} - {"origin", "destination"}
    return json.loads((out / "manifest.json").read_text()) | {"further columns": columns}


def test_every_field_of_the_manifest_is_in_the_reference(manifest):
    page = (ROOT / "docs/reference/manifest.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE))
    columns = manifest.pop("further columns")
    guarantee, tree = manifest["guarantee"], manifest["tree"]
    expected = {*manifest, *guarantee, *guarantee["levels"][0], *tree}
    expected |= {*guarantee["tables"][0], *manifest["counted"], *columns}
    # Locations stand in one row.
    expected |= {*SCHEMA.names} - {"lon", "lat"}
    assert expected <= rows
    assert rows - expected == set()
    for key in tree["axes"][0]:
        assert f"`{key}`" in page


def test_every_module_is_on_the_map_of_the_architecture():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src/inftda"
    parts = [path.name for path in package.iterdir() if not path.name.startswith(("_", "py."))]
    for part in parts:
        name = part if part.endswith(".py") else f"{part}/"
        assert f"| `{name}` |" in page, name
