"""One call: from a release and what the office knows of it to a folder for its reviewers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from inftda.dossiers.catalogue import catalogue_entry
from inftda.dossiers.document import as_html, as_markdown
from inftda.dossiers.office import check_office, read_office
from inftda.dossiers.registry import as_yaml, entry_of
from inftda.dossiers.summary import Findings, summary_blocks
from inftda.errors import InftdaError, ReleaseError
from inftda.files import check_folder, check_unpublished, is_plain, whole_folder
from inftda.ledger.budget import Dataset
from inftda.ledger.ledger import Ledger
from inftda.publication.release import Release, open_release
from inftda.publication.verify import verify
from inftda.reports.accuracy import stated_errors
from inftda.selftest import self_test

if TYPE_CHECKING:
    from inftda.bars import Progress

REGISTRY, MARKDOWN, HTML, CATALOGUE = "registry.yaml", "summary.md", "summary.html", "dcat.jsonld"
FILES: Final = (REGISTRY, MARKDOWN, HTML, CATALOGUE)


def dossier(  # noqa: PLR0913 - one keyword for each thing an office may decide
    release: str | Path,
    *,
    about: str | Path | Mapping[str, Any],
    out: str | Path,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    selftest: bool = True,
    runs: int = 20,
    seconds: float = 20.0,
    force: bool = False,
    progress: "Progress | None" = None,
) -> Path:
    """Write the dossier of a release.

    Args:
        release: folder of a release.
        about: what only the office knows: a TOML file, or its keys and values.
        out: folder to write, not in a release.
        ledger: the ledger that the release was charged to, for what was spent over time.
        dataset: its data set there.
        selftest: whether to check this build as well, which takes seconds.
        runs: simulations for typical errors, at most.
        seconds: time for them.
        force: replace a dossier that is there.
        progress: called with what is done, and how much of the work or time of 100.

    Returns:
        The folder: `registry.yaml`, `summary.md`, `summary.html` and `dcat.jsonld`.

    Raises:
        InftdaError: something is not stated or not allowed, the ledger has no such data set, or
            `out` must not be written.

    Privacy:
        Post-processing of the release: no cost.
    """
    folder = Path(out)
    check_unpublished(folder)
    check_folder(folder, force=force, check=_check_dossier)
    office = check_office(about) if isinstance(about, Mapping) else read_office(about)
    opened = open_release(release)
    account = _account(ledger, dataset)
    if account is not None:
        _check_unit(opened, account)
    entry = entry_of(opened, office, account)
    findings = Findings(
        *_verified(release),
        tuple(self_test()) if selftest else None,
        stated_errors(
            opened,
            runs=runs,
            seconds=seconds,
            depths=[level.depths for level in opened.tree.levels],
            progress=progress,
        ),
    )
    blocks = summary_blocks(opened, office, account, findings)
    catalogue = json.dumps(catalogue_entry(opened, office), indent=2, ensure_ascii=False)
    texts = {
        REGISTRY: as_yaml(entry),
        MARKDOWN: as_markdown(office["name"], blocks),
        HTML: as_html(office["name"], blocks),
        CATALOGUE: f"{catalogue}\n",
    }
    with whole_folder(folder, force=force, check=_check_dossier) as partial:
        for name, text in texts.items():
            (partial / name).write_text(text, encoding="utf-8")
    return folder


def _check_dossier(folder: Path, name: Path) -> None:
    """Complain unless a folder has the files of a dossier and nothing else."""
    for path in sorted(folder.iterdir()):
        if path.name not in FILES or not is_plain(path):
            raise ReleaseError(
                f"{str(name)!r} is not replaced: {path.name!r} in it is not part of a dossier; "
                "choose another folder"
            )


def _account(ledger: str | Path | None, dataset: str | None) -> Dataset | None:
    if (ledger is None) != (dataset is None):
        raise InftdaError("a ledger and its data set go together; give --ledger and --dataset")
    return None if ledger is None or dataset is None else Ledger(ledger).dataset(dataset)


def _check_unit(release: Release, account: Dataset) -> None:
    """A ledger of another unit of privacy says nothing about this release."""
    if account.unit.describe() != release.manifest.plan.unit.describe():
        raise InftdaError(
            f"the data set {account.name!r} of the ledger protects another unit of privacy than "
            "this release; name the one that it was charged to"
        )


def _verified(release: str | Path) -> tuple[tuple[str, ...], str]:
    """What `verify` finds right, and what it finds wrong."""
    try:
        return tuple(verify(release)), ""
    except ReleaseError as problem:
        return (), str(problem)
