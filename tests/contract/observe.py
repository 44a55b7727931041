"""What others rely on, observed: seeded releases, a manifest, names, options, exit codes.

Tables come from plain arithmetic, so that no library's random numbers can change them.
"""

import contextlib
import hashlib
import io
import json
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq

import inftda
from inftda import Columns, Unit
from inftda.cli.main import app, run

BUDGET = {"epsilon": 2, "delta": 1e-6}
#: Entries of a manifest that follow from versions of libraries, not from what was asked for.
VERSIONED = {"software", "files", "division_seed"}


def areas(regions=3, towns=4):
    """Regions, each with one town more than the one before, and the same number of towns each."""
    rows = [(f"R{r}", f"R{r}T{t}") for r in range(regions) for t in range(towns + r)]
    return {"region": [row[0] for row in rows], "town": [row[1] for row in rows]}


def flows(names, most=400):
    """Counts between all towns, a third of them nothing, some of them large."""
    rows = [
        (here, there, (i * 37 + j * 101 + i * j * 13) % most)
        for i, here in enumerate(names)
        for j, there in enumerate(names)
        if (i * 7 + j * 5) % 3
    ]
    return dict(
        zip(("origin", "destination", "count"), map(list, zip(*rows, strict=True)), strict=True)
    )


def trips(names, n=3_000):
    """One row a trip, by people who make one to five trips."""
    k = len(names)
    return {
        "origin": [names[(i * i + 3 * i) % k] for i in range(n)],
        "destination": [names[(7 * i + i // 11) % k] for i in range(n)],
        "person": [f"p{(i * 17) % 1_000 + i % 7}" for i in range(n)],
    }


def by_mode_and_time(names, n=4_000):
    """One row a trip, with two further columns."""
    return {
        **{name: trips(names, n)[name] for name in ("origin", "destination")},
        "mode": [("bus", "car", "walk")[(i * i) % 3] for i in range(n)],
        "hour": [f"h{(5 * i) % 8}" for i in range(n)],
    }


TOWNS = areas()["town"]
ALONE = {
    "region": ["A", "B", "B", "C"],
    "district": ["a", "b", "b", "c"],
    "town": ["1", "2", "3", "4"],
}
MORE_AXES = {
    "mode": {"mode": ["bus", "car", "walk"]},
    "hour": {"part": [f"p{i // 4}" for i in range(8)], "hour": [f"h{i}" for i in range(8)]},
}
#: What is released: a table, its areas, and options of `inftda.release`.
RELEASES = {
    "two axes": (flows(TOWNS), areas(), {}),
    "four axes": (by_mode_and_time(TOWNS), areas(), {"axis": MORE_AXES}),
    "nothing across": (flows(TOWNS), areas(), {"cross_tables": 0}),
    "add-remove": (flows(TOWNS), areas(), {"unit": Unit("add-remove")}),
    "persons": (trips(TOWNS), areas(), {
        "columns": Columns(person="person"), "unit": Unit(trips=2, exactly=False),
    }),
    "several trips": (flows(TOWNS, most=4_000), areas(), {"unit": Unit(trips=3, distinct=True)}),
    "only children": (flows(ALONE["town"], most=900), ALONE, {}),
    "totals": (flows(TOWNS), areas(), {"measurements": "totals"}),
    "nothing but flows": (flows(TOWNS), areas(), {"measurements": "totals", "cross_tables": 0}),
    "origin first": (flows(TOWNS), areas(), {"order": ("origin", "destination")}),
}  # fmt: skip


def released(name, out):
    """The release of that name, made with a seed."""
    table, hierarchy, options = RELEASES[name]
    source = inftda.SeededSource(20)
    return inftda.release(table, hierarchy, out=out, source=source, **BUDGET, **options)


def digests(folder):
    """Digests of the rows of all tables of a release, in whatever order they are written.

    And of its estimate, if it has measurements to make one from.
    """
    found = {file.stem: digest(pq.read_table(file)) for file in sorted(folder.glob("*.parquet"))}
    if inftda.open_release(folder).has_measurements:
        found["estimate"] = digest(inftda.estimate(folder).table)
    return found


def digest(table):
    """Number of rows, and what follows from names of columns and sorted rows alone."""
    plain = [
        column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    rows = sorted(map(repr, zip(*(column.to_pylist() for column in plain), strict=True)))
    text = "\n".join([repr(table.column_names), *rows])
    return f"{table.num_rows} rows, {hashlib.sha256(text.encode()).hexdigest()[:24]}"


def manifest(folder):
    """What the manifest says that does not depend on versions."""
    stated = json.loads((folder / "manifest.json").read_text("utf-8"))
    return {key: value for key, value in stated.items() if key not in VERSIONED}


def public_names():
    """Names that users import."""
    return sorted(inftda.__all__)


def options():
    """Every command, with its arguments and options, as help shows them."""
    found = {}

    def walk(command, name):
        if isinstance(command, click.Group):
            for part in command.list_commands(None):
                walk(command.get_command(None, part), f"{name} {part}".strip())
        else:
            found[name] = sorted(
                spelling
                for param in command.params
                for spelling in (
                    param.opts + param.secondary_opts
                    if isinstance(param, click.Option)
                    else [param.name.upper()]
                )
            )

    walk(app, "")
    return dict(sorted(found.items()))


#: Commands in the order in which they are run, in a folder with good and bad tables.
COMMANDS = (
    "--version",
    "--help",
    "nonsense",
    "plan --areas areas.csv --epsilon 1 --delta 1e-6",
    "plan --areas areas.csv",
    "plan --areas missing.csv --epsilon 1 --delta 1e-6",
    "release flows.csv --areas areas.csv --epsilon 1 --delta 1e-6 --out made --measurements all",
    "release flows.csv --areas areas.csv --epsilon 1 --delta 1e-6 --out made",
    "release flows.csv --areas areas.csv --epsilon 0 --delta 1e-6 --out other",
    "release flows.csv --areas areas.csv --epsilon 1 --out other",
    "release flows.csv --areas twice.csv --epsilon 1 --delta 1e-6 --out other",
    "release negative.csv --areas areas.csv --epsilon 1 --delta 1e-6 --out other",
    "release unknown.csv --areas areas.csv --epsilon 1 --delta 1e-6 --out other",
    "release missing.csv --areas areas.csv --epsilon 1 --delta 1e-6 --out other",
    "release flows.csv --areas areas.csv --epsilon 1 --delta 1e-6 --out other --nonsense",
    "query made --origin-level region --destination-level region",
    "query made --origin-level nonsense",
    "query missing",
    "verify made",
    "verify forged",
    "verify missing",
    "estimate made --out estimate",
    "estimate missing --out other",
    "evaluate made --truth flows.csv --out accuracy",
    "evaluate made --truth missing.csv --out other",
    "report made --out page.html",
    "report missing --out other.html",
    "export made --to csv --out tables",
    "export made --to nonsense --out other",
    "dossier made --no-selftest --out dossier",
    "dossier missing --out other",
    "compare flows.csv --areas areas.csv --epsilon 1 --delta 1e-6 --out comparison.html",
    "compare missing.csv --areas areas.csv --epsilon 1 --delta 1e-6 --out other.html",
    "preview --areas areas.csv --stand-in flows.csv --epsilon 1 --delta 1e-6 --runs 1 --html p.htm",
    "preview --areas areas.csv --stand-in missing.csv --epsilon 1 --delta 1e-6",
    "ledger create budget.ledger towns --rho 1",
    "ledger create budget.ledger towns --rho 1 --nonsense",
    "ledger show budget.ledger towns",
    "ledger show missing.ledger towns",
)
FILES = {
    "areas.csv": "region,town\nN,1\nN,2\nS,3\nS,4\n",
    "twice.csv": "region,town\nN,1\nS,1\n",
    "flows.csv": "origin,destination,count\n1,2,30\n3,4,200\n2,4,1000\n",
    "negative.csv": "origin,destination,count\n1,2,-30\n",
    "unknown.csv": "origin,destination,count\n1,9,30\n",
}


def exit_codes(folder):
    """Exit code of every command, run one after another in an empty folder."""
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    found = {}
    with contextlib.chdir(folder):
        for command in COMMANDS:
            if command == "verify forged":
                forge(Path("made"), Path("forged"))
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                found[command] = run(command.split())
    return found


#: Commands that print JSON, run one after another beside the release `made`.
JSON_COMMANDS = (
    "release flows.csv --areas areas.csv --epsilon 1 --delta 1e-6 --out made --json",
    "plan --areas areas.csv --epsilon 1 --delta 1e-6 --json",
    "preview --areas areas.csv --stand-in flows.csv --epsilon 1 --delta 1e-6 --runs 1 --json",
    "query made --format json",
    "query made --origin-level region --destination-level all --intervals --format json",
    "query made --fit --format json",
    "evaluate made --truth flows.csv --out accuracy --json",
    "ledger create budget.ledger towns --rho 1",
    "ledger charge budget.ledger towns --rho 0.1 --note maps",
    "ledger list budget.ledger --json",
    "ledger show budget.ledger towns --json",
)


def json_keys(folder):
    """Keys of every JSON output, as paths; those of lists are the keys of any of their items."""
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    found = {}
    with contextlib.chdir(folder):
        for command in JSON_COMMANDS:
            with (
                contextlib.redirect_stdout(io.StringIO()) as said,
                contextlib.redirect_stderr(io.StringIO()) as told,
            ):
                assert run(command.split()) == 0, told.getvalue()
            if "json" in command:
                found[command] = sorted({*_paths(json.loads(said.getvalue()))})
    return found


def _paths(value, at=""):
    if isinstance(value, list):
        for item in value:
            yield from _paths(item, at)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"{at}{key}"
            # Names of files, libraries and levels are no keys of ours.
            if key not in {"files", "software", "requires"}:
                yield from _paths(item, f"{at}{key}.")


def forge(made, forged):
    """A copy of a release whose stated epsilon is smaller than its noise gives."""
    forged.mkdir()
    for file in made.iterdir():
        (forged / file.name).write_bytes(file.read_bytes())
    text = (made / "manifest.json").read_text("utf-8")
    (forged / "manifest.json").write_text(text.replace('"epsilon": 1.0', '"epsilon": 0.5'), "utf-8")
