"""Releases a health table: cases by disease (chapter > disease), sex and age group.

A made-up population stands in for a confidential one. Run it as

    python examples/health_table.py FOLDER

and find the release in FOLDER/health-release.
"""

import random
import sys
from pathlib import Path

import inftda
from inftda.privacy.unit import Unit
from inftda.reading import Columns

# What is public: the classifications, one hierarchy for each column.
DISEASES = {
    "chapter": ["circulatory", "circulatory", "respiratory", "respiratory", "mental"],
    "disease": ["I10", "I21", "J18", "J45", "F32"],
}
SEXES = {"sex": ["female", "male"]}
AGES = {"age": ["0-17", "18-39", "40-64", "65+"]}

# How common each disease is in each age group, in cases for 1,000 people.
RATES = {
    "I10": (1, 20, 180, 480),
    "I21": (0, 1, 9, 30),
    "J18": (6, 2, 5, 28),
    "J45": (75, 45, 40, 35),
    "F32": (8, 60, 70, 40),
}
PEOPLE = 10_000  # of each sex and age group


def make_cases(seed: int = 1) -> dict[str, list]:
    """The confidential table: one row for each case, nobody's data."""
    chance = random.Random(seed)  # noqa: S311 - made-up data need no secure bits
    rows = []
    for sex in SEXES["sex"]:
        for group, age in enumerate(AGES["age"]):
            for number in range(PEOPLE):
                patient = f"{sex} {age} {number}"
                rows += [
                    (patient, disease, sex, age)
                    for disease, rates in RATES.items()
                    if chance.random() * 1_000 < rates[group]
                ]
    columns = zip(*rows, strict=True)
    return dict(zip(("patient", "disease", "sex", "age"), map(list, columns), strict=True))


def main(folder: Path) -> None:
    # That somebody is a patient at all is confidential, so a person may be added or removed.
    # Few patients have more than two of these diseases: two of each are kept, all different.
    made = inftda.release(
        make_cases(),
        axis={"disease": DISEASES, "sex": SEXES, "age": AGES},
        order=["disease", "disease", "sex", "age"],  # the disease has two levels
        columns=Columns(person="patient"),
        unit=Unit(neighbours="add-remove", trips=2, distinct=True),
        epsilon=1,
        delta=1e-6,
        out=folder / "health-release",
        force=True,
    )
    print(made.manifest.plan.unit.describe())
    print(made.manifest.plan.describe(), end="\n\n")

    chapters = made.flows(level={"disease": "chapter", "sex": "all", "age": "all"})
    print("By chapter:")
    for row in chapters.to_pylist():
        print(f"  {row['disease']:12} {row['flow']:7,}")

    print("\nAsthma (J45) by age and sex:")
    for row in made.flows(level={"disease": "all"}, where={"disease": "J45"}).to_pylist():
        print(f"  {row['age']:6} {row['sex']:7} {row['flow']:6,}")

    check(made)


def check(made: inftda.Release) -> None:
    """Every coarser number is the sum of the finer ones, so all totals agree."""
    levels = {"disease": "all", "sex": "all", "age": "all"}
    for axis, level in (
        ("disease", "chapter"),
        ("disease", "disease"),
        ("sex", "sex"),
        ("age", "age"),
    ):
        levels[axis] = level
        assert sum(made.flows(level=levels).column("flow").to_pylist()) == made.total, levels
    print(f"\nAll levels add up to {made.total:,} cases.")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
