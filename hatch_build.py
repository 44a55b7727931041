"""Puts a list of materials (CycloneDX) into the wheel, where PEP 770 wants it.

The wheel holds nobody else's code. So the list has the package and the libraries that it asks
for; their versions are known only where it is installed.
"""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


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


def _library(name: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": name, "name": name, "purl": f"pkg:pypi/{name}"}
