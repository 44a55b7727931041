"""One number with its interval, read in every place: Python, JSON, CSV, page data, CSV export."""

import csv
import io
import json
from math import prod

import pytest

import inftda
from matrix.kinds import ALWAYS, kinds
from packed_page import unpack

MEASURES = ("flow", "low", "high")


@pytest.mark.parametrize("kind", kinds(often=(*ALWAYS, "three-axes", "persons", "one-axis")))
def test_one_number_is_the_same_wherever_it_is_read(kind, made, tmp_path, capfd):
    release = made(kind)
    place = release.release
    release.done(f"report {place} --out {tmp_path / 'page.html'} --quiet")
    release.done(f"export {place} --to csv --out {tmp_path / 'csv'} --quiet")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    opened = inftda.open_release(release.folder / place)
    compared = 0
    for number, asked in enumerate(questions(opened)):
        intervals = opened.has_intervals(
            [axis.hierarchy.level_of(asked[axis.name]) for axis in opened.tree.axes]
        )
        told = numbers(opened.flows(level=asked, intervals=intervals).to_pylist(), asked)
        line = " ".join(f"--level {axis}={level}" for axis, level in asked.items())
        line = f"query {place} {line} {'--intervals' * intervals} --format"
        for format_, read in FORMATS if number < 2 else FORMATS[number % 2 :][:1]:
            capfd.readouterr()
            release.done(f"{line} {format_}")
            assert numbers(read(capfd.readouterr().out), asked) == told, (asked, format_)
        exported = exported_numbers(tmp_path / "csv", asked)
        for codes, (flow, *ends) in told.items():
            if flow:
                assert page.number(asked, codes) == (flow, *ends), (asked, codes)
                assert exported[codes] == (flow, *ends), (asked, codes)
                compared += 1
    assert compared or kind == "empty"


def questions(release):
    """Levels by axis: the finest of all, and totals of each axis at each of its levels."""
    names = {axis.name: axis.hierarchy.level_names for axis in release.tree.axes}
    yield {name: levels[-1] for name, levels in names.items()}
    for name, levels in names.items():
        for level in levels:
            yield {other: level if other == name else "all" for other in names}


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


#: What `query` prints, and how it is read. Flows and the first total are asked for in both formats,
#: other totals in one of them in turn.
FORMATS = (("json", json.loads), ("csv", rows_of))


def numbers(rows, asked):
    """Number and ends of its interval, if any, by codes."""
    shown = [axis for axis, level in asked.items() if level != "all"]
    return {
        tuple(row[axis] for axis in shown): tuple(
            int(row[name]) for name in MEASURES if name in row
        )
        for row in rows
    }


def exported_numbers(folder, asked):
    """Numbers of the exported file that answers."""
    shown = [level for level in asked.values() if level != "all"]
    name = "totals-*-{}-*.csv" if len(shown) < len(asked) else "flows-*-{}.csv"
    level = "-".join(dict.fromkeys(shown))
    for file in sorted(folder.glob(name.format(level))):
        rows = rows_of(file.read_text(encoding="utf-8"))
        if rows and {*rows[0]} >= {axis for axis, level in asked.items() if level != "all"}:
            return numbers(rows, asked)
    return {}


class Page:
    """The data of a page, looked up as its script does."""

    def __init__(self, text):
        self.header, self.arrays = unpack(text)
        levels = [axis["levels"] for axis in self.header["axes"]]
        self.levels = [levels[0] if one is None else one for one in levels]
        self.names = [axis["name"] for axis in self.header["axes"]]

    def number(self, asked, codes):
        """Number and interval of a cell; the finest number must be in the page as it is."""
        left = iter(codes)
        by_axis = {axis: next(left) if level != "all" else None for axis, level in asked.items()}
        depths, areas = [], []
        for name, levels in zip(self.names, self.levels, strict=True):
            named = [level["name"] for level in levels]
            depth = 0 if asked[name] == "all" else named.index(asked[name]) + 1
            depths.append(depth)
            areas.append(levels[depth - 1]["codes"].index(by_axis[name]) if depth else 0)
        key = ",".join(map(str, depths))
        cell = self._cell(depths, areas)
        if f"totals-{key}.cells" in self.arrays:
            at = self.arrays[f"totals-{key}.cells"].index(cell)
            flow = self.arrays[f"totals-{key}.value"][at]
        else:
            flow = self._sum(depths, areas)
        name = f"intervals-{key}"
        if f"{name}.cells" not in self.arrays:
            return (flow,)
        at = self.arrays[f"{name}.cells"].index(cell)
        low = self.arrays[f"{name}.low"][at]
        return flow, low, low + self.arrays[f"{name}.width"][at]

    def _sizes(self, depths):
        pairs = zip(self.levels, depths, strict=True)
        return [len(levels[depth - 1]["codes"]) if depth else 1 for levels, depth in pairs]

    def _cell(self, depths, areas):
        sizes = self._sizes(depths)
        return sum(area * prod(sizes[i + 1 :]) for i, area in enumerate(areas))

    def _sum(self, depths, areas):
        """Sum of all flows of the page below an area of each axis."""
        finest = [len(levels) for levels in self.levels]
        sizes = self._sizes(finest)
        total = 0
        pairs = zip(self.arrays["flows.cells"], self.arrays["flows.value"], strict=True)
        for cell, value in pairs:
            own = [cell // prod(sizes[i + 1 :]) % size for i, size in enumerate(sizes)]
            if all(map(self._is_in, range(len(own)), own, depths, areas)):
                total += value
        return total

    def _is_in(self, axis, leaf, depth, area):
        """Whether a finest area lies in an area of a level."""
        levels = self.levels[axis]
        for level in range(len(levels), depth, -1):
            children, parent = levels[level - 1]["children"], 0
            while leaf >= children[parent]:
                leaf -= children[parent]
                parent += 1
            leaf = parent
        return leaf == area
