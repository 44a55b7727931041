"""Pages that are followed as a reader would: files saved, commands typed, snippets executed.

What counts, in the order of the page:

- a block with a title (```csv title="areas.csv"```) is a file to save;
- in a `console` block, lines that start with `$ ` are typed, the rest is what they print;
- a `python` block is executed, all of a page in one namespace, and so is an `r` block; a `text`
  block right behind it is what it prints;
- `<!-- not run: reason -->` before a block leaves it out, and so do `make` and `pip install`, which
  the reader is not to type in these tests.

Noise differs from run to run, so printed lines are compared with numbers taken for equal; a
line `...` stands for any lines. What has no noise in it is compared as it is.
"""

import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from inftda.cli.main import run
from patience import PATIENCE

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"^(?P<skip><!-- not run: .+? -->\n+)?```(?P<kind>[a-z]+)(?: title=\"(?P<title>[^\"]+)\")?\n"
    r"(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"\d[\d,.]*(?:e[-+]?\d+)?%?")
#: Commands that print the same every time.
_NOISELESS = ("inftda plan", "inftda areas")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    kind: str
    title: str | None
    body: str
    line: int
    is_run: bool
    follows_directly: bool


def read(name: str) -> str:
    """The text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found, end = [], 0
    for match in _BLOCK.finditer(text):
        is_run = not match["skip"] and not match["body"].startswith(("$ make ", "$ pip install "))
        line = text.count("\n", 0, match.start("kind")) + 1
        directly = not text[end : match.start()].strip()
        found.append(Block(match["kind"], match["title"], match["body"], line, is_run, directly))
        end = match.end()
    return found


def commands_of(body: str) -> list[tuple[str, str]]:
    """Commands of a console block with what they are said to print."""
    parts = re.split(r"^\$ ", body.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0].strip(), part.partition("\n")[2]) for part in parts]


def follow(name: str, text: str) -> None:
    """Do what a page says, in the current folder."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    printed, r_lines = "", ""
    for block in blocks_of(text):
        where = f"{name}:{block.line}"
        if not block.is_run:
            continue
        if block.title:
            Path(block.title).write_text(block.body, encoding="utf-8")
        elif block.kind == "console":
            for command, said in commands_of(block.body):
                is_exact = command.startswith(_NOISELESS)
                check_output(said, typed(command, where), f"{where} ({command})", is_exact=is_exact)
        elif block.kind == "python":
            sink = StringIO()
            # Line numbers in a traceback are those of the page.
            code = compile("\n" * block.line + block.body, where, "exec")
            with redirect_stdout(sink):
                exec(code, namespace)
            printed = sink.getvalue()
        elif block.kind == "r":
            printed = printed_by_r(r_lines, block.body, where)
            r_lines += block.body
        elif block.kind == "text" and block.follows_directly:
            check_output(block.body, printed, where)


def typed(command: str, where: str) -> str:
    """What a command prints; it must succeed.

    The program itself is called in this process, which saves a second each time.
    """
    words = shlex.split(command)
    if words[0] == "inftda":
        sink = StringIO()
        with redirect_stdout(sink):
            code = run(words[1:])
        assert code == 0, f"{where}: {command} ends with {code}"
        return sink.getvalue()
    done = subprocess.run(
        ["/bin/bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, f"{where}: {command}\n{done.stdout}{done.stderr}"
    return done.stdout


def printed_by_r(before: str, body: str, where: str) -> str:
    """What a block of R prints, after the blocks before it."""
    mark = "what the block prints:"
    done = subprocess.run(
        ["Rscript", "--vanilla", "-"], input=f'{before}\ncat("{mark}\\n")\n{body}',
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{where}:\n{done.stderr}"
    return done.stdout.partition(mark)[2]


def check_output(said: str, printed: str, where: str, *, is_exact: bool = False) -> None:
    """Complain if something else is printed than a page says; nothing said is no claim."""

    def lines(text: str) -> list[str]:
        stripped = [line.rstrip() for line in text.strip().splitlines()]
        return stripped if is_exact else [_shape(line) for line in stripped]

    if said.strip():
        assert _matches(lines(said), lines(printed)), f"{where} prints\n{printed}\nnot\n{said}"


def _shape(line: str) -> str:
    """A line with numbers and the width of columns taken out."""
    return " ".join(_NUMBER.sub("#", line).split())


def _matches(said: list[str], printed: list[str]) -> bool:
    if not said:
        return not printed
    if said[0] == "...":
        return any(_matches(said[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and said[0] == printed[0] and _matches(said[1:], printed[1:])


def environment() -> dict[str, str]:
    """As in a shell where the project's environment is active."""
    programs = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
