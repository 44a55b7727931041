"""The folder of a dossier, and its metadata for a catalogue as a catalogue reads it."""

import json

import pytest
from office_answers import CATALOGUE, OFFICE

import inftda
from inftda.dossiers.api import FILES, dossier
from inftda.errors import InftdaError, LedgerError, ReleaseError
from inftda.ledger.budget import Budget
from inftda.ledger.ledger import Ledger
from inftda.privacy.unit import PrivacyUnit


def test_a_dossier_has_four_files(made):
    assert {*made()} == {*FILES}


@pytest.mark.filterwarnings("default::DeprecationWarning")  # of rdflib about itself
def test_a_catalogue_reads_the_data_set_and_its_files(made, published):
    rdflib = pytest.importorskip("rdflib")
    dcat, terms = rdflib.Namespace("http://www.w3.org/ns/dcat#"), rdflib.namespace.DCTERMS
    graph = rdflib.Graph().parse(data=made(OFFICE | CATALOGUE)["dcat.jsonld"], format="json-ld")
    (entry,) = graph.subjects(rdflib.RDF.type, dcat.Dataset)
    assert str(graph.value(entry, terms.title)) == OFFICE["name"]
    assert graph.value(entry, terms.issued).toPython().isoformat() == "2026-01-31"
    assert str(graph.value(entry, terms.license)) == CATALOGUE["licence"]
    assert str(graph.value(entry, dcat.landingPage)) == CATALOGUE["landing_page"]
    assert len(set(graph.objects(entry, terms.publisher))) == 2
    digest = rdflib.URIRef("http://spdx.org/rdf/terms#checksumValue")
    digests = {str(value) for value in graph.objects(None, digest)}
    assert published.release.manifest.flows_sha256 in digests
    files = {str(value) for value in graph.objects(None, rdflib.RDFS.label)}
    assert {path.name for path in published.folder.iterdir()} <= files


def test_a_licence_by_name_and_no_links_are_fine(made):
    entry = json.loads(made(OFFICE | {"licence": "ODbL"})["dcat.jsonld"])
    assert entry["dct:license"]["rdfs:label"] == "ODbL"
    assert "dcat:landingPage" not in entry


def test_a_dossier_replaces_a_dossier_only_if_asked(made, tmp_path):
    made()
    with pytest.raises(ReleaseError, match="exists already"):
        made()
    made(force=True)
    (tmp_path / "dossier" / "mine.txt").write_text("mine")
    with pytest.raises(ReleaseError, match=r"'mine.txt' in it is not part of a dossier"):
        made(force=True)


def test_wrong_ledgers_are_refused_and_nothing_is_written(made, published, tmp_path):
    with pytest.raises(InftdaError, match="go together"):
        made(ledger=published.ledger)
    with pytest.raises(LedgerError, match="other"):
        made(ledger=published.ledger, dataset="other")
    ledger = Ledger.create(tmp_path / "office.ledger")
    ledger.add("other", PrivacyUnit("add-remove"), Budget.make(rho="1"))
    with pytest.raises(InftdaError, match="protects another unit of privacy"):
        made(ledger=tmp_path / "office.ledger", dataset="other")
    with pytest.raises(ReleaseError, match="lies in the release folder"):
        dossier(published.folder, about=OFFICE, out=published.folder / "dossier")
    assert {path.name for path in tmp_path.iterdir()} == {"office.ledger"}


def test_the_function_is_there_by_its_name(published, tmp_path):
    options = {"about": OFFICE, "runs": 1, "seconds": 0, "selftest": False}
    assert inftda.dossier(published.folder, out=tmp_path / "d", **options) == tmp_path / "d"
