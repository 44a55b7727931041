"""Add to a build what pyproject.toml cannot state.

- A list of materials (CycloneDX) in the wheel, where PEP 770 expects it. The wheel holds nobody
  else's code, so the list has the package and the libraries that it needs; their versions are known
  only where it is installed.
- The README as the description of the package, badges, and links to the project. A package index
  shows the README without the files beside it. If `INFTDA_REPOSITORY` has the address of the
  repository, links to files of the checkout become links to the tagged version there.
"""

import json
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A link or picture of Markdown whose target is a file of the checkout.
_RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#)([^)]+)\)")
#: Badges of the package index: text without pictures, and kind.
_BADGES = {"version": "v", "Python": "pyversions", "licence": "l"}


class Materials(BuildHookInterface):
    """Makes the list when a wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's shape
        """Write the list, and tell hatchling where it is."""
        core = self.metadata.core
        package = _library(core.name) | {
            "version": self.metadata.version,
            "purl": f"pkg:pypi/{core.name}@{self.metadata.version}",
            "licenses": [{"expression": core.license_expression}],
        }
        needs = sorted(re.split(r"[^\w.-]", need, maxsplit=1)[0] for need in core.dependencies)
        materials = {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "metadata": {"component": package},
            "components": [_library(name) for name in needs],
            "dependencies": [{"ref": core.name, "dependsOn": needs}],
        }
        self._folder = TemporaryDirectory()  # removed with this hook: a checkout may be read-only
        file = Path(self._folder.name, f"{core.name}.cdx.json")
        file.write_text(json.dumps(materials, indent=1), encoding="utf-8")
        build_data["sbom_files"].append(str(file))


class Description(MetadataHookInterface):
    """Makes description and links of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme` and `urls`."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = os.environ.get("INFTDA_REPOSITORY", "").rstrip("/")
        if repository:
            tag = f"v{metadata['version']}"

            def absolute(link: re.Match[str]) -> str:
                kind = "raw" if link[1] else "blob"
                return f"{link[1]}{link[2]}({repository}/{kind}/{tag}/{link[3]})"

            badges = " ".join(
                f"![{words}](https://img.shields.io/pypi/{kind}/inftda-od)"
                for words, kind in _BADGES.items()
            )
            title, _, rest = _RELATIVE.sub(absolute, text).partition("\n")
            text = f"{title}\n\n{badges}\n{rest}"
            metadata["urls"] = {
                "Source": repository,
                "Documentation": f"{repository}/blob/{tag}/docs/index.md",
                "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def _library(name: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": name, "name": name, "purl": f"pkg:pypi/{name}"}
