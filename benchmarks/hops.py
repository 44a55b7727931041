"""How far a reader has to walk: functions and modules that a tiny release passes through.

python benchmarks/hops.py

A hop is one function calling another, counted once however often it happens. Kernels are not seen.
"""

import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import inftda

PACKAGE = Path(inftda.__file__).parent


def place(frame):
    """Module and name of the function that a frame, or what called it, is in; None outside."""
    while frame is not None:
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_qualname
        if path.is_relative_to(PACKAGE) and not frame.f_code.co_name.startswith("<"):
            return str(path.relative_to(PACKAGE)), name
        frame = frame.f_back
    return None


def release(out):
    towns = {"region": ["N", "N", "S"], "town": ["1", "2", "3"]}
    flows = {"origin": ["1", "2", "3"], "destination": ["2", "3", "3"], "count": [50, 40, 30]}
    inftda.release(
        pa.table(flows), pa.table(towns), epsilon=1, delta=1e-8, out=out, threads=1
    )  # fmt: skip


def main():
    hops, calls = set(), 0

    def note(frame, event, _):
        nonlocal calls
        if event == "call" and (here := place(frame)) and here != (there := place(frame.f_back)):
            calls += 1
            hops.add((there, here))

    with tempfile.TemporaryDirectory() as folder:
        release(Path(folder) / "warm")
        sys.setprofile(note)
        release(Path(folder) / "out")
        sys.setprofile(None)
    functions = {here for _, here in hops}
    across = {(there, here) for there, here in hops if there and there[0] != here[0]}
    modules = {module for module, _ in functions}
    print(f"{calls} calls, {len(hops)} hops, {len(across)} of them into another module")
    print(f"{len(functions)} functions in {len(modules)} modules")


if __name__ == "__main__":
    main()
