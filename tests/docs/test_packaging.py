"""What is uploaded: a wheel and a source archive, built and used without the checkout."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from documents import ROOT, read

import inftda

#: Where the libraries are that the package depends on.
LIBRARIES = Path(np.__file__).parents[1]
PROJECT = tomllib.loads(read("pyproject.toml"))


def run(*command, **options):
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and source archive, by the build library that pyproject.toml names."""
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "venv", folder / "builder")
    python = folder / "builder" / "bin" / "python"
    installed = subprocess.run(
        [python, "-m", "pip", "install", "-q", "hatchling"], capture_output=True, check=False
    )
    if installed.returncode:
        pytest.skip("hatchling cannot be had: no wheel was built")
    run(python, "-m", "hatchling", "build", "-d", folder / "dist", cwd=ROOT)
    return folder / "dist"


@pytest.mark.nightly
def test_the_wheel_runs_the_demo_in_an_environment_of_its_own(built, tmp_path):
    """The libraries are those that are here: only the package itself is installed."""
    (wheel,) = built.glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "clean")
    python = tmp_path / "clean" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--no-deps", wheel)
    (site,) = (tmp_path / "clean").glob("lib/python3.*/site-packages")
    (site / "libraries.pth").write_text(f"{LIBRARIES}\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    where = run(python, "-c", "import inftda; print(inftda.__file__)", cwd=tmp_path, env=env)
    assert Path(where.strip()).is_relative_to(site)
    program = tmp_path / "clean" / "bin" / "inftda"
    assert run(program, "--version", env=env).strip() == f"inftda {inftda.__version__}"
    run(program, "demo", "--out", tmp_path / "demo", cwd=tmp_path, env=env)
    assert any((tmp_path / "demo").rglob("manifest.json"))


@pytest.mark.slow
def test_the_archives_hold_what_they_should(built):
    (wheel,), (archive,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        told = packed.read(metadata).decode()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"inftda"}
    assert {"inftda/py.typed", "inftda/pages/templates/report.html"} <= {*names}
    assert "inftda/pages/assets/style.css" in names
    for line in (f"Version: {inftda.__version__}", "License-Expression: Apache-2.0", "# inftda"):
        assert line in told
    with tarfile.open(archive) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "src/inftda/__init__.py"} <= inside
    assert not any("__pycache__" in name or name.endswith(".nbc") for name in [*inside, *names])


def test_a_container_copies_nothing_but_the_program_and_runs_without_root():
    lines = read("Dockerfile").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["10001"]
    assert lines.index("USER 10001") < lines.index('ENTRYPOINT ["inftda"]')
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert all(word.startswith("--from") or (ROOT / word).exists() or word == "/opt/inftda"
               for word in copied)  # fmt: skip
    assert read(".dockerignore").splitlines()[0] == "*"


def test_the_version_stands_in_one_place_and_the_changelog_begins_with_it():
    assert version("inftda") == inftda.__version__
    assert "version" not in PROJECT["project"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/inftda/__init__.py"
    changes = re.findall(r"^###? (\S+)", read("CHANGELOG.md"), flags=re.MULTILINE)
    assert changes[:2] == [inftda.__version__, "Privacy"]


def test_development_tools_are_pinned():
    tools = PROJECT["project"]["optional-dependencies"]["dev"]
    assert [tool for tool in tools if "==" not in tool and not tool.startswith("inftda[")] == []
