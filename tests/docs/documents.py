"""Documents that are run as a reader would: files saved, commands typed, snippets executed.

What counts, in the order of the page:

- a block with a title (```csv title="areas.csv"```) is a file to save;
- in a `console` block, lines that start with `$ ` are typed, the rest is what they print;
- a `python` block is executed, all of a page in one namespace; a `text` block right behind it
  is what it prints;
- `<!-- not run: reason -->` before a block leaves it out.

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
    r"^(?P<skip><!-- not run: .+? -->\n+)?(?P<indent> *)```(?P<info>[a-z][^\n]*)\n"
    r"(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="(?P<name>[^"]+)"')
_NUMBER = re.compile(r"\d[\d,.]*(?:e[-+]?\d+)?%?")
#: Commands that print the same every time.
_NOISELESS = ("inftda plan", "inftda make", "inftda areas", "inftda --version")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    kind: str
    title: str | None
    body: str
    line: int
    is_run: bool
    follows_directly: bool


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    end = 0
    for match in _BLOCK.finditer(text):
        title = _TITLE.search(match["info"])
        body = re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE)
        found.append(
            Block(
                kind=match["info"].split()[0],
                title=title["name"] if title else None,
                body=body,
                line=text.count("\n", 0, match.start("info")) + 1,
                is_run=not match["skip"],
                follows_directly=not text[end : match.start()].strip(),
            )
        )
        end = match.end()
    return found


def commands_of(body: str) -> list[tuple[str, str]]:
    """Commands of a console block with what they are said to print."""
    body = body.replace("\\\n", " ")
    parts = re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0].strip(), part.partition("\n")[2]) for part in parts]


def shape(text: str) -> list[str]:
    """Lines with numbers and the width of columns taken out."""
    return [" ".join(_NUMBER.sub("#", line).split()) for line in text.strip().splitlines()]


def matches(said: list[str], printed: list[str]) -> bool:
    """Whether lines are as said; `...` stands for any lines."""
    if not said:
        return not printed
    if said[0] == "...":
        return any(matches(said[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and said[0] == printed[0] and matches(said[1:], printed[1:])


def check_output(said: str, printed: str, *, where: str, is_exact: bool = False) -> None:
    """Complain if a command or snippet prints something else than its page says."""
    if not said.strip():
        return
    lines = (
        (lambda text: [line.rstrip() for line in text.strip().splitlines()]) if is_exact else shape
    )
    assert matches(lines(said), lines(printed)), f"{where} prints\n{printed}\ninstead of\n{said}"


class Reader:
    """Follows one page in the current folder."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.namespace: dict[str, Any] = {"__name__": "__page__"}
        self.n_run = 0

    def follow(self, blocks: list[Block]) -> None:
        """Do what the blocks say, in order."""
        printed = ""
        for block in blocks:
            where = f"{self.name}:{block.line}"
            if not block.is_run:
                continue
            if block.title:
                Path(block.title).parent.mkdir(parents=True, exist_ok=True)
                Path(block.title).write_text(block.body, encoding="utf-8")
            elif block.kind == "console":
                self._type_all(block, where)
            elif block.kind == "python":
                printed = self._execute(block, where)
            elif block.kind == "text" and block.follows_directly:
                check_output(block.body, printed, where=where)

    def _type_all(self, block: Block, where: str) -> None:
        for command, said in commands_of(block.body):
            printed = type_command(command, where)
            is_exact = command.startswith(_NOISELESS)
            check_output(said, printed, where=f"{where} ({command})", is_exact=is_exact)
            self.n_run += 1

    def _execute(self, block: Block, where: str) -> str:
        sink = StringIO()
        # Line numbers in a traceback are those of the page.
        code = compile("\n" * block.line + block.body, where, "exec")
        with redirect_stdout(sink):
            exec(code, self.namespace)
        self.n_run += 1
        return sink.getvalue()


def type_command(command: str, where: str) -> str:
    """Run a command line and give what it prints; it must succeed.

    The program itself is called in this process, which saves a second each time.
    """
    words = shlex.split(command, comments=True)
    if words[0] == "inftda" and not set(words) & {"|", ">", "&&"}:
        sink = StringIO()
        with redirect_stdout(sink):
            code = run(words[1:])
        assert code == 0, f"{where}: {command} ends with {code}"
        return sink.getvalue()
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, f"{where}: {command}\n{done.stdout}{done.stderr}"
    return done.stdout


def environment() -> dict[str, str]:
    """As in a shell where the project's environment is active."""
    programs = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
