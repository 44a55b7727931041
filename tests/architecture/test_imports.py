"""The map of the code, enforced: packages import in one order, and libraries only where they must.

The order stands in pyproject.toml and is checked by import-linter.
"""

import json
import subprocess
import sys
from pathlib import Path

import grimp
from importlinter.cli import lint_imports

import inftda

ROOT = Path(inftda.__file__).parent
#: Libraries that not everybody has; only these modules may import theirs at their top.
AT_THE_TOP = ("inftda.spark", "inftda.app.server", "inftda.__main__")
OPTIONAL = {
    "adbc_driver_manager", "adbc_driver_postgresql", "geopandas", "h3", "matplotlib", "openmatrix",
    "openpyxl", "pandas", "polars", "pyogrio", "pyproj", "pyspark", "shapely", "starlette",
    "uvicorn",
}  # fmt: skip
#: What everybody has installed but `import inftda` must not wait for.
SLOW = {"numba", "duckdb", "dp_accounting", "opendp"}
IMPORT_SECONDS = 0.5


def test_packages_import_in_the_order_that_pyproject_states():
    config = ROOT.parents[1] / "pyproject.toml"
    assert lint_imports(config_filename=str(config), no_cache=True) == 0


def test_public_names_are_imported_from_their_modules():
    """From the package itself they would be imports that nobody sees."""
    graph = grimp.build_graph("inftda", cache_dir=None)
    found = [
        one["line_contents"]
        for module in graph.find_modules_that_directly_import("inftda")
        for one in graph.get_import_details(importer=module, imported="inftda")
    ]
    assert [line for line in found if "__version__" not in line] == []


def test_no_class_name_stands_for_two_things():
    paths = sorted(ROOT.rglob("*.py"))
    names = [
        line.partition("(")[0].rstrip(":\n")
        for path in paths
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("class ")
    ]
    assert sorted(names) == sorted({*names})


def in_a_new_interpreter(*modules):
    """Import modules; processor seconds (a busy machine must fail no test) and what is loaded."""
    code = (
        "import importlib, json, sys, time; start = time.process_time(); "
        "[importlib.import_module(name) for name in sys.argv[1:]]; "
        "print(json.dumps([time.process_time() - start, [*sys.modules]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *modules], capture_output=True, check=True, text=True
    )
    seconds, loaded = json.loads(done.stdout)
    return seconds, {name.partition(".")[0] for name in loaded}


def test_importing_the_package_is_fast_and_brings_no_heavy_library():
    seconds, loaded = min(in_a_new_interpreter("inftda") for _ in range(3))
    assert seconds < IMPORT_SECONDS
    assert loaded & (OPTIONAL | SLOW) == set()


def test_no_module_but_those_for_spark_and_the_app_needs_an_optional_library_to_be_imported():
    paths = (path.relative_to(ROOT.parent).with_suffix("") for path in ROOT.rglob("*.py"))
    names = (".".join(path.parts).removesuffix(".__init__") for path in paths)
    modules = [name for name in names if not name.startswith(AT_THE_TOP)]
    _, loaded = in_a_new_interpreter(*modules)
    assert len(modules) > 50
    assert loaded & OPTIONAL == set()
