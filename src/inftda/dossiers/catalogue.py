"""Metadata for a data catalogue: DCAT 3 as JSON-LD, with its vocabulary spelled out in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from inftda.files import FLOWS_FILE, MANIFEST_FILE
from inftda.publication.inventory import (
    MEASUREMENTS_FILE,
    digest,
)
from inftda.publication.release import Release
from inftda.publication.trust import NOT_PRIVATE, not_shown

_CONTEXT: Final = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "spdx": "http://spdx.org/rdf/terms#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_MEDIA: Final = "https://www.iana.org/assignments/media-types/"
_FORMATS: Final = {
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
    ".json": "application/json",
}
_TITLES: Final = {
    FLOWS_FILE: "Published numbers between the finest areas",
    MEASUREMENTS_FILE: "What was measured and is published, with its noise",
    MANIFEST_FILE: "What is guaranteed, and how it was made",
}


def catalogue_entry(release: Release, office: Mapping[str, Any]) -> dict[str, Any]:
    """The data set and its files."""
    plan = release.manifest.plan
    counted = not_shown(release)
    promise = (
        f"Released with differential privacy: {plan.describe()}; protected: {plan.unit.describe()}."
        if release.manifest.private
        else NOT_PRIVATE
    )
    known: dict[str, Any] = {
        "dct:title": office["name"],
        "dct:description": office["description"],
        "dct:issued": {"@value": office["publication_date"], "@type": "xsd:date"},
        "dct:publisher": [
            {"@type": "foaf:Agent", "foaf:name": name} for name in office["data_curators"]
        ],
        "dct:spatial": {"@type": "dct:Location", "rdfs:label": office["data_product_region"]},
        "dcat:keyword": [*office.get("keywords", ()), "differential privacy"],
        "dct:provenance": {
            "@type": "dct:ProvenanceStatement",
            "rdfs:label": promise + (f" Counted: {counted}." if counted else ""),
        },
        "dct:license": _licence(office.get("licence")),
        "dcat:landingPage": _link(office.get("landing_page")),
        "dcat:contactPoint": _contact(office.get("contact")),
        "dcat:distribution": [
            _file(path, _link(office.get("landing_page"))) for path in _files(release)
        ],
    }
    facts = {key: value for key, value in known.items() if value}
    return {"@context": _CONTEXT, "@type": "dcat:Dataset", **facts}


def _files(release: Release) -> list[Path]:
    """Files of the release, if it is on disk."""
    if not isinstance(release.table, Path):
        return []
    return sorted(path for path in release.table.parent.iterdir() if path.suffix in _FORMATS)


def _file(path: Path, page: dict[str, Any] | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "@type": "dcat:Distribution",
        "dct:title": _TITLES.get(path.name, "Public facts about the areas"),
        "rdfs:label": path.name,
        "dcat:mediaType": {"@id": _MEDIA + _FORMATS[path.suffix]},
    }
    if page is not None:
        entry["dcat:accessURL"] = page
    if path.is_file():
        entry["dcat:byteSize"] = {
            "@value": str(path.stat().st_size),
            "@type": "xsd:nonNegativeInteger",
        }
        entry["spdx:checksum"] = {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
            "spdx:checksumValue": digest(path),
        }
    return entry


def _licence(stated: str | None) -> dict[str, Any] | None:
    if stated is None:
        return None
    link = _link(stated)
    return link or {"@type": "dct:LicenseDocument", "rdfs:label": stated}


def _link(address: str | None) -> dict[str, Any] | None:
    """A web address; anything else is not a link."""
    if address is None or not address.startswith(("https://", "http://")):
        return None
    return {"@id": address}


def _contact(mail: str | None) -> dict[str, Any] | None:
    if mail is None:
        return None
    return {"@type": "vcard:Kind", "vcard:hasEmail": {"@id": f"mailto:{mail}"}}
