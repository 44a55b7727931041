"""The map of the code, enforced: inner modules never import outer ones."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import inftda

PACKAGE = "inftda"
ROOT = Path(inftda.__file__).parent

#: From inner to outer: a module imports its own layer and the ones before it, no other.
LAYERS = (
    "errors",
    "numbers",
    "options",
    "screen",
    "files",
    "stores",
    "kernels",
    "threads",
    "tables",
    "places",
    "hierarchy",
    "areas",
    "tree",
    "groupings",
    "impossible",
    "noise",
    "privacy",
    "ledger",
    "truth",
    "reading",
    "mechanism",
    "inference",
    "selftest",
    "publication",
    "spark",
    "publish",
    "estimates",
    "editions",
    "evaluation",
    "pages",
    "exports",
    "dossiers",
    "previews",
    "disclosure",
    "demo",
    "cli",
    "__main__",
)

#: (layer, what it must not import although it comes before, why)
FORBIDDEN = (("publication", "truth", "a release holds no truth"),)

#: Optional libraries (and all of adbc_*), and the modules or packages that may import them at
#: their top.
HEAVY = {
    "numba": {"kernels"},  # not optional, but help and queries do without it
    "pyspark": {"spark"},
    "matplotlib": set(),
    "openpyxl": set(),
    "openmatrix": set(),
    "shapely": set(),
    "pyogrio": set(),
    "pyproj": set(),
    "h3": set(),
    "geopandas": set(),
    "pandas": set(),
    "polars": set(),
}
#: What everybody has installed but `import inftda` must not wait for.
SLOW = {"duckdb", "dp_accounting", "opendp"}

IMPORT_SECONDS = 0.5


def module_name(path: Path) -> str:
    """Dotted name inside the package; the package itself is the empty string."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix("__init__").strip(".")


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@pytest.fixture(scope="module")
def parsed():
    """The syntax tree of every module."""
    return {module: ast.parse(path.read_text()) for module, path in MODULES.items()}


def layer_of(module: str) -> str:
    return module.partition(".")[0]


