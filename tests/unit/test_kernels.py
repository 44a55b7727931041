"""Kernels: compiled once, kept only where nobody else can plant code."""

import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numba import config
from numba.core.dispatcher import Dispatcher

import inftda
from inftda.util import kernels

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")


def added_up(values):
    total = 0
    for value in values:
        total += value
    return total


class Planted:
    """Unpickled by numba, it writes a file: what an attacker would have run."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder that numba is told to keep machine code in; nothing is kept elsewhere."""
    folder = tmp_path / "shared" / "cache"
    folder.mkdir(parents=True)
    monkeypatch.setattr(config, "CACHE_DIR", str(folder))
    monkeypatch.setattr(kernels, "_PACKAGE", Path("/dev/null"))
    monkeypatch.setenv("HOME", "/dev/null")
    kernels.cache_folder.cache_clear()
    yield folder
    kernels.cache_folder.cache_clear()


@pytest.fixture
def planted(folder, tmp_path):
    """A directory that appears as soon as code from the cache is run."""
    assert kernels.kernel(added_up)(np.arange(5)) == 10
    (index,) = folder.rglob("*.nbi")
    index.write_bytes(pickle.dumps(Planted(tmp_path / "was run")))
    kernels.cache_folder.cache_clear()
    return tmp_path / "was run"


def at(folder, where):
    return {"around": folder.parent, "given": folder, "inside": next(folder.iterdir())}[where]


def test_code_is_kept_in_a_folder_of_the_user(planted):
    """So the following tests can fail."""
    with pytest.raises(Exception, match=r".*"):
        kernels.kernel(added_up)(np.arange(5))
    assert planted.exists()


@pytest.mark.parametrize("where", ["around", "given", "inside"])
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_code_that_others_could_have_planted_is_not_run(folder, planted, where, mode):
    at(folder, where).chmod(mode)
    assert kernels.kernel(added_up)(np.arange(5)) == 10
    assert not planted.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
@pytest.mark.parametrize("where", ["around", "given", "inside"])
def test_code_in_a_folder_of_somebody_else_is_not_run(folder, planted, where):
    os.chown(at(folder, where), 12345, -1)
    assert kernels.kernel(added_up)(np.arange(5)) == 10
    assert not planted.exists()


def test_others_may_write_further_up_if_the_sticky_bit_is_set(folder):
    folder.parent.chmod(0o1777)
    assert kernels.cache_folder() is not None
    folder.chmod(0o1777)
    (kept,) = folder.iterdir()
    kept.chmod(0o1777)
    kernels.cache_folder.cache_clear()
    assert kernels.cache_folder() is None


def test_a_kernel_works_where_nothing_can_be_kept(folder):
    folder.rmdir()
    folder.touch()
    assert kernels.cache_folder() is None
    inlined = kernels.inlined_kernel(added_up)

    def calling(numbers):
        return inlined(numbers) + 1

    assert kernels.kernel(calling)(np.arange(5)) == 11


@pytest.mark.usefixtures("folder")
def test_a_changed_constant_of_another_file_is_compiled_anew(tmp_path, monkeypatch):
    """Numba itself sees changes only of the file that a kernel is in."""
    package = tmp_path / "counting"
    package.mkdir()
    (package / "constants.py").write_text("STEP = 1\n")
    (package / "kernels.py").write_text(
        "from counting.constants import STEP\n"
        "from inftda.util.kernels import kernel\n"
        "@kernel\n"
        "def stepped(value):\n"
        "    return value + STEP\n"
    )
    monkeypatch.setattr(kernels, "_PACKAGE", package)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)

    def stepped():
        for name in [name for name in sys.modules if name.startswith("counting")]:
            monkeypatch.delitem(sys.modules, name)
        kernels.cache_folder.cache_clear()
        made = import_module("counting.kernels").stepped
        return made(10), sum(made.stats.cache_hits.values())

    assert stepped() == (11, 0)
    assert stepped() == (11, 1), "kept"
    (package / "constants.py").write_text("STEP = 2\n")
    assert stepped() == (12, 0)
    assert stepped() == (12, 1)


def test_all_kernels_are_compiled_alike():
    package = Path(inftda.__file__).parent
    users = {path.name for path in package.rglob("*.py") if "njit" in path.read_text("utf-8")}
    assert users == {"kernels.py"}


@pytest.mark.usefixtures("folder")
def test_compilation_is_told_once_and_only_if_something_is_compiled():
    said = []
    with kernels.when_compiling(said.append):
        kernels.kernel(added_up)(np.arange(5))
        kernels.kernel(added_up)(np.arange(5.0))
    assert said == ["Compiling, once on this machine: up to half a minute ..."]
    with kernels.when_compiling(said.append):
        kernels.kernel(added_up)(np.arange(5))  # from where it was kept
    assert len(said) == 1


def test_compilation_that_nothing_can_keep_is_not_said_to_happen_once(monkeypatch):
    said = []
    monkeypatch.setattr(kernels, "cache_folder", lambda: None)
    with kernels.when_compiling(said.append):
        kernels.kernel(added_up)(np.arange(5))
    assert said == ["Compiling, as no folder can keep the result: up to half a minute ..."]


def test_kernels_take_constants_only_from_files_that_name_the_cache():
    package = Path(inftda.__file__).parent
    watched = kernels.sources()
    seen = 0
    for path in watched:
        if b"inftda.util.kernels" not in path.read_bytes():
            continue
        names = (package.name, *path.relative_to(package).with_suffix("").parts)
        module = import_module(".".join(names))
        for kernel in vars(module).values():
            if not isinstance(kernel, Dispatcher) or kernel.py_func.__module__ != module.__name__:
                continue
            seen += 1
            for name in kernel.py_func.__code__.co_names:
                if not isinstance(module.__dict__.get(name), int | float | tuple | np.integer):
                    continue
                defined = re.compile(rf"^(.*, )?{name}\b.*=", re.MULTILINE)
                assert any(defined.search(path.read_text()) for path in watched), (
                    f"{module.__name__}.{name} comes from a file that does not name the cache"
                )
    assert seen > 20


@pytest.mark.slow
def test_a_first_release_compiles_each_kernel_once(tmp_path):
    """Again for another type, or for a constant, would take seconds on a new machine."""
    script = (
        "import inftda\n"
        "from numba.core.event import install_recorder\n"
        "towns = {'region': ['N', 'N', 'S'], 'town': ['1', '2', '3']}\n"
        "flows = {'origin': ['1', '2', '3'], 'destination': ['2', '3', '3'], 'count': [5, 4, 3]}\n"
        "with install_recorder('numba:compile') as compiled:\n"
        "    inftda.release(flows, towns, epsilon=1, delta=1e-8)\n"
        "for _, event in compiled.buffer:\n"
        "    function = event.data['dispatcher'].py_func\n"
        "    if event.is_start and function.__module__.startswith('inftda.'):\n"
        "        print(function.__qualname__)\n"
    )
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    given = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", script]
    made = subprocess.run(command, check=False, env=given, capture_output=True, text=True)
    names = made.stdout.split()
    assert len(names) > 20, made.stderr
    assert [name for name, times in Counter(names).items() if times > 1] == []
