"""The fields of an entry in OpenDP's registry of deployments, as far as this program goes.

What an entry may hold, which values are allowed, and who knows it: the release (`KNOWN`), or
only the office, which is asked for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["text", "texts", "whole", "number", "number or text", "any"]


@dataclass(frozen=True)
class Field:
    """One field.

    Attributes:
        path: where it stands, with dots.
        kind: what it holds.
        required: whether every entry has it.
        tier: the tier of the registry that it belongs to; None if to none.
        allowed: the only values it may have; any if there are none.
        question: what the office is asked; empty if the field follows from the release.
        is_date: whether it is a day.
    """

    path: str
    kind: Kind = "text"
    required: bool = False
    tier: int | None = None
    allowed: tuple[Any, ...] = ()
    question: str = ""
    is_date: bool = False

    @property
    def key(self) -> str:
        """The last part of the path: what it is called in the file of the office."""
        return self.path.rpartition(".")[2]


_STATES: Final = (
    "Converted",
    "Draft",
    "Pending",
    "Changes Required",
    "Approved",
    "Approved (Update Requested)",
    "Approved (Pending)",
)
_PRODUCTS: Final = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
_SECTORS: Final = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
_VARIANTS: Final = (
    "Pure DP",
    "Approximate DP",
    "Zero-concentrated DP",
    "Renyi DP",
    "Custom",
)
_MODELS: Final = ("Local", "Central", "Shuffle", "Federated", "Varies")


def _section(name: str, *fields: Field) -> Iterator[Field]:
    """The fields of one part of an entry."""
    for field in fields:
        yield Field(**{**vars(field), "path": f"deployment.{name}.{field.path}"})


FIELDS: Final = (
    Field("url_slug", required=True),
    Field("status", required=True, allowed=_STATES),
    Field("tier", "whole", required=True, allowed=(1, 2, 3)),
    *_section(
        "basic",
        Field("name", required=True, tier=1, question="What the release is called."),
        Field("data_curators", "texts", required=True, tier=1, question="Who publishes it."),
        Field("intended_use", required=True, tier=1, question="What the numbers are for."),
        Field("data_product_type", required=True, tier=1, allowed=_PRODUCTS),
        Field(
            "data_product_region",
            required=True,
            tier=1,
            question="Country or region that it is about.",
        ),
        Field("description", required=True, tier=1, question="What it holds, in two sentences."),
        Field(
            "publication_date",
            required=True,
            tier=1,
            question="Day of publication, as 2026-01-31.",
            is_date=True,
        ),
        Field("data_product_sector", tier=1, allowed=_SECTORS, question="Sector."),
    ),
    *_section(
        "dp_variant",
        Field("variant_name", tier=2, allowed=_VARIANTS),
        Field("data_domain", tier=3),
        Field("unprotected_quantities", tier=3),
    ),
    *_section(
        "privacy_loss",
        Field("privacy_unit", tier=2),
        Field("privacy_unit_details", tier=3),
        Field("privacy_parameters.epsilon", "number"),
        Field("privacy_parameters.delta", "number or text"),
        Field("privacy_parameters.rho", "number"),
        Field("privacy_parameters_details", "any", tier=3),
    ),
    *_section(
        "deployment_model",
        Field("model_name", tier=2, allowed=_MODELS),
        Field("model_name_details"),
        Field("actors", tier=3, question="Who holds the data, who runs the program, who reads."),
        Field("release_type", tier=2, allowed=("One release", "Many releases")),
        Field("release_type_details"),
        Field(
            "data_source_type",
            tier=2,
            allowed=("Static", "Dynamic"),
            question="Whether the table is fixed or grows.",
        ),
        Field("data_source_type_details", "any", tier=3, question="How the table came about."),
        Field("access_type", tier=2, allowed=("Interactive", "Non-interactive")),
        Field("access_type_details", tier=3),
    ),
    *_section(
        "accounting",
        Field("post_processing", tier=3),
        Field("composition", tier=3),
    ),
    *_section(
        "implementation",
        Field(
            "preprocessing_and_hyperparameter_tuning",
            tier=3,
            question="Was anything (epsilon, areas, trips) tuned on confidential data? Begin "
            "with yes or no, and say how.",
        ),
        Field("mechanisms", tier=3),
        Field("justification", tier=3, question="Why this epsilon, and who decided."),
    ),
    *_section(
        "administrative",
        Field("sources", tier=1, question="Where to read more."),
        Field("notes", tier=1, question="Anything else."),
        Field("registry_authors", "texts", required=True, question="Who wrote this entry."),
    ),
)
#: What the registry does not know; it goes into the data catalogue only.
CATALOGUE_FIELDS: Final = (
    Field("licence", question="Licence: a web address, or a name such as CC-BY-4.0."),
    Field("landing_page", question="Web address of the release."),
    Field("contact", question="Mail address for questions."),
    Field("keywords", "texts", question="Words to find it by."),
)


def tier_of(present: set[str]) -> int:
    """The tier that an entry reaches: all fields of the second and the third, one by one.

    What is required of the first tier every entry has.

    Args:
        present: paths of the fields of an entry.
    """
    for tier in (2, 3):
        if not all(field.path in present for field in FIELDS if field.tier == tier):
            return tier - 1
    return 3
