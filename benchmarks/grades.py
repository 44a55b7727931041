"""Are grades true, and numbers from the stated size on of use?

python benchmarks/grades.py [--quick] [TABLE ...] [--epsilon 0.1 1 10] [--seeds 13]

For releases of tables below $INFTDA_DATA, and of made-up ones: of the published numbers of each
grade, how many there are and which part is off by no more than the grade says (10, 25 or 50 % of
the number; all of grade D are within their interval or not). And for each level, from which size
on its numbers are said to be of use, and which part of those is off by no more than half, or false.
Releases are seeded: they are no releases, and the truth is known.
"""

import argparse

import numpy as np

import inftda
from agreement import FOLDERS, MADE_UP, by_number, table
from inftda.evaluation.cells import MAX_CELLS, Cells, match_cells
from inftda.publication.trust import GRADES


def compared(release, truth):
    """Each level with noise: what is said of it, published and true numbers, ends of intervals."""
    known, leaves = release.intervals(), release.leaves()
    for use in release.uses:
        if use.level.n_nodes > MAX_CELLS:
            continue
        cells = Cells.of(use.level, *leaves)
        true, _ = match_cells(cells, Cells.of(use.level, *truth))
        ends = known.of(use.level.depths, use.level.areas_at(cells.number), cells.value)
        yield use, cells.value, true, *ends


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--quick", action="store_true", help="one small made-up table")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[13])
    given = parser.parse_args()
    names = ["tiny"] if given.quick else given.tables
    names = names or [*FOLDERS, "london", "new zealand", *MADE_UP]
    for name in names:
        flows, options = table(name)
        for epsilon in given.epsilon:
            for seed in given.seeds:
                source = inftda.SeededSource(seed)
                made = inftda.release(flows, **options, epsilon=epsilon, delta=1e-8, source=source)
                show(f"{name}, epsilon {epsilon:g}", made, by_number(made.tree, flows, "count"))


def show(title, release, truth):
    n, right, lines = dict.fromkeys(GRADES, 0), dict.fromkeys(GRADES, 0), []
    for use, value, true, low, high in compared(release, truth):
        off, grade = np.abs(value - true), np.array(use.grades(value).to_pylist())
        for one, part in GRADES.items():
            is_one = grade == one
            is_right = off <= part * value if part < 1 else (low <= true) & (true <= high)
            n[one] += int(is_one.sum())
            right[one] += int((is_one & is_right).sum())
        used = value >= (use.smallest or np.inf)
        if used.any():
            within, false = (off <= 0.5 * value)[used].mean(), (true == 0)[used].mean()
            graded = (grade[used] != "D").mean()
            lines.append(
                f"  {use.level.name}: {use.describe()} -> {used.sum():,} numbers, {within:.1%} "
                f"within half, {false:.2%} false, {graded:.1%} of grade A to C"
            )
    shares = ", ".join(f"{one} {n[one]:,} ({right[one] / n[one]:.1%})" for one in GRADES if n[one])
    print(f"{title}: {shares}", *lines, sep="\n", flush=True)


if __name__ == "__main__":
    main()
