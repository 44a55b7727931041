"""A release of which something was left out says so, wherever numbers are read."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from inftda.privacy.plan import make_plan
from inftda.privacy.unit import Unit
from inftda.publication.release import open_release
from inftda.publication.trust import warnings
from inftda.publication.verify import verify

AREAS = "region,town\nN,1\nN,2\nS,3\nS,4\n"
BOUNDED = "at most 2 trips of each person are counted: the table does not show all trips"
DROPPED = "rows without a known area are left out"
OUTSIDE = "rows without a known area are counted in the area 'outside'"
#: Options, and what a release must say because of them.
CHOICES = {
    "bounded": (("--person", "who", "--trips", 2), (BOUNDED,)),
    "dropped": (("--unplaceable", "drop"), (DROPPED,)),
    "outside": (("--unplaceable", "outside"), (OUTSIDE,)),
    "both": (("--person", "who", "--trips", 2, "--unplaceable", "drop"), (BOUNDED, DROPPED)),
    "different": (
        ("--person", "who", "--trips", 2, "--distinct"),
        ("at most 2 different trips", "trips that a person repeats are counted once"),
    ),
    "one": (("--person", "who"), ("at most 1 trip of each person is counted",)),
    "none": ((), ()),
}
ALL = (BOUNDED, DROPPED, OUTSIDE, "counted")


@pytest.fixture
def release(tmp_path, cli, monkeypatch):
    """Releases a table in which people have five trips each, one of them to nowhere."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "areas.csv").write_text(AREAS)
    rows = [f"p{i},{1 + i % 4},{1 + i // 4 % 4}" for i in range(400) for _ in range(4)]

    def make(*options, nowhere=True, epsilon=5, delta=1e-6):
        lost = [f"p{i},{1 + i % 4},9" for i in range(400)] if nowhere else []
        (tmp_path / "trips.csv").write_text("\n".join(["who,origin,destination", *rows, *lost]))
        done = cli(
            "release", "trips.csv", "--areas", "areas.csv", "--neighbours", "add-remove",
            "--epsilon", epsilon, "--delta", delta, "--out", "out", "--force", *options,
        )  # fmt: skip
        assert done.code == 0, done.err
        return done.out

    return make


#: Which say nothing that "both" does not say as well.
REPEATED = ("bounded", "dropped", "one")


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.slow] if name in REPEATED else []) for name in CHOICES
    ]
)
def said(request, release):
    """What is printed on release, and what must be said about it everywhere."""
    options, words = CHOICES[request.param]
    return release(*options, nowhere="--unplaceable" in options), words


def check(text, words):
    for expected in words:
        assert expected in text
    if not words:
        for other in ALL[:3]:
            assert other not in text


@pytest.mark.filterwarnings("ignore")
def test_everybody_is_told_what_was_counted(said, cli, tmp_path):
    summary, words = said
    check(summary, words)
    check(cli("verify", "out").out, words)
    asked = cli("query", "out", "--format", "json")
    assert json.loads(asked.out), "the answer itself is as ever"
    check(asked.err, words)
    assert bool(asked.err) == bool(words)
    assert cli("report", "out", "--out", "page.html", "--runs", 1, "--quiet").code == 0
    page = unescape((tmp_path / "page.html").read_text())
    check(page, words)
    assert ("Against what was counted" in page) == bool(words)


def test_the_manifest_states_it(release):
    release("--person", "who", "--trips", 2, "--unplaceable", "drop")
    stated = json.loads(Path("out/manifest.json").read_text())["counted"]
    assert stated == {"bounded": True, "unplaceable": "drop"}
    release(nowhere=False)
    assert open_release("out").manifest.to_dict()["counted"] == {
        "bounded": False, "unplaceable": "error",
    }  # fmt: skip


def test_exactly_as_many_trips_as_everybody_has_leave_nothing_out():
    from inftda.publication.manifest import Counting  # noqa: PLC0415
    from inftda.tree import build_tree  # noqa: PLC0415

    tree = build_tree({"town": ["1", "2"]})
    assert Counting(bounded=True).words(Unit(trips=3), tree) == ()
    assert Counting(bounded=True).words(Unit(trips=3, exactly=False), tree)


def test_a_table_that_is_no_table_of_trips_is_called_by_its_name():
    from inftda.publication.manifest import Counting  # noqa: PLC0415
    from inftda.tree import build_tree  # noqa: PLC0415

    tree = build_tree(axis={"disease": {"name": ["flu", "gout"]}})
    words = Counting(bounded=True).words(Unit("add-remove", 3), tree)
    assert words[0].startswith("at most 3 entries of each person are counted")
    words = Counting(bounded=True).words(Unit("add-remove", 1), tree)
    assert words[0].startswith("at most 1 entry of each person is counted")


@pytest.mark.parametrize(
    ("stated", "unit", "says"),
    [
        ("drop", {}, "never done under neighbours 'substitute'"),
        ("outside", {"neighbours": "add-remove", "exactly": False}, "no axis has such an area"),
    ],
)
def test_what_no_table_can_be_counted_by_does_not_verify(release, stated, unit, says):
    from inftda.errors import ReleaseError  # noqa: PLC0415
    from inftda.publication.manifest import Counting  # noqa: PLC0415

    release(nowhere=False)
    with pytest.raises(ReleaseError, match=says):
        Counting(unplaceable=stated).check(Unit(**unit), open_release("out").tree)


def test_a_release_is_compared_with_what_it_counts(release, cli):
    release("--unplaceable", "drop")
    done = cli("evaluate", "out", "--truth", "trips.csv", "--out", "measures")
    assert done.code == 0, done.err
    assert DROPPED in done.out


# --- Careful: from public facts only ---


def careful(text):
    return re.findall(r"Careful: +(.*)", text)


def test_an_epsilon_that_promises_nothing_is_pointed_out(release, cli):
    (words,) = careful(release(nowhere=False, epsilon=21))
    assert "epsilon above 20" in words
    assert careful(cli("verify", "out").out) == [words]
    assert not careful(release(nowhere=False, epsilon=20))
    planned = ("plan", "--areas", "areas.csv", "--delta", 1e-6)
    assert careful(cli(*planned, "--epsilon", 21).out) == [words]
    assert not careful(cli(*planned, "--epsilon", 20).out)


def test_a_rho_is_judged_by_the_epsilon_it_comes_to(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "areas.csv").write_text(AREAS)
    assert "epsilon above 20" in cli("plan", "--areas", "areas.csv", "--rho", 7).out
    assert not careful(cli("plan", "--areas", "areas.csv", "--rho", 4).out)


def test_a_delta_near_one_over_people_is_pointed_out(release):
    (words,) = careful(release(nowhere=False, delta=1e-3))
    assert "far below 1 / people" in words


def test_an_empty_release_is_pointed_out(release, cli):
    """All rows were dropped; that it is empty is what was released, half of the time."""
    options = ("--unplaceable", "drop", "--origin", "who", "--neighbours", "add-remove", "--force")
    for _ in range(60):
        said = release(*options, nowhere=False, epsilon=1)
        if not open_release("out").total:
            break
    assert any("the release is empty" in words for words in careful(said))
    assert any("the release is empty" in words for words in careful(cli("verify", "out").out))


def test_no_careful_words_without_need(release):
    assert not careful(release(nowhere=False, epsilon=1))
    plan = make_plan(open_release("out").tree, Unit(), epsilon=1, delta=1e-8)
    assert warnings(plan, total=100) == []
    assert list(verify("out"))
