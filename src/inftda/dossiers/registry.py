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
from msgspec import Meta

from inftda.errors import InftdaError
from inftda.ledger.budget import Dataset
from inftda.publication.release import Release
from inftda.publication.trust import NOT_PRIVATE, counting_note
from inftda.tree import Tree

#: Lists and texts that say something.
Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[list[Text], Meta(min_length=1)]


def _tier(number: int, question: str = "") -> Meta:
    """The tier of the registry that a field belongs to, and what the office is asked."""
    return Meta(extra={"tier": number, "question": question})


def _asked(question: str) -> Meta:
    return Meta(extra={"question": question})


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
    registry_authors: Annotated[Texts, _asked("Who wrote this entry.")]


class Deployment(Part):
    """The release."""

    basic: Basic
    dp_variant: DpVariant
    privacy_loss: PrivacyLoss
    deployment_model: DeploymentModel
    accounting: Accounting
    implementation: Implementation
    administrative: Administrative


class Entry(Part):
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
    """A field of an entry.

    Attributes:
        path: where it stands.
        type: what it may hold, as msgspec describes it.
        is_required: whether every entry has it.
        tier: the tier of the registry that it belongs to; None if to none.
        question: what the office is asked; empty if the field follows from the release.
    """

    path: tuple[str, ...]
    type: msgspec.inspect.Type
    is_required: bool
    tier: int | None
    question: str

    @property
    def key(self) -> str:
        """What it is called in the file of the office."""
        return self.path[-1]


def fields(kind: type[msgspec.Struct] = Entry, above: tuple[str, ...] = ()) -> Iterator[Field]:
    """The fields of an entry, in the order of the registry."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)  # noqa: S101 - for the type checker
    for field in info.fields:
        path, held = (*above, field.name), field.type
        parts = [one for one in _types(held) if isinstance(one, msgspec.inspect.StructType)]
        if parts:
            yield from fields(parts[0].cls, path)
            continue
        facts: dict[str, Any] = {}
        if isinstance(held, msgspec.inspect.Metadata):
            facts, held = held.extra or {}, held.type
        question = facts.get("question", "")
        yield Field(path, held, field.required, facts.get("tier"), question)


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
        lines.append(f"{field.key} = {'[]' if is_list else chr(34) * 2}\n")
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
    known = [one.key for one in fields() if one.question or one.key in _MAY_STATE]
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


def entry_of(release: Release, answers: Mapping[str, Any], account: Dataset | None) -> Entry:
    """The entry: what follows from the release, and what the office states.

    Args:
        release: what was published.
        answers: what the office states.
        account: its data set in a ledger, if there is one.
    """
    known = _known(release, account)
    tuned = answers.get("preprocessing_and_hyperparameter_tuning")
    if isinstance(tuned, str):
        said = f"{sentence(tuned)} {_counted(release)}"
        answers = {**answers, "preprocessing_and_hyperparameter_tuning": said}
    values = {field.path: answers.get(field.key, known.get(field.key)) for field in fields()}
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
        return msgspec.convert(entry, Entry)
    except msgspec.ValidationError as problem:
        raise InftdaError(
            f"the answers do not make an entry of the registry: {problem}; `inftda dossier "
            "--template` lists every key with what it means"
        ) from None


def as_yaml(entry: Entry) -> str:
    """The entry as people read it."""
    import yaml  # noqa: PLC0415 - only here

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
    is_many = account is not None and len(account.entries) > 1
    promised: dict[str, Any] = {"privacy_parameters_details": NOT_PRIVATE}
    if manifest.private:  # otherwise nothing is promised, whatever the plan says
        promised = {
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "rho": _above(plan.rho),
            "privacy_parameters_details": plan.describe(),
        }
    return {
        **promised,
        "status": "Draft",
        "data_product_type": "Summary statistics",
        "variant_name": _variant(plan.epsilon, plan.delta),
        "data_domain": _domain(release.tree),
        "unprotected_quantities": "; ".join(invariants(release)),
        "privacy_unit": "Person",
        "privacy_unit_details": plan.unit.describe(),
        "model_name": "Central",
        "release_type": "Many releases" if is_many else "One release",
        "release_type_details": account and f"By its ledger: {account.spent_words()}.",
        "access_type": "Non-interactive",
        "access_type_details": "Tables, published once; they answer no queries.",
        "post_processing": POST_PROCESSING,
        "composition": _composition(release),
        "mechanisms": _mechanism(release),
    }


#: What was done to noisy numbers, without looking at the table again.
POST_PROCESSING: Final = (
    "From the coarsest level to the finest, the noisy numbers under each node are replaced by "
    "non-negative integers that add up to the number published for it; coarser numbers are exact "
    "sums of finer ones."
)


def _variant(epsilon: float | None, delta: float | None) -> str:
    if epsilon is None:
        return "Zero-concentrated DP"
    return "Approximate DP" if delta else "Pure DP"


def _above(value: Any) -> float:
    """The nearest float that is no less: a promise is never overstated."""
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def _domain(tree: Tree) -> str:
    cells = tree.levels[-1].n_nodes
    axes = ", ".join(
        f"{axis.name} ({axis.hierarchy.n_areas(axis.hierarchy.depth):,} "
        f"{axis.hierarchy.level_names[-1]})"
        for axis in tree.axes
    )
    return f"Counts in {cells:,} possible cells of public hierarchies: {axes}"


def invariants(release: Release) -> list[str]:
    """What is published as it is, without noise."""
    said = ["the areas and their hierarchy, which are public", "all parameters of the noise"]
    if release.manifest.plan.unit.root_is_public:
        said.insert(0, "the total of all that was counted")
    return said


def _mechanism(release: Release) -> str:
    """What was drawn, in one sentence."""
    plan = release.manifest.plan
    parts = [f"{level.name}: {level.noise}" for level in (*plan.levels, *plan.tables)]
    options = ", ".join(f"{key} {value}" for key, value in release.manifest.options.items())
    return f"{release.manifest.mechanism} ({options}). Noise of each level: {'; '.join(parts)}"


def _composition(release: Release) -> str:
    plan = release.manifest.plan
    n = len(plan.levels) + len(plan.tables)
    noise = "one measurement" if n == 1 else f"{n} measurements with independent noise"
    if not release.manifest.private:
        return f"The release is made of {noise}. {NOT_PRIVATE}"
    return f"The release is made of {noise}; together they give {plan.describe()}."


def _counted(release: Release) -> str:
    return f"Counted: {counting_note(release) or 'all rows of the table'}."


def sentence(words: str) -> str:
    """What somebody wrote, with a stop at its end.

    >>> sentence("No "), sentence("Why not?")
    ('No.', 'Why not?')
    """
    words = words.strip()
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _slug(name: str) -> str:
    """A name as part of a web address.

    >>> _slug("Città: commuting, 2021")
    'citta-commuting-2021'
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:80].strip("-") or "release"
