"""What readers must know is said wherever numbers are read: what was left out, what to mistrust."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from inftda.areas.build import build_tree
from inftda.errors import ReleaseError
from inftda.privacy.unit import Unit
from inftda.publication.manifest import Counting
from inftda.publication.release import open_release
from packed_page import unpack

AREAS = "region,town\nN,1\nN,2\nS,3\nS,4\n"
BOUNDED = "at most 2 trips of each person are counted"
DROPPED = "rows without a known area are left out"
OUTSIDE = "rows without a known area are counted in the area 'outside'"
#: Options, and what a release must say because of them.
CHOICES = {
    "outside": ("--unplaceable outside", (OUTSIDE,)),
    "both": ("--person who --trips 2 --unplaceable drop", (BOUNDED, DROPPED)),
    "different": ("--person who --trips 2 --distinct", ("at most 2 different", "counted once")),
    "one": ("--person who", ("at most 1 trip of each person is counted",)),
    "none": ("", ()),
}


@pytest.fixture
def release(tmp_path, done):
    """Releases a table in which people have five trips each, one of them to nowhere."""
    (tmp_path / "areas.csv").write_text(AREAS)
    rows = [f"p{i},{1 + i % 4},{1 + i // 4 % 4}" for i in range(400) for _ in range(4)]

    def make(options="", *, epsilon=5, delta=1e-6):
        is_lost = "--unplaceable" in options
        lost = [f"p{i},{1 + i % 4},9" for i in range(400)] if is_lost else []
        (tmp_path / "trips.csv").write_text("\n".join(["who,origin,destination", *rows, *lost]))
        return done(
            "release trips.csv --areas areas.csv --neighbours add-remove --out out --force"
            f" --epsilon {epsilon} --delta {delta} {options}"
        )

    return make


def check(text, words):
    for expected in words or ():
        assert expected in text
    for other in (BOUNDED, DROPPED, OUTSIDE):
        assert words or other not in text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("choice", CHOICES)
def test_everybody_is_told_what_was_counted(choice, release, done, typed, tmp_path):
    options, words = CHOICES[choice]
    check(release(options), words)
    check(done("verify out"), words)
    asked = typed("query out --format json")
    assert json.loads(asked.out), "the answer itself is as ever"
    check(asked.err, words)
    assert bool(asked.err) == bool(words)
    done("report out --out page.html --quiet")
    page = unescape((tmp_path / "page.html").read_text())
    check(page, words)
    assert ("What was counted:" in page) == bool(words)


@pytest.mark.filterwarnings("ignore")
def test_totals_of_a_table_with_a_contribution_bound_are_of_counted_trips(
    release, done, typed, tmp_path
):
    """1,600 trips in the table, of which 800 are counted: every total says so."""
    said = release("--person who --trips 2", epsilon=30)
    total = f"{open_release('out').total:,}"
    counted = f"{total} counted trips"
    assert re.search(rf"{counted} in all\n(.+\n)+Note: +{BOUNDED}", said)
    opened = open_release("out")
    assert counted in repr(opened)
    assert f"Note:</strong> {BOUNDED}" in unescape(opened._repr_html_())
    assert "of all counted trips" in opened.uses[-1].describe() or opened.uses[-1].is_all
    assert f"total is {counted} in" in done("verify out")
    assert BOUNDED in typed("query out --origin-level all --destination-level all").err
    done("report out --out page.html --quiet")
    page = unescape((tmp_path / "page.html").read_text())
    head = page.split("</header>")[0]
    assert counted in head
    assert BOUNDED.capitalize() in head
    assert unpack(page)[0]["words"]["units"] == "counted trips"
    estimated = done("estimate out --out estimated")
    assert counted in estimated
    assert BOUNDED in estimated
    for source in ("out", "estimated"):
        done(f"export {source} --to csv --out {source}-csv")
        package = json.loads(Path(f"{source}-csv/datapackage.json").read_text())
        assert '"unit": "counted trips"' in json.dumps(package)
        if source == "out":
            assert counted in package["description"]
            assert BOUNDED in package["description"]
    evaluated = done("evaluate out --truth trips.csv --person who --out measures --html")
    assert BOUNDED in evaluated
    assert BOUNDED in unescape(Path("measures/CONFIDENTIAL-evaluation.html").read_text())
    refused = typed("evaluate out --truth trips.csv --out measures")
    assert refused.code == 2
    assert "name the column that identifies people (--person)" in refused.err


def test_the_manifest_states_it_and_a_truth_is_counted_alike(release, done):
    release("--person who --trips 2 --unplaceable drop")
    stated = json.loads(Path("out/manifest.json").read_text())["counted"]
    assert stated == {"bounded": True, "unplaceable": "drop", "what": "trips"}
    release("--unplaceable drop")
    assert DROPPED in done("evaluate out --truth trips.csv --out measures")


def test_what_is_counted_is_named_wherever_numbers_are_said(done, typed):
    said = done("release FLOWS --areas AREAS --epsilon 1 --delta 1e-8 --counts jobs --out out")
    assert "5,000 jobs in all" in said
    assert "a person with exactly 1 entry may be replaced" in said
    opened = open_release("out")
    assert opened.manifest.counted.what == "jobs"
    assert "5,000 jobs in all" in repr(opened)
    assert "% of all jobs" in opened.uses[-1].describe()
    assert "numbers count jobs" in typed("query out").err
    assert "5,000 jobs" in done("estimate out --out estimated")
    for source in ("out", "estimated"):
        done(f"export {source} --to csv --out {source}-csv")
        package = Path(f"{source}-csv/datapackage.json").read_text()
        assert '"unit": "jobs"' in package
        assert "trips" not in package


def test_what_is_counted_must_be_a_word_or_two(typed):
    line = "release FLOWS --areas AREAS --epsilon 1 --delta 1e-8 --out out --counts"
    assert "must be a word or two" in typed(line, "<b>").err


def test_several_axes_may_have_rows_without_a_place_and_contradictions_are_refused(
    done, typed, tmp_path
):
    (tmp_path / "areas.csv").write_text(AREAS)
    (tmp_path / "flows.csv").write_text("origin,destination,count\n1,2,30\nabroad,x,50\n")
    line = "release flows.csv --areas areas.csv --rho 1 --out out --unplaceable origin=outside "
    done(line + "--unplaceable destination=outside")
    assert all(axis.hierarchy.has_outside for axis in open_release("out").tree.axes)
    for further in ("drop", "outside", "origin=error"):
        assert "--unplaceable " in typed(f"{line} --force --unplaceable {further}").err
    (tmp_path / "inftda.toml").write_text(
        '[release.unplaceable]\norigin = "outside"\ndestination = "outside"\n'
    )
    done("release flows.csv --areas areas.csv --rho 1 --out out --force --config inftda.toml")


def test_the_hours_of_the_clock_have_no_outside_unless_it_is_asked_for(done, typed, tmp_path):
    (tmp_path / "areas.csv").write_text(AREAS)
    rows = ["origin,destination,at", *["1,x,2026-05-17 08:30"] * 40]
    (tmp_path / "trips.csv").write_text("\n".join(rows))
    line = "release trips.csv --areas areas.csv --rho 1 --hour at --out out --unplaceable "
    done(f"{line} outside")
    has_outside = {axis.name: axis.hierarchy.has_outside for axis in open_release("out").tree.axes}
    assert has_outside == {"origin": True, "destination": True, "hour": False}
    done("verify out")
    done("evaluate out --truth trips.csv --hour at --out measures")
    (tmp_path / "trips.csv").write_text("\n".join([*rows, "1,2,yesterday"]))
    assert "no time stamp such as" in typed(f"{line} outside --force").err
    done(f"{line} hour=outside,destination=outside --force")


def test_exactly_as_many_trips_as_everybody_has_leave_nothing_out():
    tree = build_tree({"town": ["1", "2"]})
    assert Counting(True, "error", "trips").words(Unit(trips=3), tree) == ()
    assert Counting(True, "error", "trips").words(Unit(trips=3, exactly=False), tree)


@pytest.mark.parametrize(("trips", "said"), [(3, "3 entries of"), (1, "1 entry of")])
def test_what_is_no_table_of_trips_has_entries(trips, said):
    tree = build_tree(axis={"disease": {"name": ["flu", "gout"]}})
    for what in (Counting.noun(None, tree), "patients"):
        counted = Counting(True, "error", what)
        assert said in counted.words(Unit("add-remove", trips), tree)[0]


@pytest.mark.parametrize(
    ("stated", "unit", "says"),
    [("drop", Unit(), "substitute"), ("outside", Unit("add-remove"), "no axis has such an area")],
)
def test_what_no_table_can_be_counted_by_does_not_verify(stated, unit, says):
    tree = build_tree({"town": ["1", "2"]})
    with pytest.raises(ReleaseError, match=says):
        Counting(False, stated, "trips").check(unit, tree)


# --- Warnings: from public facts only ---


def careful(text):
    return re.findall(r"Warning: +(.*)", text)


@pytest.mark.parametrize(
    ("epsilon", "delta", "word"),
    [
        (25, 1e-6, "the guarantee is weak"),
        (10, 1e-6, None),
        (1, 1e-3, "1 / people"),
        (1, 1e-6, None),
    ],
)
def test_a_budget_that_promises_little_is_pointed_out(release, done, epsilon, delta, word):
    said = careful(release(epsilon=epsilon, delta=delta))
    assert len(said) == bool(word)
    assert word is None or word in said[0]
    assert careful(done("verify out")) == said
    if word != "1 / people":  # which a plan does not know
        line = f"plan --areas areas.csv --epsilon {epsilon} --delta {delta}"
        assert careful(done(line)) == said


@pytest.mark.parametrize(("rho", "n"), [(7, 1), (2, 0)])
def test_a_rho_is_judged_by_the_attacker_it_allows(done, tmp_path, rho, n):
    (tmp_path / "areas.csv").write_text(AREAS)
    assert len(careful(done(f"plan --areas areas.csv --rho {rho}"))) == n


def test_an_empty_release_is_pointed_out(release, done):
    """All rows were dropped; that it is empty is what was released, half of the time."""
    for _ in range(60):
        said = release("--unplaceable drop --origin who", epsilon=1)
        if not open_release("out").total:
            break
    for shown in (said, done("verify out")):
        assert any("empty" in words for words in careful(shown))


@pytest.mark.parametrize("options", ["", "--json", "--quiet"])
def test_a_hint_at_totals_is_for_the_screen_and_in_no_file(typed, tmp_path, options):
    (tmp_path / "areas.csv").write_text(AREAS)
    rows = [f"{a},{b},{90 + a}" for a in range(1, 5) for b in range(1, 5)]
    rows += [f"{a},Total,{4 * (90 + a)}" for a in range(1, 5)]
    (tmp_path / "flows.csv").write_text("\n".join(["origin,destination,count", *rows]))
    said = typed(
        "release flows.csv --areas areas.csv --epsilon 5 --delta 1e-6 --unplaceable outside"
        f" --out out {options}"
    )
    assert said.code == 0
    assert said.err.count("look like totals") == (options != "--quiet")
    assert "look like" not in said.out
    assert not any(b"look like" in path.read_bytes() for path in (tmp_path / "out").iterdir())
