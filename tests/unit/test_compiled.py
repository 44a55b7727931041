"""Kernels: compiled once, kept, called by later processes without numba, and by nobody else's code.

What is kept is machine code, so whoever could plant it would run code as whoever releases.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pickle import dumps, loads
from typing import NamedTuple

import numpy as np
import pytest
from numba import config
from numba.core.caching import CacheImpl
from numba.core.cpu import CPUTargetOptions

import inftda
from inftda import compiled
from inftda.compiled import building, store
from inftda.compiled.kernels import CompiledKernel
from inftda.compiled.store import digest

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")

SCALE = 2


class Pair(NamedTuple):
    values: np.ndarray
    factor: float


def added_up(values):
    total = 0
    for value in values:
        total += value
    return total


def scaled(values):
    for i in range(values.size):
        values[i] *= SCALE


def is_positive(value):
    return value > 0


def weighed(pair, flags, grid, start):
    total = start
    for i in range(pair.values.size):
        total += pair.values[i] * pair.factor * flags[i] + grid[0, i]
    return total


def paired(value):
    return value, value


def logarithm(value):
    return np.log(value)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where machine code is kept for one test."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return next(store._folders())


def files(folder):
    return [path for path in folder.iterdir() if not path.name.startswith(".")]


@pytest.mark.parametrize("decorator", [compiled.kernel, compiled.inlined_kernel])
def test_a_kernel_works_where_machine_code_cannot_be_kept(decorator, monkeypatch):
    """As in a folder that is read only, for a user without a home."""
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    monkeypatch.setattr(store, "_folders", lambda: iter([Path("/dev/null/kernels")]))
    assert decorator(added_up)(np.arange(5)) == 10


def test_a_kernel_works_without_numbas_private_option(folder, monkeypatch):
    """It may go with any version of numba, which then refuses to compile with it."""
    assert building.NO_REFERENCE_COUNTS == {"_nrt": False}, "kernels are slower without"
    owner = next(kind for kind in CPUTargetOptions.__mro__ if "_nrt" in vars(kind))
    monkeypatch.delattr(owner, "_nrt")
    with pytest.raises(KeyError, match="_nrt"):
        building.njit(**building.NO_REFERENCE_COUNTS)(added_up)(np.arange(5))
    monkeypatch.setattr(building, "NO_REFERENCE_COUNTS", building._known({"_nrt": False}))
    assert compiled.kernel(added_up)(np.arange(5)) == 10
    assert files(folder)


def test_all_kernels_are_compiled_alike():
    package = Path(inftda.__file__).parent
    users = {path.name for path in package.rglob("*.py") if "njit" in path.read_text("utf-8")}
    assert users == {"building.py"}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (added_up, (np.arange(5),), 10),
        (added_up, (np.arange(10)[::2],), 20),
        (added_up, (np.arange(3, dtype=np.uint8),), 3),
        (added_up, (np.arange(0),), 0),
        (added_up, (np.broadcast_to(np.arange(3), (3,)),), 3),
        (added_up, (np.array([0.5, 1.5]),), 2.0),
        (added_up, ((1, 2, 3),), 6),
        (is_positive, (3,), True),
        (is_positive, (-0.5,), False),
        (is_positive, (np.uint64(2**64 - 1),), True),
        (is_positive, (2**64 - 1,), True),
        (weighed, (Pair(np.arange(3), 0.5), np.array([True, False, True]), np.eye(3), 1), 3.0),
        (weighed, (Pair(np.arange(3), 0.5), np.ones(3, bool), np.eye(3).T[:, ::-1], 0), 2.5),
        (paired, (3,), (3, 3)),
        (logarithm, (1.0,), 0.0),
    ],
)
def test_a_kernel_gives_what_its_function_gives(function, arguments, expected):
    """The second time from what the first has kept, if it could be."""
    assert function(*arguments) == expected
    for _ in range(2):
        found = compiled.kernel(function)(*arguments)
        assert (found, type(found)) == (expected, type(expected))


@pytest.mark.usefixtures("folder")
def test_a_kernel_writes_to_the_arrays_it_is_given():
    values = np.arange(6)
    assert compiled.kernel(scaled)(values[::2]) is None
    assert values.tolist() == [0, 1, 4, 3, 8, 5]


@pytest.mark.usefixtures("folder")
def test_an_array_that_is_read_only_is_not_written_to():
    values = np.arange(3)
    kernel = compiled.kernel(scaled)
    kernel(values)
    values.flags.writeable = False
    with pytest.raises(Exception, match="Cannot modify readonly array"):
        kernel(values)
    assert values.tolist() == [0, 2, 4]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("make", [compiled.kernel, lambda function: function])
def test_a_prepared_call_sees_what_its_arrays_hold_by_then(make):
    """Also of a function that is not compiled, as numba's switch may have it."""
    values = np.arange(3)
    double, add_up = (compiled.prepared(make(function), values) for function in (scaled, added_up))
    values[:] = 5
    assert add_up() == 15
    double()
    double()
    assert add_up() == 60
    del values
    assert add_up() == 60, "the array is held"


