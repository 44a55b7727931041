"""Every verb on every kind of release: it succeeds, or says why it cannot.

Most faults sit where two features meet. Modules are tested in depth elsewhere; here, every
combination is run once, and one number is compared wherever it can be read.
"""

import re

import pytest

import inftda
from matrix.kinds import ALWAYS, kinds

#: Exports that need origins and destinations.
MAPS = ("flowmap", "geopackage", "geojson", "omx")
#: What to type, by the name of the verb; OUT is a new place, and KIND the options of the release.
VERBS = {
    "verify": "verify RELEASE",
    "query": "query RELEASE --format json",
    "query-names": "query RELEASE --names --format csv",
    "query-intervals": "query RELEASE --intervals",
    "query-usable": "query RELEASE --at-least B --top 3",
    "query-totals": "query RELEASE TOTALS --intervals --format json",
    "query-zones": "query RELEASE --zones zones.csv --intervals --format csv",
    "query-fit": "query RELEASE --fit --format json",
    "estimate": "estimate RELEASE --out OUT",
    "report": "report RELEASE --out OUT.html",
    "export-csv": "export RELEASE --to csv --out OUT",
    "export-flowmap": "export RELEASE --to flowmap --out OUT",
    "export-geopackage": "export RELEASE --to geopackage --out OUT",
    "export-geojson": "export RELEASE --to geojson --out OUT",
    "export-omx": "export RELEASE --to omx --out OUT",
    "dossier": "dossier RELEASE --no-selftest --out OUT",
    "evaluate": "evaluate RELEASE --truth table.csv --html --out OUT READING",
    "compare": "compare table.csv --html --out OUT AREAS GUARANTEE READING BUDGET",
    "change": "change EARLIER RELEASE --out OUT.csv --html OUT.html",
    "repr": None,
}
#: Verbs that take a whole series; the others are given one of its editions.
ON_SERIES = {verb for verb in VERBS if verb.startswith("query")} | {"report"}
_NEEDS_MEASUREMENTS = ("query-intervals", "query-usable", "query-zones", "estimate", "change")
#: Kinds that publish not all of their measurements, and one of these that publishes none.
_PARTIAL = ("totals-only", "delta-0-totals-only", "flows-only")
#: Combinations that cannot work, and a part of the message that says why.
REFUSED = {
    ("seeded", "verify"): "made with a seed",
    **{("one-axis", f"export-{to}"): "origins and destinations" for to in MAPS},
    **{(kind, verb): "no measurements" for kind in _PARTIAL for verb in _NEEDS_MEASUREMENTS},
    **{("flows-only", f"query-{what}"): "no measurements" for what in ("totals", "fit")},
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", kinds(often=ALWAYS))
def test_every_verb_works_on_every_kind_of_release(kind, verb, made, tmp_path, capfd):
    release = made(kind)
    if VERBS[verb] is None:
        check_reprs(release)
        return
    line = typed(release, verb, tmp_path)
    capfd.readouterr()
    code = release.run(line)
    said = capfd.readouterr().err
    if (kind, verb) in REFUSED:
        assert (code, REFUSED[kind, verb] in said) == (2, True), said
    else:
        assert code == 0, said


def typed(release, verb, folder):
    """The command, with words for what it is given."""
    kind, place = release.kind, "release" if verb in ON_SERIES else release.release
    first, *others = kind.axes
    totals = [f"--level {first}=region", *(f"--level {name}=all" for name in others)]
    given = {
        "RELEASE": place,
        "EARLIER": release.earlier if verb == "change" else "",
        "TOTALS": " ".join(totals),
        "READING": kind.reading,
        "AREAS": kind.areas,
        "GUARANTEE": kind.guarantee,
        "BUDGET": kind.budget,
        "OUT": str(folder / "out"),
    }
    return re.sub("|".join(given), lambda found: given[found[0]], VERBS[verb])


def check_reprs(release):
    """What Python shows of a release is short and can be made."""
    opened = inftda.open_release(release.folder / release.release)
    shown = [opened, *opened.uses]
    if release.kind.is_series:
        shown.append(inftda.open_series(release.folder / "release"))
    if opened.has_measurements:
        shown.append(inftda.estimate(opened))
    for item in shown:
        assert 0 < len(repr(item)) < 2000
        if hasattr(item, "_repr_html_"):
            assert item._repr_html_()
