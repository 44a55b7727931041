# ruff: noqa: INP001 - a hook of the documentation builder, not a package
"""Writes the reference of the command line from the program itself.

A hook of the documentation builder: the page `reference/cli.md` exists only while the site is
being built, so it cannot fall behind the program. Run as a script it prints the page.
"""

from collections.abc import Iterator
from typing import Any

import click

PAGE = "reference/cli.md"
INTRODUCTION = """\
# Command line

Made from the program: `inftda COMMAND --help` says the same.
Results go to standard output, progress and messages to standard error.

| exit code | meaning |
|---|---|
| 0 | done |
| 2 | wrong usage or input: one message says what, where and what to do |
| 1 | anything else: interrupted, out of memory, a release that is too new to verify, a bug |

If `release` fails, its message says what was published, charged to a ledger and left on disk.

`INFTDA_DEBUG=1` in the environment shows the details of a bug, which may be confidential.
"""


def on_files(files: Any, config: Any) -> Any:
    """Add the page to the site; called by the documentation builder."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - the script needs no builder

    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """The whole page as Markdown."""
    from inftda.cli.main import app  # noqa: PLC0415 - the hook is loaded for every page

    return "\n".join([INTRODUCTION, *_sections(app, "inftda")])


def _sections(command: Any, path: str) -> Iterator[str]:
    """A section for every command that does something, groups opened."""
    for name in command.list_commands(None):
        inner = command.get_command(None, name)
        where = f"{path} {name}"
        if isinstance(inner, click.Group):
            yield from _sections(inner, where)
        else:
            yield from _section(inner, where)


def _section(command: Any, where: str) -> Iterator[str]:
    arguments = [p for p in command.params if not p.opts[0].startswith("-")]
    options = [p for p in command.params if p.opts[0].startswith("-")]
    words = [_argument(p) for p in arguments]
    yield f"## {where}\n"
    yield f"{command.help}\n"
    yield f"```text\n{' '.join([where, '[OPTIONS]', *words])}\n```\n"
    if arguments:
        yield from _table("argument", [(f"`{_argument(p)}`", p) for p in arguments])
    panels: dict[str, list[Any]] = {}
    for option in options:
        panels.setdefault(getattr(option, "panel", None) or "option", []).append(option)
    for title, members in panels.items():
        yield from _table(title, [(_option(p), p) for p in members])


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _option(parameter: Any) -> str:
    names = " / ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    value = parameter.metavar or parameter.name.strip("_").rpartition("_")[2].upper()
    return f"{names} `{value}`"


def _table(title: str, rows: list[tuple[str, Any]]) -> Iterator[str]:
    lines = [f"| {title} | meaning |", "|---|---|"]
    # Names are code, in which a bar does not end the cell.
    lines += [f"| {name} | {_cell(_meaning(parameter))} |" for name, parameter in rows]
    yield "\n".join(lines) + "\n"


def _meaning(parameter: Any) -> str:
    return str(getattr(parameter, "meaning", None) or parameter.help)


def _cell(text: str) -> str:
    """Text that does not end the cell of a table."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(page())  # noqa: T201 - that is its job