def imported(tree: ast.AST, module: str, *, is_package: bool) -> set[str]:
    """Full names of all that a module imports anywhere in it, also for type checking only."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = [PACKAGE, *module.split(".")] if module else [PACKAGE]
                keep = len(parts) - node.level + is_package
                base = ".".join([*parts[:keep], *([base] if base else [])])
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def own_layers(names: set[str]) -> set[str]:
    """Layers of this package among imported names; the package itself is none."""
    parts = [[*name.split("."), PACKAGE] for name in names]
    return {second for first, second, *_ in parts if first == PACKAGE}


def at_import_time(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports that run when the module is imported: not in functions, not for types only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for alternative in child.orelse:
                yield from at_import_time(ast.Module([alternative], []))
        else:
            yield from at_import_time(child)


def libraries_at_import_time(tree: ast.AST) -> set[str]:
    found = set()
    for node in at_import_time(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def breaches(module: str, names: set[str]) -> list[str]:
    """What is wrong with the imports of one module."""
    layer = layer_of(module)
    rank = LAYERS.index(layer)
    wrong = []
    for other in sorted(own_layers(names) - {layer, "__version__"}):
        if other not in LAYERS:
            wrong.append(f"{module} imports {other}, which is no layer: import the module itself")
        elif LAYERS.index(other) > rank:
            wrong.append(f"{module} imports {other}, which is further out")
        wrong += [
            f"{module} imports {other}, but {why}"
            for where, what, why in FORBIDDEN
            if (where, what) == (layer, other)
        ]
    return wrong


def is_heavy(library: str) -> bool:
    return library in HEAVY or library.startswith("adbc_")


def is_home(module: str, library: str) -> bool:
    return any(module == home or module.startswith(f"{home}.") for home in HEAVY.get(library, ()))


def is_allowed(library: str, module: str) -> bool:
    return not is_heavy(library) or is_home(module, library)


def test_every_module_has_its_place_in_the_map():
    assert {layer_of(module) for module in MODULES if module} <= set(LAYERS)


def test_every_module_that_is_named_here_is_there():
    assert set(LAYERS) <= set(MODULES)
    assert {home for homes in HEAVY.values() for home in homes} <= set(MODULES)


# All modules in one test each: with hundreds of them, a test for each takes longer than looking.
def test_imports_go_from_outer_to_inner_modules_only(parsed):
    found = (
        breaches(module, imported(tree, module, is_package=MODULES[module].stem == "__init__"))
        for module, tree in parsed.items()
        if module
    )
    assert [breach for of_module in found for breach in of_module] == []


def test_optional_libraries_are_imported_late_or_in_their_own_module(parsed):
    found = ((module, libraries_at_import_time(tree)) for module, tree in parsed.items())
    assert [
        f"{module} imports {name} at its top"
        for module, names in found
        for name in sorted(names)
        if not is_allowed(name, module)
    ] == []


def test_no_class_name_stands_for_two_things(parsed):
    found: dict[str, list[str]] = {}
    for module, tree in parsed.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(module)
    assert {name: homes for name, homes in found.items() if len(homes) > 1} == {}


def test_the_product_does_not_know_the_laboratory():
    assert [name for name, path in MODULES.items() if "inftda_lab" in path.read_text()] == []


@pytest.fixture(scope="module")
def fresh_imports():
    """Processor seconds (a busy machine must not fail the test) and loaded modules of
    `import inftda` in three new interpreters.
    """
    code = (
        "import json, sys, time; start = time.process_time(); import inftda; "
        "print(json.dumps([time.process_time() - start, sorted(sys.modules)]))"
    )
    outputs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
        for _ in range(3)
    ]
    return [json.loads(output.stdout) for output in outputs]


def test_importing_the_package_takes_under_half_a_second(fresh_imports):
    assert min(seconds for seconds, _ in fresh_imports) < IMPORT_SECONDS


def test_importing_the_package_brings_no_heavy_library(fresh_imports):
    loaded = {name.partition(".")[0] for name in fresh_imports[0][1]}
    assert "inftda" in loaded
    assert {name for name in loaded if is_heavy(name) or name in SLOW} == set()


# The rules themselves are tested: each must see the breach it is there for.


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tree", "import inftda.truth"),
        ("tree", "from inftda.truth import Truth"),
        ("tree", "from inftda import truth"),
        ("tree", "from . import truth"),
        ("tree", "from .truth import Truth"),
        ("noise.table", "from ..privacy.plan import Plan"),
        ("noise.table", "from inftda.mechanism import step"),
        ("tree", "def f():\n    from inftda.truth import Truth"),
        ("tree", "if TYPE_CHECKING:\n    from inftda.truth import Truth"),
        ("publication.release", "from inftda.truth import Truth"),
        ("cli.main", "from inftda import Hierarchy"),
        ("cli.main", "import inftda"),
    ],
)
def test_an_import_of_an_outer_module_is_seen(module, source):
    assert breaches(module, imported(ast.parse(source), module, is_package=False))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("truth", "from inftda.tree import Tree"),
        ("noise.table", "from .bits import Bits\nfrom inftda.noise import ladder"),
        ("noise.table", "from .. import errors"),
        ("cli.main", "import json\nfrom inftda import __version__, publish"),
    ],
)
def test_an_import_of_an_inner_module_is_fine(module, source):
    assert breaches(module, imported(ast.parse(source), module, is_package=False)) == []


@pytest.mark.parametrize(
    ("source", "is_at_import_time"),
    [
        ("import pandas as pd", True),
        ("from pandas.api import types", True),
        ("try:\n    import pandas\nexcept ImportError:\n    pass", True),
        ("class A:\n    import pandas", True),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import pandas", True),
        ("def f():\n    import pandas", False),
        ("if TYPE_CHECKING:\n    import pandas", False),
        ("if typing.TYPE_CHECKING:\n    import pandas", False),
    ],
)
def test_only_imports_that_run_on_import_count_as_such(source, is_at_import_time):
    assert ("pandas" in libraries_at_import_time(ast.parse(source))) is is_at_import_time