def test_a_kernel_is_called_from_many_threads(folder):
    kernel = compiled.kernel(added_up)
    with ThreadPoolExecutor(8) as pool:
        sums = list(pool.map(lambda n: kernel(np.arange(n)), range(200)))
    assert sums == [n * (n - 1) // 2 for n in range(200)]
    assert len(files(folder)) == 1


def test_a_kernel_is_sent_to_other_processes_by_its_name():
    from inftda.optimize.segments import optimize_intopt  # noqa: PLC0415 - any kernel of ours

    assert loads(dumps(optimize_intopt)) is optimize_intopt


@pytest.mark.slow
def test_what_was_kept_is_called_without_numba(tmp_path):
    """Also from where nothing can be written, and by several processes that begin at once."""
    code = (
        "import sys, numpy as np\n"
        "from inftda.tree_order import radix_pass_kernel as kernel\n"
        "keys, counts, ends = np.ones((1, 3), np.uint64), np.arange(3), np.zeros(4096, np.int64)\n"
        "is_moved = kernel(keys, counts, 0, 3, 0, 0, 0, keys.copy(), counts.copy(), 0, ends)\n"
        "print('numba' in sys.modules, is_moved, ends[1])"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def begin():
        command = [sys.executable, "-c", code]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    first = [process.communicate()[0].split() for process in [begin(), begin()]]
    assert {end for *_, end in first} == {"3"}
    (folder,) = tmp_path.iterdir()
    folder.chmod(0o555)
    assert begin().communicate()[0].split() == ["False", "False", "3"]
    assert len(files(folder)) == 1


@pytest.mark.parametrize("what", ["file", "folder"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_what_others_can_write_to_is_not_run(folder, what, mode):
    compiled.kernel(added_up)(np.arange(5))
    (file,) = files(folder)
    assert store.load(file.name) is not None
    path = file if what == "file" else folder
    path.chmod(path.stat().st_mode | mode)
    assert store.load(file.name) is None
    path.chmod(path.stat().st_mode & ~mode)
    assert store.load(file.name) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_belongs_to_somebody_else_is_not_run(folder, what):
    compiled.kernel(added_up)(np.arange(5))
    (file,) = files(folder)
    os.chown(file if what == "file" else folder, 12345, -1)
    assert store.load(file.name) is None
    if what == "folder":
        store.save("another", store.MachineCode("f", None, (), b""))
        assert files(folder) == [file]


@pytest.mark.parametrize("what", ["file", "folder"])
def test_links_are_not_followed(folder, what, tmp_path):
    compiled.kernel(added_up)(np.arange(5))
    (file,) = files(folder)
    path = file if what == "file" else folder
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert store.load(file.name) is None


@pytest.mark.parametrize("length", [0, 40, -1])
def test_a_damaged_file_is_compiled_again(folder, length):
    compiled.kernel(added_up)(np.arange(5))
    (file,) = files(folder)
    whole = file.read_bytes()
    file.write_bytes(whole[:length])
    assert store.load(file.name) is None
    assert compiled.kernel(added_up)(np.arange(5)) == 10
    assert store.load(file.name) is not None


@pytest.mark.usefixtures("folder")
def test_code_that_calls_what_is_not_there_is_not_loaded():
    """The loader would end the process."""
    store.save("key", store.MachineCode("f", "int64", ("memset", "no_such_function"), b""))
    assert store.load("key") is None
    store.save("other", store.MachineCode("f", "int64", ("PyErr_Clear",), b""))
    assert store.load("other") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(store, "version", lambda _: "99"),
        lambda patch: patch.setattr(sys, "version_info", (4, 0)),
        lambda patch: patch.setenv("NUMBA_OPT", "1"),
        lambda patch: patch.setattr("llvmlite.binding.get_host_cpu_name", lambda: "abacus"),
    ],
)
def test_another_version_or_processor_has_code_of_its_own(change, monkeypatch):
    store._machine.cache_clear()
    before = store.key(b"", ())
    change(monkeypatch)
    store._machine.cache_clear()
    assert store.key(b"", ()) != before
    monkeypatch.undo()
    store._machine.cache_clear()
    assert store.key(b"", ()) == before


def _kernels(factor, called):
    """A kernel with a constant, and one that calls another kernel."""
    inner = CompiledKernel(called, {})

    def constant(x):
        return x * factor

    def caller(x):
        return inner(x)

    return [digest(CompiledKernel(function, {})) for function in (constant, caller)]


def test_a_kernel_is_told_from_others_by_all_that_is_compiled(monkeypatch):
    first = _kernels(2, is_positive)
    assert _kernels(2, is_positive) == first
    assert _kernels(3, is_positive)[0] != first[0]
    assert _kernels(2, logarithm)[1] != first[1]
    before = digest(CompiledKernel(scaled, {}))
    monkeypatch.setitem(globals(), "SCALE", 3)
    assert digest(CompiledKernel(scaled, {})) != before
    assert digest(CompiledKernel(added_up, {})) != digest(
        CompiledKernel(added_up, {"forceinline": True})
    )
