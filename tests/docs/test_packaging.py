"""What is uploaded: a wheel and a source archive, built and used without the checkout."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest
import yaml
from documents import ROOT, read
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import inftda

PROJECT = tomllib.loads(read("pyproject.toml"))


def run(*command, **options):
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment_of(folder):
    """A new environment without any library, as a command to run there."""
    run(sys.executable, "-m", "venv", folder)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return lambda name, *more: run(folder / "bin" / name, *more, cwd=folder, env=env)


def build(source, out):
    pytest.importorskip("hatchling", reason="no wheel is built: hatchling is missing")
    run(sys.executable, "-m", "hatchling", "build", "-d", out, cwd=source)
    (wheel,), (archive,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, archive


@pytest.mark.slow
def test_the_archives_hold_what_they_should_and_give_the_same_wheel(tmp_path):
    wheel, archive = build(ROOT, tmp_path / "dist")
    assert wheel.name == f"inftda_od-{inftda.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        about = f"inftda_od-{inftda.__version__}.dist-info"
        told = packed.read(f"{about}/METADATA").decode()
        materials = json.loads(packed.read(f"{about}/sboms/inftda-od.cdx.json"))
    assert {name.partition("/")[0] for name in names} == {"inftda", about}
    assert {"inftda/py.typed", "inftda/pages/templates/report.html"} <= {*names}
    assert "inftda/pages/assets/style.css" in names
    for line in (f"Version: {inftda.__version__}", "License-Expression: Apache-2.0", "# inftda"):
        assert line in told
    needs = {Requirement(need).name for need in PROJECT["project"]["dependencies"]}
    assert {library["name"] for library in materials["components"]} == needs
    with tarfile.open(archive) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
        packed.extractall(tmp_path, filter="data")
    assert {"LICENSE", "README.md", "CHANGELOG.md", "src/inftda/__init__.py"} <= inside
    assert not any("__pycache__" in name or name.endswith(".nbc") for name in [*inside, *names])
    again, _ = build(tmp_path / archive.name.removesuffix(".tar.gz"), tmp_path / "again")
    assert again.read_bytes() == wheel.read_bytes()


@pytest.mark.slow
def test_links_of_the_first_page_work_on_a_package_index(tmp_path, monkeypatch):
    monkeypatch.setenv("INFTDA_REPOSITORY", "https://example.org/inftda/")
    wheel, _ = build(ROOT, tmp_path)
    with zipfile.ZipFile(wheel) as packed:
        (about,) = (name for name in packed.namelist() if name.endswith("/METADATA"))
        told = packed.read(about).decode()
    targets = re.findall(r"\]\(([^)]+)\)", told)
    assert targets
    at = f"https://example.org/inftda/blob/v{inftda.__version__}/"
    assert any(target.startswith(f"{at}docs/") for target in targets)
    assert all(target.startswith(("https://", "#")) for target in targets)
    assert "Project-URL: Source, https://example.org/inftda\n" in told
    assert told.count("https://img.shields.io/pypi/") == 3


RELEASE = """
import inftda

areas = {"region": ["N", "N", "S"], "town": ["01", "02", "03"]}
flows = {"origin": ["01", "02"], "destination": ["02", "03"], "count": [900, 400]}
inftda.release(flows, areas, epsilon=1, delta=1e-6, out="release")
print(inftda.open_release("release").total, inftda.__file__)
"""


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_a_wheelhouse_is_all_that_a_machine_without_a_network_needs(tmp_path):
    """Wheels come from the index or from pip's cache."""
    made = subprocess.run(
        ["make", "--no-print-directory", "-o", f"{sys.prefix}/.run", f"VENV={sys.prefix}",
         f"WHEELHOUSE={tmp_path}/house", "wheelhouse"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode and "No matching distribution" in made.stderr:
        pytest.skip("libraries cannot be had: no wheelhouse was made")
    assert made.returncode == 0, made.stderr
    there = environment_of(tmp_path / "clean")
    asked = shlex.split(made.stdout.partition("Install with: pip ")[2].splitlines()[0])
    there("python", "-m", "pip", "--isolated", *asked)
    assert there("inftda", "--version").strip() == f"inftda {inftda.__version__}"
    total, file = there("python", "-c", RELEASE).split()
    assert total == "1300"
    assert Path(file).is_relative_to(tmp_path / "clean")


@pytest.mark.slow
def test_the_wheel_alone_runs_the_first_example_of_the_readme(tmp_path):
    """In a new environment, whose libraries are those of this one or come from the index."""
    wheel, _ = build(ROOT, tmp_path / "dist")
    there = environment_of(tmp_path / "clean")
    asked = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    try:
        there("python", *asked, "-c", ROOT / "constraints.txt", wheel)
    except AssertionError as problem:
        if "No matching distribution" in str(problem):
            pytest.skip("libraries cannot be had: the wheel was not installed")
        raise
    (example,) = re.findall(r"```python\n(.*?)```", read("README.md"), flags=re.DOTALL)
    there("python", "-c", example)
    assert (tmp_path / "clean/small.html").exists()
    assert "verified (" in there("inftda", "verify", "small")


def test_the_citation_names_this_version():
    assert yaml.safe_load(read("CITATION.cff"))["version"] == inftda.__version__


def test_every_library_has_one_version_for_developers():
    extras = PROJECT["project"]["optional-dependencies"].values()
    needs = [Requirement(need) for need in [*PROJECT["project"]["dependencies"], *chain(*extras)]]
    lines = [line for line in read("constraints.txt").splitlines() if not line.startswith("#")]
    locked = {}
    for line in map(Requirement, lines):
        locked.setdefault(canonicalize_name(line.name), []).append(line.specifier)
    for need in needs:
        name = canonicalize_name(need.name)
        versions = [str(version).removeprefix("==") for version in locked.get(name, [])]
        assert name == "inftda-od" or versions, f"{name} has no version: make lock"
        assert all(map(need.specifier.contains, versions)), f"{need}: make lock"
