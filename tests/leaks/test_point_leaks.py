"""Points and time stamps give away neither themselves nor their true counts."""

import logging
import traceback

import canaries
import pytest

from inftda.reading import Columns

pytest.importorskip("shapely", reason="areas with outlines need the extra geo")

from inftda.cli.main import run
from inftda.errors import InftdaError
from inftda.pipeline import release

pytestmark = pytest.mark.slow

#: Four towns, each a square of one degree; code to the longitude of its western border.
WEST = {"1": 10, "2": 11, "3": 12, "4": 13}
#: Digits that nothing else has; every trip of the table begins and ends with these.
CANARY, SECOND = "7316549823", "47.613285"
OPTIONS = (
    "--origin", "from_lon,from_lat", "--destination", "to_lon,to_lat",
    "--hour", "at", "--weekday", "at",
)  # fmt: skip
POINTS = {
    "origin": ("from_lon", "from_lat"),
    "destination": ("to_lon", "to_lat"),
    "hour": "at",
    "weekday": "at",
}
BUDGET = ("--epsilon", "1", "--delta", "1e-8")


def areas_csv():
    squares = {
        town: f"POLYGON(({x} 50, {x + 1} 50, {x + 1} 51, {x} 51, {x} 50))"
        for town, x in WEST.items()
    }
    rows = [f'{canaries.REGION[town]},{town},"{wkt}"\n' for town, wkt in squares.items()]
    return "region,town,wkt\n" + "".join(rows)


def row(number, origin, destination):
    """Where and when a trip was: no two at the same time of the day."""
    points = [f"{WEST[town]}.{CANARY},50.{CANARY}" for town in (origin, destination)]
    return f"2026-05-{11 + number:02d} {3 * number:02d}:19:{SECOND},{','.join(points)}"


def trips_csv(n):
    pairs = list(canaries.COUNTS)
    rows = [f"{row(i % 5, *pairs[i % 5])},{canaries.PERSON}{i:06d}\n" for i in range(n)]
    return "at,from_lon,from_lat,to_lon,to_lat,person\n" + "".join(rows)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INFTDA_DEBUG", raising=False)
    (tmp_path / "areas.csv").write_text(areas_csv())
    (tmp_path / "trips.csv").write_text(trips_csv(1237))
    return tmp_path


def everything(folder, capfd, caplog):
    """All that was written and printed."""
    printed = capfd.readouterr()
    seen = {"screen": (printed.out + printed.err + caplog.text).encode()}
    files = [path for path in folder.rglob("*") if path.is_file()]
    return seen | {str(path): canaries.unpacked(path) for path in files}


def test_no_point_time_or_person_is_written_or_printed(place, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    arguments = ["release", "trips.csv", "--areas", "areas.csv", *OPTIONS]
    arguments += ["--person", "person", "--trips", "2", "--neighbours", "add-remove"]
    assert run([*arguments, "--unplaceable", "outside", *BUDGET, "--out", "out"]) == 0
    assert run(["report", "out", "--out", "page.html"]) == 0
    seen = everything(place / "out", capfd, caplog)
    seen["page"] = (place / "page.html").read_bytes()
    texts = [CANARY, SECOND, canaries.PERSON]
    found = {name: canaries.found_in(text, texts=texts) for name, text in seen.items()}
    assert not any(found.values()), found


#: What a row may have in the place of its first point or its time: none of it may be quoted.
BAD_ROWS = {
    "a point in no area": f"2026-05-11 08:19:{SECOND},5.{CANARY},50.{CANARY}",
    "a point off the globe": f"2026-05-11 08:19:{SECOND},{CANARY},50.{CANARY}",
    "a point in words": f"2026-05-11 08:19:{SECOND},x{CANARY},50.{CANARY}",
    "half a point": f"2026-05-11 08:19:{SECOND},10.{CANARY},",
    "a time in words": f"Monday {SECOND},10.{CANARY},50.{CANARY}",
    "a time that the clock never shows": f"2026-05-11 25:19:{SECOND},10.{CANARY},50.{CANARY}",
    "a day that there is not": f"2026-02-30 08:19:{SECOND},10.{CANARY},50.{CANARY}",
    "no time": f",10.{CANARY},50.{CANARY}",
    "a cell too many": f"2026-05-11 08:19:{SECOND},10.{CANARY},50.{CANARY},{CANARY}",
}


@pytest.mark.parametrize("what", BAD_ROWS)
def test_a_message_about_a_bad_point_or_time_quotes_nothing(place, capfd, what):
    bad = f"{BAD_ROWS[what]},10.{CANARY},50.{CANARY},{canaries.PERSON}x\n"
    (place / "bad.csv").write_text(trips_csv(3) + bad)
    texts = [CANARY, SECOND, canaries.PERSON]
    arguments = ["release", "bad.csv", "--areas", "areas.csv", "--person", "person", *OPTIONS]
    assert run([*arguments, *BUDGET, "--out", "out"]) == 2
    assert canaries.found_in(capfd.readouterr().err.encode(), texts=texts) == []
    with pytest.raises(InftdaError) as raised:
        release(
            "bad.csv",
            "areas.csv",
            columns=Columns(person="person", **POINTS),
            epsilon=1,
            delta=1e-8,
        )
    printed = "".join(traceback.format_exception(raised.value)).encode()
    assert canaries.found_in(printed, texts=texts) == []
    assert not (place / "out").exists()
