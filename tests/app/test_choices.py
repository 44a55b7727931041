"""One document for forms, drawer and jobs: each of them stands for the same call."""

import ast
import json
import shlex

import pytest

import inftda
from inftda.app.document import (
    COMMANDS,
    LEFT_OUT,
    PLACES,
    checked,
    completed,
    drawer,
    from_toml,
    given,
    options_of,
    to_toml,
)
from inftda.app.forms import all_fields
from inftda.cli.main import run
from inftda.errors import InftdaError

#: A document in which every kind of option occurs.
DOCUMENT = {
    "areas": "my areas.csv", "axis": ["mode=modes.csv"], "epsilon": "1.5", "delta": "1e-7",
    "neighbours": "add-remove", "trips": "3", "exactly": False, "distinct": True,
    "split": "1,1,2", "cross_tables": "1/10",
    "unplaceable": ["origin=outside"], "ledger": "l.ledger",
    "dataset": "census", "origin": "lon,lat",
    "release": {
        "flows": "flows 'x'.csv", "out": "made", "encoding": "latin-1", "person": "who",
        "not_private_seed": "7", "counts": 'a "b"', "force": True,
    },
    "preview": {"stand_in": "old.csv", "epsilon": "0.5,1", "split": ["log", "pairs"]},
    "export": {"to": "csv", "out": "files", "level": ["town", "a=b"], "intervals": False},
    "plan": {"beta": "0.1"},
}  # fmt: skip


def test_every_option_of_a_command_has_one_field_or_a_reason_to_have_none():
    shown = {
        (one.section, one.key) for pair in all_fields().values() for part in pair for one in part
    }
    keys = {key for _, key in shown}
    for command in ("release", "report", "export", "dossier", "preview", "verify"):
        rest = {*options_of(command)} - keys - LEFT_OUT
        assert rest <= {"neighbours", "exactly", "release", "source"}, command


def test_an_option_that_names_a_file_is_known_as_one():
    """A new one must be considered: only files below the start folder may be used."""
    named = {
        key
        for command in COMMANDS
        for key, one in options_of(command).items()
        if one.metavar in PLACES
    }
    texts = {
        key
        for command in COMMANDS
        for key, one in options_of(command).items()
        if one.kind is str and one.metavar not in PLACES
    }
    assert named == {
        "areas", "axis", "centroids", "estimate", "flows", "geojson", "html", "key", "ledger",
        "names", "out", "release", "sign", "source", "stand_in",
    }  # fmt: skip
    assert texts == {
        "accountant", "count", "counts", "cross_tables", "database", "dataset", "destination",
        "edition", "encoding", "engine", "hour", "level", "levels", "licence", "master",
        "measurements", "method", "neighbours", "once_per", "order", "origin", "person",
        "repeated_rows", "sheet", "split", "sql", "stand_in_level", "title", "to", "unplaceable",
        "want", "weekday", "epsilon", "rho", "sizes",
    } & texts  # fmt: skip


