"""A total has one number and one interval: in Python, `query`, on the page and in exports."""

import json

import pyarrow.csv as pa_csv
import pytest

import inftda
from inftda.cli.main import run
from inftda.demo import make_country
from inftda.noise.bits import SeededSource
from packed_page import unpack

COUNTRY = make_country((3, 6, 24), 9_000, seed=3)
MODES = {"kind": ["motor", "motor", "foot"], "mode": ["car", "bus", "walk"]}
#: How the release is made, and whether all of its totals have intervals.
KINDS = {
    "usual": ({"epsilon": 1, "delta": 1e-6}, True),
    "delta 0": ({"epsilon": 3, "delta": 0}, True),
    "totals only": ({"epsilon": 1, "delta": 1e-6, "measurements": "totals"}, False),
    "delta 0, totals only": ({"epsilon": 3, "delta": 0, "measurements": "totals"}, False),
    "nothing across": ({"epsilon": 1, "delta": 1e-6, "cross_tables": 0}, True),
    "nothing at all": (
        {"epsilon": 1, "delta": 1e-6, "cross_tables": 0, "measurements": "totals"},
        False,
    ),
    "paper": ({"rho": 0.1, "method": "paper"}, True),
}


def with_modes(**options):
    """The same trips by mode."""
    flows = COUNTRY.flows()
    mode = [MODES["mode"][number % 3] for number in range(len(flows))]
    return inftda.release(
        flows.append_column("mode", [mode]), COUNTRY.areas, axis={"mode": MODES}, **options
    )


def released(kind, folder, *, by_mode):
    options, has_intervals = KINDS[kind]
    options = options | {"source": SeededSource(2), "out": folder}
    if by_mode:
        return with_modes(**options), has_intervals
    return inftda.release(COUNTRY.flows(), COUNTRY.areas, **options), has_intervals


def on_page(made, file):
    """Total and interval of every area, by axis and level, as the page has them."""
    header, arrays = unpack(inftda.report(made, file).read_text())
    axes = header["axes"]
    levels = [axis["levels"] or axes[0]["levels"] for axis in axes]
    flows = zip(arrays["flows.cells"], arrays["flows.value"], strict=True)
    sizes = [len(of[-1]["codes"]) for of in levels]
    found = {}
    cells = []
    for number, value in flows:
        place = []
        for size in reversed(sizes):
            number, index = divmod(number, size)  # noqa: PLW2901 - digit by digit
            place.append(index)
        cells.append((place[::-1], value))
    for at, axis in enumerate(axes):
        above = list(range(sizes[at]))
        for depth in range(len(levels[at]), 0, -1):
            codes = levels[at][depth - 1]["codes"]
            key = ",".join(str(depth if i == at else 0) for i in range(len(axes)))
            sums = [0] * len(codes)
            for place, value in cells:
                sums[above[place[at]]] += value
            if f"totals-{key}.cells" in arrays:
                cells_at, totals = (arrays[f"totals-{key}.{of}"] for of in ("cells", "value"))
                known = dict(zip(cells_at, totals, strict=True))
                sums = [known.get(i, 0) for i in range(len(codes))]
            name = f"intervals-{key}"
            ends = {}
            if f"{name}.cells" in arrays:
                columns = [arrays[f"{name}.{of}"] for of in ("cells", "low", "width")]
                ends = {n: (low, low + w) for n, low, w in zip(*columns, strict=True)}
            found[axis["name"], levels[at][depth - 1]["name"]] = {
                code: (n, *ends.get(i, (None, None)))
                for i, (code, n) in enumerate(zip(codes, sums, strict=True))
                if n
            }
            children = levels[at][depth - 1]["children"]
            up = [i for i, n in enumerate(children) for _ in range(n)]
            above = [up[area] for area in above]
    return found


def in_export(made, folder):
    """The same in the files of an export to CSV."""
    inftda.export(made, to="csv", out=folder)
    found = {}
    for entry in json.loads((folder / "datapackage.json").read_text())["resources"]:
        if not entry["path"].startswith("totals"):
            continue
        texts = pa_csv.ConvertOptions(column_types={entry["schema"]["fields"][0]["name"]: "string"})
        rows = pa_csv.read_csv(folder / entry["path"], convert_options=texts).to_pylist()
        axis = next(iter(rows[0]))
        level = entry["title"].rpartition(" level ")[2]
        found[axis, level] = {
            row[axis]: (row["flow"], row.get("low"), row.get("high")) for row in rows if row["flow"]
        }
    return found


@pytest.mark.parametrize("by_mode", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_total_is_one_number_with_one_interval_everywhere(kind, by_mode, tmp_path, capsys):
    made, all_known = released(kind, tmp_path / "r", by_mode=by_mode)
    page = on_page(made, tmp_path / "page.html")
    export = in_export(made, tmp_path / "export")
    assert page.keys() == export.keys()
    for axis in made.tree.axes:
        for depth, level in enumerate(axis.hierarchy.level_names, start=1):
            depths = [depth if one.name == axis.name else 0 for one in made.tree.axes]
            is_known = made.has_intervals(depths)
            assert is_known or not all_known
            shown = {one.name: "all" for one in made.tree.axes} | {axis.name: level}
            rows = made.flows(level=shown, intervals=is_known).to_pylist()
            answer = {
                row[axis.name]: (row["flow"], row.get("low"), row.get("high"))
                for row in rows
                if row["flow"]
            }
            assert sum(number for number, *_ in answer.values()) == made.total
            assert page[axis.name, level] == answer
            assert export[axis.name, level] == answer
    names = [part for axis in made.tree.axes for part in ("--level", f"{axis.name}=all")]
    assert run(["query", str(tmp_path / "r"), *names, "--intervals", "--format", "json"]) == 0
    (whole,) = json.loads(capsys.readouterr().out)
    assert (whole["flow"], whole["low"], whole["high"]) == (made.total,) * 3
