"""The folder listing shows the architecture: names, homes of public functions, and sizes."""

from collections import Counter
from pathlib import Path

import pytest

import inftda

ROOT = Path(inftda.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
#: Public names whose module is named otherwise, and why.
ELSEWHERE = {
    "release": "pipeline",  # the job from top to bottom; a module `release` would hide the function
    "grid_areas": "grids",
    "h3_areas": "grids",  # with the other regular division
    "make_plan": "noise_plan",  # `plan` is the function that states guarantee and errors
    "read_areas": "reader",
    "build_tree": "build",
}
#: Lines of Python that a package may have. docs/decisions.md says when a number may be raised.
BUDGETS = {
    "": 1700,
    "app": 1460,
    "areas": 1530,
    "cli": 1370,
    "confidential": 1250,
    "documents": 270,
    "estimates": 1870,
    "exports": 870,
    "mechanism": 1900,
    "noise": 1100,
    "pages": 1580,
    "planning": 1870,
    "privacy": 3300,
    "publication": 5160,
    "reading": 3210,
    "series": 840,
    "spark": 1100,
    "tree": 1650,
    "util": 1940,
}


def test_no_file_name_is_used_twice():
    names = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize(
    "name", [name for name in inftda.__all__ if name.islower() and name != "__version__"]
)
def test_a_public_function_lives_in_a_module_of_its_name(name):
    module = getattr(inftda, name).__module__.rpartition(".")[2]
    assert module == ELSEWHERE.get(name, name.removeprefix("open_"))


def test_no_module_at_the_top_hides_a_public_function():
    tops = {path.stem for path in ROOT.glob("*.py")} | {path.parent.name for path in MODULES}
    assert tops & {*inftda.__all__} == set()


def test_packages_keep_to_their_size():
    lines = Counter()
    for path in MODULES:
        package = path.relative_to(ROOT).parts[0] if path.parent != ROOT else ""
        lines[package] += len(path.read_text(encoding="utf-8").splitlines())
    assert {*lines} == {*BUDGETS}
    assert {name: n for name, n in lines.items() if n > BUDGETS[name]} == {}
