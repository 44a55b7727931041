"""Golden files: which kinds there are, how they are opened, and what they answer."""

import hashlib
import shutil
from pathlib import Path

import inftda
from inftda.privacy.ledger import Ledger
from matrix.kinds import KINDS as ALL
from matrix.kinds import Made
from matrix.test_matrix import VERBS as EVERY_VERB

KINDS = (
    "pairs", "three-axes", "one-axis", "delta-0", "add-remove", "persons", "totals-only", "paper",
    "no-cross-tables", "series", "signed", "spark",
)  # fmt: skip
#: Verbs that need nothing but what is published.
VERBS = {
    name: line
    for name, line in EVERY_VERB.items()
    if line is not None and "table.csv" not in line
}  # fmt: skip


class Golden(Made):
    """Golden files of one kind, opened in a copy; see `Made`, whose verbs it runs."""

    def __init__(self, name: str, files: Path, folder: Path):
        self.name, self.folder, self.kind = name, folder, ALL[name]
        shutil.copytree(files, folder)

    @property
    def earlier(self) -> str:
        """The first edition of a series."""
        return f"release/{self.kind.editions[0]}"


def digests(folder):
    """SHA-256 of every golden file below a folder, but for their own list."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "digests.json"
    }


def recorded(name, files, folder):
    """Numbers that golden files of a kind answer, in every version; `folder` is a new place.

    Intervals are not among them: a later version may know narrower ones.
    """
    if name == "ledger":
        folder.mkdir()
        copy = folder / "budget.ledger"
        shutil.copyfile(files / "budget.ledger", copy)
        return [dataset.to_dict() for dataset in Ledger(copy).datasets()]
    golden = Golden(name, files, folder)
    release = inftda.open_release(folder / golden.release)
    axes = [axis.name for axis in release.tree.axes]
    coarse = {axis.name: axis.hierarchy.level_names[0] for axis in release.tree.axes}
    asked = {
        "coarse": release.flows(level=coarse),
        "totals": release.flows(level=coarse | dict.fromkeys(axes[1:], "all")),
        "zones": release.flows(zones=folder / "zones.csv"),
    }
    answers = {what: table.to_pylist() for what, table in asked.items()}
    answers["finest"] = _digest(release.flows())
    if release.measured is not None:
        answers["fit"] = [
            {key: round(value, 6) if key == "rms_z" else value for key, value in row.items()}
            for row in release.fit().to_pylist()
        ]
    if golden.kind.is_series:
        answers["series"] = inftda.open_series(folder / "release").flows(level=coarse).to_pylist()
    if (folder / "estimate").exists():
        answers["estimate"] = _digest(inftda.open_estimate(folder / "estimate").flows())
    return answers


def _digest(table):
    return f"{len(table)} rows, {hashlib.sha256(repr(table.to_pylist()).encode()).hexdigest()[:16]}"
