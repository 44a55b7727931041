"""Commands follow from functions: what is given arrives, and nothing else."""

import inspect
from typing import Annotated

import click
import pytest

import inftda
from inftda.cli import main
from inftda.cli.command import Call, command
from inftda.errors import InftdaError
from inftda.options import RENAMED, Group, Option, documented, numbers, pairs


def pair(
    left: Annotated[int, Option("L.")] = 1, right: Annotated[str, Option("R.", panel="More")] = "r"
):
    return left, right


@documented
def function(
    table: Annotated[str, Option("T.", metavar="TABLE", is_argument=True)],
    *,
    size: Annotated[float, Option("S.")] = 0.5,
    sizes: Annotated[tuple, Option("Several.", "N,N,...", numbers)] = (),
    named: Annotated[dict | None, Option("N.", "A=B", pairs, is_repeated=True)] = None,
    is_on: Annotated[bool, Option("O. In Python also a number.", spelling="--on/--off")] = True,
    several: Annotated[list, Group(pair, is_several=True)] = (),
    from_: Annotated[str | None, Option("F.")] = None,
    hidden: int = 3,
):
    """Do it."""
    return dict(locals())


seen = []


@command(function)
def shown(call: Call, *, loud: Annotated[bool, Option("Loud.")] = False) -> None:
    """Show it."""
    seen.append((call.given, loud, call()))


def given(*arguments):
    shown.main([*map(str, arguments)], standalone_mode=False)
    return seen[-1][0]


def test_only_what_is_given_is_passed_on():
    assert given("t.csv") == {"table": "t.csv"}
    assert given("t.csv", "--size", 2, "--off", "--from", "x") == {
        "table": "t.csv", "size": 2.0, "is_on": False, "from_": "x",
    }  # fmt: skip
    assert seen[-1][2]["hidden"] == 3


def test_texts_are_parsed_and_groups_are_made():
    values = given("t", "--sizes", "1,2.5", "--named", "a=1", "--named", "b=2")
    assert (values["sizes"], values["named"]) == ([1, 2.5], {"a": "1", "b": "2"})
    values = given("t", "--left", "1,2", "--right", "x")
    assert values["several"] == [(1, "x"), (2, "x")]


def test_help_is_in_panels_and_leaves_out_what_concerns_python():
    text = shown.get_help(click.Context(shown))
    assert text.index("Options:") < text.index("More:") < text.index("--right")
    assert "In Python" not in text
    assert "In Python also a number." in function.__doc__
    assert "[default: 0.5]" in text


@pytest.mark.parametrize(
    ("message", "spelled"),
    [
        ("give `out=`", "give --out"),
        ("use `unplaceable='outside'`", "use --unplaceable outside"),
        ("or `count=None`, `from_='a'`", "or --count none, --from a"),
        ("add `allow_confidential=True`", "add --allow-confidential"),
    ],
)
def test_a_message_names_options_as_the_command_line_spells_them(
    message, spelled, monkeypatch, capsys
):
    def fail(*_, **__):
        raise InftdaError(message)

    monkeypatch.setattr(main.app, "main", fail)
    assert main.run(["release"]) == 2
    assert capsys.readouterr().err == f"error: {spelled}\n"


@pytest.mark.parametrize("name", ["plan", "preview", "compare"])
def test_whatever_decides_about_a_release_can_be_tried_out(name):
    """All options of a release but those of the table, the folder, the machine and the ledger."""
    release, other = (
        {one.name for one in main.app.get_command(None, word).params} for word in ("release", name)
    )
    of_this_release = {
        "flows", "counts", "edition", "encoding", "sheet", "skip_rows", "matrix", "transposed",
        "sql", "database", "out",
        "force", "sign", "measurements", "threads", "engine", "master",
        "not_private_seed", "ledger", "dataset", "quiet", "allow_large_delta",
    }  # fmt: skip
    assert release - of_this_release <= other


@pytest.fixture
def renamed(monkeypatch):
    """A function of which an option has another name since the last version, and its command."""
    monkeypatch.setitem(RENAMED, "former", "present_name")

    @documented
    def function(*, present_name: Annotated[float | None, Option("P.")] = None):
        """Do it."""
        return present_name

    @command(function)
    def show(call: Call) -> None:
        """Show it."""
        seen.append(call())

    return function, show


def test_a_former_name_works_and_its_warning_names_the_new_one(renamed, tmp_path, capsys):
    function, show = renamed
    assert function(present_name=0.1) == 0.1
    words = "was renamed to {}; a later version will refuse the former name"
    with pytest.warns(FutureWarning, match=f"`former=` {words.format('`present_name=`')}"):
        assert function(former=0.2) == 0.2
    said = f"--former {words.format('--present-name')}"
    config = tmp_path / "ours.toml"
    config.write_text("former = 0.3")
    for line, value in ((["--former", "0.4"], 0.4), (["--former=0.5"], 0.5)):
        show.main(line, standalone_mode=False)
        assert (seen.pop(), said in capsys.readouterr().err) == (value, True)
    show.main(["--config", str(config)], standalone_mode=False)
    assert (seen.pop(), said in capsys.readouterr().err) == (0.3, True)


@pytest.mark.usefixtures("renamed")
def test_a_former_name_is_unknown_where_the_new_one_is():
    with pytest.raises(TypeError, match="former"):
        function("t.csv", former=1)
    with pytest.raises(click.NoSuchOption):
        shown.main(["t.csv", "--former", "1"], standalone_mode=False)


def test_every_former_name_is_one_of_a_release_now():
    names = inspect.signature(inftda.release).parameters
    assert names.keys() >= {*RENAMED.values()}
    assert names.keys().isdisjoint(RENAMED)
