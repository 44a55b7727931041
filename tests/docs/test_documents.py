"""README, tutorial and how-tos do what they say."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from documents import (
    ROOT,
    Reader,
    blocks_of,
    check_output,
    commands_of,
    environment,
    matches,
    shape,
)

#: Run elsewhere: `make demo` and `make test` below, Spark by its own tests; and reports of long
#: runs, which say what was typed but are not to be typed again here.
MAKE = re.compile(r"^make [a-z-]+")
ELSEWHERE = {
    "docs/how-to/spark.md",
    "docs/results.md",
    "docs/performance.md",
    "docs/explanation/audit.md",
}
MUST_RUN = ("README.md", "docs/tutorial.md")
SOON = ("docs/tutorial.md", "docs/how-to/areas.md", "docs/how-to/use-a-release.md")


def pages():
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = [path.relative_to(ROOT).as_posix() for path in paths]
    return [name for name in names if name not in ELSEWHERE and runnable(read(name))]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def runnable(text):
    return [
        block for block in blocks_of(text) if block.kind in {"console", "python"} and block.is_run
    ]


def tiered(name):
    """README in every run, some pages before every push, the others with everything."""
    tiers = {"README.md": []} | {page: [pytest.mark.slow] for page in SOON}
    return pytest.param(name, marks=tiers.get(name, [pytest.mark.nightly]))


@pytest.mark.parametrize("name", [*map(tiered, pages())])
def test_a_page_does_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    blocks = [block for block in blocks_of(read(name)) if not is_make(block)]
    reader = Reader(name)
    reader.follow(blocks)
    assert reader.n_run


def is_make(block):
    return block.kind == "console" and all(
        MAKE.match(command) for command, _ in commands_of(block.body)
    )


@pytest.mark.parametrize("name", MUST_RUN)
def test_nothing_in_readme_and_tutorial_is_left_out(name):
    blocks = blocks_of(read(name))
    assert all(block.is_run for block in blocks)
    assert {"console", "python"} <= {block.kind for block in blocks}
    assert {*SOON} <= {*pages()}


def test_the_readme_names_the_two_commands_and_they_exist():
    typed = [command for block in blocks_of(read("README.md")) if is_make(block)
             for command, _ in commands_of(block.body)]  # fmt: skip
    targets = [command.split()[1] for command in typed]
    assert targets == ["demo", "test"]
    for target in targets:
        # Set up already, or no test would run; `test` itself is what runs this.
        planned = subprocess.run(
            ["make", "--dry-run", "-o", ".venv/.run", "-o", ".venv/.dev", target],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert {"demo": "inftda demo", "test": "pytest"}[target] in planned


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".venv/bin/inftda").exists(), reason="make demo runs in .venv")
def test_make_demo_runs_the_whole_job(tmp_path):
    """In a copy of the Makefile's folder, so that nothing of the checkout is touched."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    done = subprocess.run(
        ["make", "-o", ".venv/.run", "demo"],
        cwd=tmp_path, capture_output=True, text=True, check=True, env=environment(),
    )  # fmt: skip
    assert "Guarantee:  epsilon = 1" in done.stdout
    assert (tmp_path / "demo-output/release/manifest.json").exists()


def test_every_picture_of_the_readme_is_there():
    for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", read("README.md")):
        assert (ROOT / target).is_file(), target


def test_every_link_of_the_readme_leads_somewhere():
    for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)#]+)[^)]*\)", read("README.md")):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_sentences_stand_on_lines_of_their_own():
    """So that changes can be read line by line."""
    names = ["README.md", "docs/index.md", "docs/tutorial.md", "docs/architecture.md"]
    names += ["docs/explanation/how-it-works.md", "docs/explanation/accounting.md"]
    names += ["docs/explanation/glossary.md", "docs/reference/manifest.md"]
    ours = [ROOT / name for name in names]
    ours += [path for path in (ROOT / "docs/how-to").glob("*.md") if path.name != "spark.md"]
    for path in ours:
        for number, line in enumerate(prose(path.read_text(encoding="utf-8")), start=1):
            assert not re.search(r"[a-z`)]\. [A-Z]", line), f"{path.name}, line {number}: {line}"


def prose(text):
    """Lines with code, tables, headings and HTML blanked."""
    is_code = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        hidden = is_code or line.lstrip().startswith(("|", "#", "<", "```"))
        yield "" if hidden else line


def test_a_changed_word_in_an_output_is_noticed_and_a_changed_number_is_not():
    said = "Released:   5 flows between 3 towns\n...\nFiles:      out\n"
    check_output(said, "Released:   1,234 flows between 3 towns\nx\ny\nFiles: out\n", where="here")
    with pytest.raises(AssertionError, match="here"):
        check_output(said, "Published:   5 flows between 3 towns\nFiles: out\n", where="here")
    assert not matches(shape("a 1\nb 2"), shape("a 1\nb 2\nc 3"))


def test_a_number_is_compared_where_there_is_no_noise():
    with pytest.raises(AssertionError):
        check_output("sigma 17.67", "sigma 17.68", where="here", is_exact=True)


@pytest.mark.slow
def test_a_failing_command_and_a_failing_snippet_are_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in ("```console\n$ inftda query nowhere\n```\n", "```console\n$ false\n```\n"):
        with pytest.raises(AssertionError):
            Reader("page").follow(blocks_of(text))
    with pytest.raises(NameError):
        Reader("page").follow(blocks_of("```python\nnobody\n```\n"))


def test_titled_blocks_are_files_and_skipped_blocks_are_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = '```csv title="a/b.csv"\nx\n1\n```\n'
    text += "<!-- not run: needs a server -->\n```console\n$ false\n```\n"
    Reader("page").follow(blocks_of(text))
    assert Path("a/b.csv").read_text() == "x\n1\n"
