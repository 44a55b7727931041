"""Releases trips between two countries whose areas have different depths.

Origins lie in a country with regions, provinces and municipalities, destinations in one with
states and cities only. Both are made up. It needs pandas. Run it as

    python examples/two_countries.py FOLDER

and find the release in FOLDER/two-countries-release.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import inftda


def make_areas(names: tuple[str, ...], sizes: tuple[int, ...], letter: str) -> pd.DataFrame:
    """Areas nested evenly: `sizes` of them on the levels called `names`."""
    finest = np.arange(sizes[-1])
    return pd.DataFrame(
        {
            name: [f"{letter}{level}-{area:03d}" for area in finest * size // sizes[-1]]
            for level, (name, size) in enumerate(zip(names, sizes, strict=True), start=1)
        }
    )


def make_trips(origins: pd.DataFrame, destinations: pd.DataFrame, n: int) -> pd.DataFrame:
    """One row for each trip; a few areas send and draw most of them, as in life."""
    chance = np.random.default_rng(7)
    ends = {}
    for name, areas in (("origin", origins), ("destination", destinations)):
        codes = areas.iloc[:, -1].to_numpy()
        weight = 1 / np.arange(1, len(codes) + 1)
        ends[name] = chance.permutation(codes)[
            chance.choice(len(codes), size=n, p=weight / weight.sum())
        ]
    return pd.DataFrame(ends)


def main(folder: Path) -> None:
    here = make_areas(("region", "province", "municipality"), (6, 24, 240), "A")
    there = make_areas(("state", "city"), (4, 60), "B")
    made = inftda.release(
        make_trips(here, there, 200_000),
        axis={"origin": here, "destination": there},
        epsilon=1,
        delta=1e-8,
        out=folder / "two-countries-release",
        force=True,
    )
    print("Refined in turn, until one end is used up:")
    for level in made.tree.levels:
        print(f"  {level.name:22} {level.n_nodes:7,} cells")

    print("\nLargest flows between regions and states:")
    table = made.flows("region", "state", as_="pandas").nlargest(3, "flow")
    print(table.to_string(index=False))

    check(made)


def check(made: inftda.Release) -> None:
    """Flows between any two levels add up to the same total, and to each other."""
    for origin_level in ("all", "region", "province", "municipality"):
        for destination_level in ("all", "state", "city"):
            flows = made.flows(origin_level, destination_level).column("flow")
            assert sum(flows.to_pylist()) == made.total
    by_province = made.flows("province", "state", from_="region:A1-000", as_="pandas")
    by_region = made.flows("region", "state", from_="region:A1-000", as_="pandas")
    assert by_province["flow"].sum() == by_region["flow"].sum()
    print(f"\nAll 12 crosses of levels add up to {made.total:,} trips.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
