"""Kernels: compiled once, kept only where nobody else can plant code."""

import ast
import os
import pickle
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numba import config

import inftda
from inftda import kernels

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
    assert kernels.inlined_kernel(added_up)(np.arange(5)) == 10


def test_all_that_is_compiled_is_in_the_name_of_the_folder():
    """Numba itself would not see that a constant of another module has changed."""
    package = Path(inftda.__file__).parent
    texts = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts): path.read_bytes()
        for path in package.rglob("*.py")
    }
    for name, text in texts.items():
        if b"from inftda.kernels import" not in text:
            continue
        used = {
            used
            for value in vars(import_module(name)).values()
            if hasattr(value, "py_func")
            for used in value.py_func.__code__.co_names
        }
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and used & {alias.name for alias in node.names}:
                assert kernels._MARK in texts.get(node.module, kernels._MARK), (name, node.module)


def test_all_kernels_are_compiled_alike():
    package = Path(inftda.__file__).parent
    users = {path.name for path in package.rglob("*.py") if "njit" in path.read_text("utf-8")}
    assert users == {"kernels.py"}
