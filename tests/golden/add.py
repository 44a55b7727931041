"""Write the golden files of this version: `python tests/golden/add.py`.

Run once for each minor version, just before it is published; files of earlier versions stay as they
are. The folder of the version must not exist: `--again` removes it first, which is right only while
the version is not published. Answers of every reading verb are recorded beside the files.
"""

import argparse
import json
import shutil
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import inftda  # noqa: E402
from golden.answers import KINDS, digests, recorded  # noqa: E402 - found by the line above
from inftda.cli.main import run  # noqa: E402
from matrix.kinds import Made  # noqa: E402

#: More than any golden file may have, all files of a kind together.
MOST_BYTES = 100_000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="remove the folder of the version")
    parser.add_argument("--version", default=inftda.__version__, help="name of the folder")
    given = parser.parse_args()
    out = HERE / ".".join(given.version.split(".")[:2])
    if out.exists() and given.again:
        shutil.rmtree(out)
    out.mkdir()
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            made = Made(kind, Path(folder))
            keep(made, out / kind)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        make_ledger()
        (out / "ledger").mkdir()
        shutil.copyfile("budget.ledger", out / "ledger" / "budget.ledger")
    with tempfile.TemporaryDirectory() as folder:
        answers = {
            kind: recorded(kind, out / kind, Path(folder) / kind) for kind in [*KINDS, "ledger"]
        }
    (out / "answers.json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
    (out / "digests.json").write_text(json.dumps(digests(out), indent=1) + "\n", encoding="utf-8")
    for kind in KINDS:
        size = sum(path.stat().st_size for path in (out / kind).rglob("*") if path.is_file())
        assert size < MOST_BYTES, f"{kind} has {size:,} bytes"
        sys.stdout.write(f"{kind}: {size:,} bytes\n")


def keep(made, out):
    """What readers get of a kind: the release or series, an estimate, the key, zones."""
    shutil.copytree(made.folder / "release", out / "release")
    shutil.copyfile(made.folder / "zones.csv", out / "zones.csv")
    if made.name == "signed":
        shutil.copyfile(made.folder / "key.public.pem", out / "key.public.pem")
    if made.name == "pairs":
        made.done("estimate release --out estimate --quiet")
        shutil.copytree(made.folder / "estimate", out / "estimate")


def make_ledger():
    """A ledger with charges in two periods."""
    lines = (
        "ledger create budget.ledger census --rho 1 --period-rho 0.2",
        "ledger charge budget.ledger census --rho 0.1 --period 2024 --note tables",
        "ledger charge budget.ledger census --rho 0.1 --period 2024 --note maps",
        "ledger charge budget.ledger census --rho 0.15 --period 2025 --note tables",
    )
    for line in lines:
        assert run(line.split()) == 0, line


if __name__ == "__main__":
    main()
