"""A process that has loaded everything and forks a release again and again, to be killed.

Reads one JSON object a line: `arguments` of the command line, and when to kill the child:
`after` so many seconds, `at` its n-th event that concerns files, or `on` the first event with
a given name and text (not at all without).
Answers with one line: the exit code (minus the signal), the seconds, and the events.

Starting Python takes far longer than a release, so without this nearly every random moment
would hit the start.
"""

import io
import json
import os
import signal
import sys
import tempfile
import time
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np

#: Audit events (PEP 578) that concern files, locks and databases; here, not in libraries.
OF_FILES = ("os.", "open", "shutil.", "tempfile.", "sqlite3.", "fcntl.")
OF_ANYTHING = ("sqlite3.", "fcntl.")
RELATIVE = ("('out", "('flows", "('areas", "('ledger")


def main() -> None:
    load_everything()
    say({"ready": True})
    for line in sys.stdin:
        say(run_once(json.loads(line)))


def load_everything() -> None:
    """Import all that a release needs and compile its kernels, without starting a thread."""
    import duckdb  # noqa: F401, PLC0415
    import pyarrow.csv  # noqa: F401, PLC0415

    import inftda.privacy.ledger  # noqa: F401, PLC0415
    from inftda.cli.main import run  # noqa: PLC0415
    from inftda.mechanism.topdown import release_counts  # noqa: PLC0415
    from inftda.noise.bits import SecureSource  # noqa: PLC0415
    from inftda.privacy.noise_plan import make_plan  # noqa: PLC0415
    from inftda.privacy.unit import Unit  # noqa: PLC0415
    from inftda.reading.truth import Truth  # noqa: PLC0415
    from inftda.tree import Tree  # noqa: PLC0415
    from inftda.tree.hierarchy import Hierarchy  # noqa: PLC0415

    with redirect_stderr(io.StringIO()):  # there are no such areas, but options are known now
        run(["release", "none.csv", "--areas", "none.csv", "--rho", "1", "--out", "none"])
    tempfile.gettempdir()  # Python tries whether it can write there, once
    tree = Tree.destination_first(Hierarchy.read({"a": ["x", "x", "y"], "b": ["1", "2", "3"]}))
    areas = [np.array([0, 2], np.int32)] * 2
    counts = Truth.from_leaves(tree, areas, np.array([5, 6], np.int64))
    plan = make_plan(tree, Unit(), epsilon=1, delta=1e-8, method="paper")
    release_counts(counts, plan.account(), SecureSource(), threads=1)


def run_once(order: dict) -> dict:
    reading, writing = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_the_release(order, writing)
    os.close(writing)
    if "after" in order:
        time.sleep(order["after"])
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading) as pipe:
        events = pipe.read()
    _, status = os.waitpid(child, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "seconds": time.monotonic() - start,
        "events": int(events or -1),
    }


def _be_the_release(order: dict, writing: int) -> None:
    from inftda.cli.main import run  # noqa: PLC0415

    seen = 0

    here = str(Path.cwd())
    name_there, text_there = order.get("on", ("", ""))

    def count(name: str, about: tuple[object, ...]) -> None:
        nonlocal seen
        if not name.startswith(OF_FILES):
            return
        text = str(about)
        if here in text or name.startswith(OF_ANYTHING) or text.startswith(RELATIVE):
            seen += 1
            if seen == order.get("at") or (name == name_there and text_there in text):
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    code = run(order["arguments"])
    os.write(writing, str(seen).encode())
    os._exit(code)


def say(answer: dict) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
