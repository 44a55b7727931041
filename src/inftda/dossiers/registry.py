"""The entry of a release in OpenDP's registry of deployments: one record, checked by its types.

The fields say what the registry takes, in its order. Some follow from the release. Those with a
question only the office can answer: it is asked for them by a TOML file with the same keys.
"""

import math
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
import yaml
from msgspec import Meta

from inftda.errors import InftdaError
from inftda.ledger.budget import Dataset
from inftda.pages.html import full_stop
from inftda.publication.release import Release
from inftda.publication.trust import NOT_PRIVATE, counting_note

#: Lists and texts that say something.
Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[list[Text], Meta(min_length=1)]


def _tier(number: int | None, question: str = "") -> Meta:
    """The tier of the registry that a field belongs to, and what the office is asked."""
    return Meta(extra={"tier": number, "question": question})


class Part(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A part of an entry: fields without an answer are left out."""


class Basic(Part):
    """What the release is."""

    name: Annotated[Text, _tier(1, "What the release is called.")]
    data_curators: Annotated[Texts, _tier(1, "Who publishes it.")]
    intended_use: Annotated[Text, _tier(1, "What the numbers are for.")]
    data_product_type: Annotated[
        Literal[
            "Summary statistics",
            "Machine learning model",
            "Dataset",
            "Synthetic data",
            "Interactive API",
            "SQL queries",
        ],
        _tier(1),
    ]
    data_product_region: Annotated[Text, _tier(1, "Country or region that it is about.")]
    description: Annotated[Text, _tier(1, "What it holds, in two sentences.")]
    publication_date: Annotated[
        str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$"), _tier(1, "Day of publication, as 2026-01-31.")
    ]
    data_product_sector: Annotated[
        Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"] | None,
        _tier(1, "Sector."),
    ] = None


class DpVariant(Part):
    """Which kind of differential privacy."""

    variant_name: Annotated[
        Literal["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"] | None,
        _tier(2),
    ] = None
    data_domain: Annotated[Text | None, _tier(3)] = None
    unprotected_quantities: Annotated[Text | None, _tier(3)] = None


class Parameters(Part):
    """The figures of the guarantee."""

    epsilon: float | None = None
    delta: float | str | None = None
    rho: float | None = None


class PrivacyLoss(Part):
    """Who is protected, and how well."""

    privacy_unit: Annotated[Text | None, _tier(2)] = None
    privacy_unit_details: Annotated[Text | None, _tier(3)] = None
    privacy_parameters: Parameters | None = None
    privacy_parameters_details: Annotated[Any, _tier(3)] = None


class DeploymentModel(Part):
    """Who does what, and how often."""

    model_name: Annotated[
        Literal["Local", "Central", "Shuffle", "Federated", "Varies"] | None, _tier(2)
    ] = None
    model_name_details: Text | None = None
    actors: Annotated[
        Text | None, _tier(3, "Who holds the data, who runs the program, who reads.")
    ] = None
    release_type: Annotated[Literal["One release", "Many releases"] | None, _tier(2)] = None
    release_type_details: Text | None = None
    data_source_type: Annotated[
        Literal["Static", "Dynamic"] | None, _tier(2, "Whether the table is fixed or grows.")
    ] = None
    data_source_type_details: Annotated[Any, _tier(3, "How the table came about.")] = None
    access_type: Annotated[Literal["Interactive", "Non-interactive"] | None, _tier(2)] = None
    access_type_details: Annotated[Text | None, _tier(3)] = None


class Accounting(Part):
    """How the guarantee comes about."""

    post_processing: Annotated[Text | None, _tier(3)] = None
    composition: Annotated[Text | None, _tier(3)] = None


class Implementation(Part):
    """How the release was made."""

    preprocessing_and_hyperparameter_tuning: Annotated[
        Annotated[str, Meta(pattern=r"(?i)^(yes|no)\b")] | None,
        _tier(
            3,
            "Was anything (epsilon, areas, trips) tuned on confidential data? Begin with yes or "
            "no, and say how.",
        ),
    ] = None
    mechanisms: Annotated[Text | None, _tier(3)] = None
    justification: Annotated[Text | None, _tier(3, "Why this epsilon, and who decided.")] = None


class Administrative(Part, kw_only=True):
    """About the entry."""

    sources: Annotated[Text | None, _tier(1, "Where to read more.")] = None
    notes: Annotated[Text | None, _tier(1, "Anything else.")] = None
    registry_authors: Annotated[Texts, _tier(None, "Who wrote this entry.")]


class Deployment(Part):
    """The release."""

    basic: Basic
    dp_variant: DpVariant
    privacy_loss: PrivacyLoss
    deployment_model: DeploymentModel
    accounting: Accounting
    implementation: Implementation
    administrative: Administrative


class RegistryEntry(Part):
    """An entry of the registry."""

    url_slug: Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    status: Literal[
        "Converted",
        "Draft",
        "Pending",
        "Changes Required",
        "Approved",
        "Approved (Update Requested)",
        "Approved (Pending)",
    ]
    tier: Literal[1, 2, 3]
    deployment: Deployment


class Field(NamedTuple):
    """A field of an entry; without a question, it follows from the release."""

    path: tuple[str, ...]
    type: msgspec.inspect.Type
    is_required: bool
    tier: int | None
    question: str


def fields(
    kind: type[msgspec.Struct] = RegistryEntry, above: tuple[str, ...] = ()
) -> Iterator[Field]:
    """The fields of an entry, in the order of the registry."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)  # noqa: S101 - for the type checker
    for field in info.fields:
        path, held = (*above, field.name), field.type
        parts = [one for one in _types(held) if isinstance(one, msgspec.inspect.StructType)]
        if parts:
            yield from fields(parts[0].cls, path)
        elif isinstance(held, msgspec.inspect.Metadata) and held.extra:
            yield Field(path, held.type, field.required, **held.extra)
        else:
            yield Field(path, held, field.required, None, "")


def _types(held: msgspec.inspect.Type) -> tuple[msgspec.inspect.Type, ...]:
    """What a field may hold, one by one."""
    return held.types if isinstance(held, msgspec.inspect.UnionType) else (held,)


#: What the office may state although it would be filled in.
_MAY_STATE: Final = {
    "url_slug",
    "status",
    "tier",
    "data_product_type",
    "release_type",
    "release_type_details",
}
_INTRODUCTION: Final = """\
# What only you know about a release; all that follows from the release itself is filled in.
# Fill in what stands between quotes; leave empty what does not apply.
# Then: inftda dossier RELEASE --about about.toml --out dossier
"""


def template() -> str:
    """A file to fill in: every key with what it means."""
    lines = [_INTRODUCTION]
    for field in fields():
        if not field.question:
            continue
        literals = [
            one for one in _types(field.type) if isinstance(one, msgspec.inspect.LiteralType)
        ]
        allowed = [str(value) for one in literals for value in one.values]
        choices = f" One of: {', '.join(allowed)}." if allowed else ""
        required = " Required." if field.is_required else ""
        is_list = isinstance(field.type, msgspec.inspect.ListType)
        lines.append(f"# {field.question}{choices}{required}")
        lines.append(f"{field.path[-1]} = {'[]' if is_list else chr(34) * 2}\n")
    return "\n".join(lines)


def read_answers(about: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    """What the office states: a TOML file, or its keys and values; empty answers are left out."""
    if isinstance(about, Mapping):
        data, name = dict(about), "about"
    else:
        name = str(about)
        try:
            data = tomllib.loads(Path(about).read_text(encoding="utf-8"))
        except OSError as problem:
            raise InftdaError(f"cannot read {name!r}: {problem.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise InftdaError(f"{name!r} is not TOML: {problem}") from None
    known = [one.path[-1] for one in fields() if one.question or one.path[-1] in _MAY_STATE]
    for key in data:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "; leave it out"
            raise InftdaError(f"{name!r} has an unknown key {key!r}{hint}")
    answers = {key: value for key, value in data.items() if value not in ("", [])}
    if "publication_date" in answers:
        answers["publication_date"] = _day(answers["publication_date"])
    return answers


def _day(value: Any) -> str:
    try:
        return (value if type(value) is date else date.fromisoformat(str(value))).isoformat()
    except ValueError:
        raise InftdaError(
            f"publication_date must be a day such as 2026-01-31, got {str(value)[:40]!r}"
        ) from None


def entry_of(
    release: Release, answers: Mapping[str, Any], account: Dataset | None
) -> RegistryEntry:
    """The entry: what follows from the release and its ledger, and what the office states."""
    known = _known(release, account)
    tuned = answers.get("preprocessing_and_hyperparameter_tuning")
    if isinstance(tuned, str):
        counted = counting_note(release) or "all rows of the table"
        said = f"{full_stop(tuned)} Counted: {counted}."
        answers = {**answers, "preprocessing_and_hyperparameter_tuning": said}
    values = {
        field.path: answers.get(field.path[-1], known.get(field.path[-1])) for field in fields()
    }
    values["url_slug",] = answers.get("url_slug", _slug(str(answers.get("name", ""))))
    reached = _tier_of({path for path, value in values.items() if value is not None})
    values["tier",] = answers.get("tier", reached)
    entry: dict[str, Any] = {}
    for path, value in values.items():
        if value is None and path[-2:-1] == ("privacy_parameters",):
            continue  # nothing is promised, not even an empty list of figures
        at = entry
        for part in path[:-1]:
            at = at.setdefault(part, {})
        if value is not None:
            at[path[-1]] = value
    try:
        return msgspec.convert(entry, RegistryEntry)
    except msgspec.ValidationError as problem:
        raise InftdaError(
            f"the answers do not make an entry of the registry: {problem}; `inftda dossier "
            "--template` lists every key with what it means"
        ) from None


def as_yaml(entry: RegistryEntry) -> str:
    """The entry as people read it."""
    plain = msgspec.to_builtins(entry)
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100))


def _tier_of(present: set[tuple[str, ...]]) -> int:
    """The tier that an entry reaches: all fields of the second and the third, one by one."""
    for tier in (2, 3):
        if not all(field.path in present for field in fields() if field.tier == tier):
            return tier - 1
    return 3


def _known(release: Release, account: Dataset | None) -> dict[str, Any]:
    """What follows from the release, and from its ledger if there is one."""
    manifest, plan = release.manifest, release.manifest.plan
    measured = (*plan.levels, *plan.tables)
    drawn = f"{len(measured)} measurements with independent noise"
    made_of = f"The release is made of {drawn if len(measured) > 1 else 'one measurement'}"
    promised: dict[str, Any] = {
        "privacy_parameters_details": NOT_PRIVATE,
        "composition": f"{made_of}. {NOT_PRIVATE}",
    }
    if manifest.private:  # otherwise nothing is promised, whatever the plan says
        rho = float(plan.rho)
        promised = {
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            # A promise is never overstated.
            "rho": rho if rho >= plan.rho else math.nextafter(rho, math.inf),
            "privacy_parameters_details": plan.describe(),
            "composition": f"{made_of}; together they give {plan.describe()}.",
        }
    variant = "Approximate DP" if plan.delta else "Pure DP"
    axes = ", ".join(
        f"{axis.name} ({axis.hierarchy.n_areas(axis.hierarchy.depth):,} "
        f"{axis.hierarchy.level_names[-1]})"
        for axis in release.tree.axes
    )
    options = ", ".join(f"{key} {value}" for key, value in manifest.options.items())
    noise = "; ".join(f"{level.name}: {level.noise}" for level in measured)
    is_many = account is not None and len(account.entries) > 1
    return {
        **promised,
        "status": "Draft",
        "data_product_type": "Summary statistics",
        "variant_name": "Zero-concentrated DP" if plan.epsilon is None else variant,
        "data_domain": f"Counts in {release.tree.levels[-1].n_nodes:,} possible cells of public "
        f"hierarchies: {axes}",
        "unprotected_quantities": invariants(release),
        "privacy_unit": "Person",
        "privacy_unit_details": plan.unit.describe(),
        "model_name": "Central",
        "release_type": "Many releases" if is_many else "One release",
        "release_type_details": account and f"By its ledger: {'; '.join(account.spent_words())}.",
        "access_type": "Non-interactive",
        "access_type_details": "Tables, published once; they answer no queries.",
        "post_processing": POST_PROCESSING,
        "mechanisms": f"{manifest.mechanism} ({options}), with "
        f"{plan.describe_noise()}. Noise of each level: {noise}",
    }


#: What was done to noisy numbers, without looking at the table again.
POST_PROCESSING: Final = (
    "From the coarsest level to the finest, the noisy numbers under each node are replaced by "
    "non-negative integers that add up to the number published for it; coarser numbers are exact "
    "sums of finer ones."
)


def invariants(release: Release) -> str:
    """What is published as it is, without noise."""
    is_public = release.manifest.plan.unit.root_is_public
    total = "the total of all that was counted; " if is_public else ""
    return f"{total}the areas and their hierarchy, which are public; all parameters of the noise"


def _slug(name: str) -> str:
    """A name as part of a web address.

    >>> _slug("Città: commuting, 2021")
    'citta-commuting-2021'
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:80].strip("-") or "release"
