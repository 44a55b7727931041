"""What an estimate says of itself: that it is one, of which release, by which model."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

from inftda.errors import ReleaseError
from inftda.files import MANIFEST_FILE
from inftda.inference.model import Fit
from inftda.privacy.records import decode
from inftda.publication.manifest import (
    AxisEntry,
    Manifest,
    check_same,
    read_json,
    software_versions,
)

#: Bumped when a reader of the old format could misunderstand the new one.
FORMAT: Final = "inftda-estimate/1"
KIND: Final = "inftda-estimate"
NOTICE: Final = (
    "Model-based estimates from the measurements of a release: good on average, not guaranteed, "
    "and not a list of existing flows. The guaranteed table is the release."
)


@dataclass(frozen=True)
class LevelModel:
    """The model of one level.

    Attributes:
        level: its name.
        sigma: noise scale of its measurements.
        spread: of the counts around their means.
        zeros: how many of them are zero; see `inftda.inference.prior`.
        same: factor of the area that contains the other end of the trip.
    """

    level: str
    sigma: float
    spread: float
    zeros: float
    same: float


@dataclass(frozen=True)
class Model:
    """The model behind the numbers.

    Attributes:
        locations: whether distances were used.
        seed: decided which numbers were rounded up.
        levels: coarse to fine.
    """

    locations: bool
    seed: int
    levels: tuple[LevelModel, ...]

    @property
    def is_finite(self) -> bool:
        """Whether all its numbers are; those of measurements that make no sense are not."""
        numbers = ((level.spread, level.zeros, level.same) for level in self.levels)
        return all(map(math.isfinite, chain.from_iterable(numbers)))

    @classmethod
    def of(cls, fit: Fit, *, locations: bool, seed: int) -> "Model":
        """What is said of a fitted model."""
        return cls(
            locations,
            seed,
            tuple(
                LevelModel(
                    level.layer.level.name,
                    level.layer.sigma,
                    level.known.posterior.spread,
                    level.known.posterior.zeros,
                    level.shares.same,
                )
                for level in fit.levels
            ),
        )


@dataclass(frozen=True)
class EstimateManifest:
    """The contents of the `manifest.json` of an estimate.

    Attributes:
        private: whether the release is private; False if it was made with a seed.
        release_sha256: digest of the manifest of the release it was made from.
        model: parameters of the model.
        axes: the axes of the table.
        order: axis names in the order of refinement.
        total: sum of all estimates, which is that of the release.
        n_rows: number of rows.
        estimate_sha256: digest of the table; empty while it is in memory only.
        software: versions of what made it.
    """

    private: bool
    release_sha256: str
    model: Model
    axes: tuple[AxisEntry, ...]
    order: tuple[str, ...]
    total: int
    n_rows: int
    estimate_sha256: str = field(default="", compare=False)
    software: Mapping[str, str] = field(default_factory=software_versions)

    def to_dict(self) -> dict[str, Any]:
        """As it is written to `manifest.json`."""
        # JSON has lists and no tuples.
        stated: dict[str, Any] = json.loads(json.dumps(asdict(replace(self, software={}))))
        fixed = {"format": FORMAT, "kind": KIND, "model_based": True, "notice": NOTICE}
        return fixed | stated | {"software": dict(self.software)}

    def to_text(self) -> str:
        """The contents of `manifest.json`: it follows from the manifest, to the bit."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    @classmethod
    def read(cls, folder: Path) -> "EstimateManifest":
        """Read the manifest of a folder.

        Raises:
            ReleaseError: it is not that of an estimate, or is damaged.
        """
        data = read_json(folder / MANIFEST_FILE)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ReleaseError(
                f"{str(folder)!r} is not an estimate: its manifest is not of format {FORMAT!r}; "
                "make one with `inftda estimate`"
            )
        manifest = decode(cls, data, what="the manifest", error=ReleaseError)
        check_same(data, manifest.to_dict())
        return manifest


def release_digest(manifest: Manifest) -> str:
    """Identifies a release: the digest of its manifest."""
    return hashlib.sha256(manifest.to_text().encode()).hexdigest()
