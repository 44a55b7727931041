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
    (f"{PLAN} 5,50 --cross-tables=0.9", "cross tables"),
    ("areas h3 AREAS --resolutions five --out x.csv", "--resolutions"),
    ("areas grid AREAS --sizes 500 --out x.csv", "areas.csv"),
    ("demo --sizes 2,x --out x", "--sizes"),
    ("demo --sizes 5,2 --out x", "coarse"),
    (PREVIEW, "public table of flows"),
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
    ("dossier RELEASE", "--out"),
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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("relase FLOWS", "No such command 'relase'. Did you mean 'release'? (see inftda --help)"),
        ("ledger shwo", "No such command 'shwo'. Did you mean 'show'? (see inftda ledger --help)"),
        ("xyzzy", "No such command 'xyzzy'. (see inftda --help)"),
        ("ledger create --bugdet 1", "(see inftda ledger create --help)"),
        ("release FLOWS --areas AREAS --epsilom 1", "Did you mean '--epsilon'? (see"),
        ("plan --epsilon 1 --delta 0 --epsilon 2", "--epsilon is given twice; give it once (see"),
        ("plan --sizes 5,50 --epsilon one", "(see inftda plan --help)"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant_and_where_help_is(typed, line, said):
    done = typed(line)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