def test_what_is_saved_is_opened_as_it_was(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(to_toml(checked(DOCUMENT)))
    again = from_toml(path)
    for command in COMMANDS:
        whole = given(completed(DOCUMENT), command)
        assert given(again, command) == whole
        assert COMMANDS[command].__name__ == command


@pytest.mark.parametrize("command", [*COMMANDS])
def test_the_command_line_of_the_drawer_and_the_document_call_python_alike(
    command, monkeypatch, tmp_path
):
    """Both go through the command line; what it calls is compared with what Python is to call."""
    calls = []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_text(to_toml(DOCUMENT))

    def call(self, *_, **__):
        calls.append(self.given)
        raise InftdaError("called")

    monkeypatch.setattr("inftda.cli.command.Call.__call__", call)
    shown = drawer(DOCUMENT)["commands"][command]
    typed = shown["terminal"].replace("\\\n", " ")
    run(shlex.split(typed)[1:])
    run([command, "--config", "a.toml"])
    from_line, from_document = (
        {key: value for key, value in one.items() if key != "source" or command == "export"}
        for one in calls
    )
    assert json.dumps(from_line, default=repr) == json.dumps(from_document, default=repr)
    assert f"inftda.{command}(" in shown["python"]
    python = called_by(shown["python"])
    for name, value in from_line.items():
        assert str(list(value) if isinstance(value, tuple) else value) == str(python[name])


def called_by(script):
    """Arguments of the call in a script, by name."""
    (call,) = (
        node for node in ast.walk(ast.parse(script))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("inftda.")
        and ast.unparse(node.func).removeprefix("inftda.") in COMMANDS
    )  # fmt: skip
    from fractions import Fraction  # noqa: PLC0415 - as the script does

    names = [*options_of(ast.unparse(call.func).removeprefix("inftda."))]
    names = [name for name in ("flows", "release", "source") if name in names][:1]
    found = dict(zip(names, call.args, strict=False)) | {
        one.arg: one.value for one in call.keywords
    }
    known = {"inftda": inftda, "Fraction": Fraction}
    return {name: eval(ast.unparse(value), known) for name, value in found.items()}


def test_a_text_that_is_no_number_is_refused_as_on_the_command_line(
    app, document, capsys, folder, monkeypatch
):
    monkeypatch.chdir(folder)
    document["epsilon"] = "much"
    assert run(["plan", "--areas", "areas.csv", "--epsilon", "much", "--delta", "1e-6"]) == 2
    assert app.look(document)["plan"]["error"] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "part", "said"),
    [
        ({"areas": "nowhere.csv"}, "areas", "there is no file"),
        ({"areas": ""}, "areas", None),
        ({"origin": "home"}, "columns", "no column 'home'"),
        ({"delta": "0.9"}, "plan", "delta"),
        ({"delta": ""}, "plan", None),
        ({"trips": ""}, "unit", None),
        ({"split": "nonsense"}, "plan", "split"),
        ({"ledger": "nowhere.ledger", "dataset": "a"}, "ledger", "there is no ledger"),
    ],
)
def test_each_part_says_what_is_wrong_or_missing_and_no_release_is_offered(
    app, document, change, part, said
):
    found = app.look(document | change)
    assert "value" not in found[part]
    assert "value" not in found["sheet"]
    assert said is None or said in found[part]["error"]


def test_nothing_but_names_and_types_of_columns_is_shown(app, document):
    text = json.dumps(app.look(document))
    assert '{"name": "count", "type": "text"}' in text
    for cell in ("001", "300", "500"):
        assert cell not in text


def test_a_plan_says_what_the_command_says(app, document, capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    shown = app.look(document)
    run(
        shlex.split(shown["drawer"]["value"]["commands"]["plan"]["terminal"].replace("\\\n", " "))[
            1:
        ]
    )
    printed = capsys.readouterr().out
    plan = shown["plan"]["value"]
    assert plan["guarantee"] in printed
    for level in plan["levels"]:
        assert f"{level['max']:,}" in next(
            line for line in printed.splitlines() if line.startswith(level["name"])
        )


@pytest.mark.slow  # a search over many plans
def test_epsilon_is_found_for_a_wanted_error(app, document):
    found = app.ask("solve", {"document": document, "level": "town > town", "most": "50"})
    document["epsilon"] = found["epsilon"]
    levels = app.look(document)["plan"]["value"]["levels"]
    assert next(level["max"] for level in levels if level["name"] == "town > town") <= 50
    assert (
        "no level" in app.ask("solve", {"document": document, "level": "x", "most": "5"})["error"]
    )


def test_choices_are_saved_and_opened(app, document, folder):
    assert app.ask("save", {"document": document, "path": "mine.toml"}) == {"saved": "mine.toml"}
    assert app.ask("open", {"path": "mine.toml"})["epsilon"] == "1"
    (folder / "other.toml").write_text("nonsense = 1\n")
    assert "'nonsense'" in app.ask("open", {"path": "other.toml"})["error"]
    assert (
        "exists already" in app.ask("save", {"document": document, "path": "other.toml"})["error"]
    )


def test_a_path_that_looks_like_an_option_is_none():
    shown = drawer({"release": {"flows": "-x.csv", "counts": "-y"}})["commands"]["release"]
    assert shlex.split(shown["terminal"].replace("\\\n", " ")) == [
        "inftda", "release", "./-x.csv", "--counts=-y"
    ]  # fmt: skip
