"""Folders of releases and estimates that somebody edits: manifests as inftda would write them."""

import json

from inftda.publication.manifest import digest


def restate(folder, change=None, **facts):
    """Change the manifest of a folder: by a function, by facts, or both."""
    path = folder / "manifest.json"
    stated = json.loads(path.read_text(encoding="utf-8"))
    if change is not None:
        change(stated)
    path.write_text(as_written(stated | facts), encoding="utf-8")


def as_written(stated):
    """The text of a manifest, so that nothing but the edit can be wrong."""
    return json.dumps(stated, indent=2) + "\n"


def seal(folder, **facts):
    """Make the manifest state the digests of what is in the folder now, and other facts."""
    present = sorted(path.name for path in folder.iterdir() if path.name != "manifest.json")
    restate(folder, files={name: digest(folder / name) for name in present}, **facts)
