"""Wrong use is one clear line, and nothing is written.

What tests/bad_input asserts of releases, queries and ledgers is not repeated here.
"""

import pytest

PLAN = "plan --epsilon 1 --delta 1e-8 --sizes"
PREVIEW = "preview --areas AREAS --epsilon 1 --delta 1e-6 --runs 1"
COMPARE = "compare FLOWS --areas AREAS --out x"
#: What is typed, and a word of what is said.
WRONG = [
    (f"{PLAN} 5,,6", "--sizes"),
    (f"{PLAN} 0,3", "--sizes"),
    (f"{PLAN} 1.5,3", "--sizes"),
    (f"{PLAN} 5,50 --total -5", "--total"),
    (f"{PLAN} 5,50 --beta 1", "beta"),
    (f"{PLAN} 5,50 --across=0.9", "across"),
    ("areas h3 AREAS --resolutions five --out x.csv", "--resolutions"),
    ("areas grid AREAS --sizes 500 --out x.csv", "areas.csv"),
    ("make country --sizes 2,x --out x", "--sizes"),
    ("make country --sizes 5,2 --out x", "coarse"),
    (PREVIEW, "either"),
    (f"{PREVIEW} --stand-in x.csv --trips 1.5", "--trips"),
    (f"{PREVIEW} --stand-in x.csv --epsilon a", "--epsilon"),
    (f"{PREVIEW} --stand-in x.csv --stand-in-level galaxy", "galaxy"),
    (f"{COMPARE} --methods magic", "magic"),
    (f"{COMPARE} --methods suppress:0", "suppress"),
    (f"{COMPARE} --epsilon 1", "delta"),
    ("query RELEASE --out flows.csv --format json", "contradicts"),
    ("query RELEASE --out flows.csv --format table", "contradicts"),
    ("query RELEASE --out flows.txt", "--format"),
    ("query RELEASE --out flows.csv.gz", "--format"),
    ("query RELEASE --top 0", "--top"),
    ("query RELEASE --level origin=region --origin-level province", "twice"),
    ("query RELEASE --origin-level street --destination-level all", "street"),
    ("query TOTALS --origin-level all --destination-level region --intervals", "measurements"),
    ("query TOTALS --intervals", "--measurements all"),
    ("estimate TOTALS --out x", "--measurements all"),
    ("release FLOWS --areas AREAS --rho 1 --measurements some --out x", "--measurements"),
    ("query RELEASE --fit --top 3", "--fit"),
    ("export RELEASE --to flowmap --out x", "--centroids"),
    ("export RELEASE --to csv --level town --out x", "town"),
    ("report RELEASE --estimate ESTIMATE --out x.html", "another release"),
    ("evaluate RELEASE --truth FLOWS --estimate ESTIMATE --out x", "another release"),
    ("dossier RELEASE", "--about"),
    ("dossier RELEASE --template", "RELEASE"),
    ("ledger export LEDGER --out x.txt", "x.txt"),
    ("ledger export LEDGER --out x.json --format csv", "contradicts"),
    ("ledger export LEDGER --out LEDGER --format csv --force", "read"),
]


@pytest.mark.parametrize(("line", "word"), WRONG, ids=[line for line, _ in WRONG])
def test_wrong_use_is_one_clear_line(typed, tmp_path, line, word):
    done = typed(line)
    assert done.code == 2, done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert word in done.err
    assert done.out == ""
    assert not list(tmp_path.iterdir())
