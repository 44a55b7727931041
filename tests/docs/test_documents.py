"""README, tutorial and guides do what they say."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from documents import ROOT, blocks_of, check_output, environment, follow, read

#: README in every run, some pages before every push, the others with everything.
SOON = (
    "docs/tutorial.md",
    "docs/guides/prepare.md",
    "docs/guides/query.md",
    "docs/guides/verify.md",
    "docs/guides/evaluate.md",
)


def pages():
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for name in (path.relative_to(ROOT).as_posix() for path in paths):
        if any(
            block.is_run and block.kind in {"console", "python"} for block in blocks_of(read(name))
        ):
            mark = pytest.mark.slow if name in SOON else pytest.mark.nightly
            yield pytest.param(name, marks=[] if name == "README.md" else mark)


@pytest.mark.parametrize("name", [*pages()])
def test_a_page_does_what_it_says(name, tmp_path, monkeypatch):
    if any(block.is_run and block.kind == "r" for block in blocks_of(read(name))):
        missing = subprocess.run([ROOT / ".ci/missing"], capture_output=True, text=True, check=True)
        if "r-cran-sf" in missing.stdout:
            pytest.skip("there is no R with sf")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    follow(name, read(name))


@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md"])
def test_nothing_in_readme_and_tutorial_is_left_out(name):
    assert "<!-- not run" not in read(name)
    assert {"console", "python"} <= {block.kind for block in blocks_of(read(name)) if block.is_run}


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".venv/bin/inftda").exists(), reason="make demo runs in .venv")
def test_the_first_command_of_the_readme_runs_the_whole_job(tmp_path):
    """In a copy of the Makefile's folder, so that nothing of the checkout is touched."""
    assert "```console\n$ make demo\n$ make test\n```" in read("README.md")
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    done = subprocess.run(
        ["make", "-o", ".venv/.run", "demo"],
        cwd=tmp_path, capture_output=True, text=True, check=True, env=environment(),
    )  # fmt: skip
    assert "(epsilon = 1, delta = 1e-08)" in done.stdout
    assert (tmp_path / "demo-output/release/manifest.json").exists()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_every_link_and_picture_outside_of_the_site_is_there(name):
    """Those of the site are checked when it is built."""
    for target, anchor in re.findall(r"\]\((?!https:)([^)#]*)#?([^)]*)\)", read(name)):
        assert (ROOT / target).exists(), target
        headings = re.findall(r"^#+ (.+)$", read(target or name), re.MULTILINE) if anchor else []
        slugs = [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
        assert not anchor or anchor in slugs, f"{target}#{anchor}"


def test_a_changed_word_in_an_output_is_noticed_and_a_changed_number_where_there_is_no_noise():
    said = "Released:   5 flows between 3 towns\n...\nFiles:      out\n"
    check_output(said, "Released:   1,234 flows between 3 towns\nx\ny\nFiles: out\n", "here")
    for said_instead, printed, is_exact in (
        (said, "Published:   5 flows between 3 towns\nFiles: out\n", False),
        ("a 1\nb 2", "a 1\nb 2\nc 3", False),
        ("sigma 17.67", "sigma 17.68", True),
    ):
        with pytest.raises(AssertionError, match="here"):
            check_output(said_instead, printed, "here", is_exact=is_exact)


def test_failures_are_noticed_files_saved_and_skipped_blocks_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in ("```console\n$ inftda query nowhere\n```\n", "```console\n$ false\n```\n"):
        with pytest.raises(AssertionError):
            follow("page", text)
    with pytest.raises(NameError):
        follow("page", "```python\nnobody\n```\n")
    skipped = "<!-- not run: needs a server -->\n```console\n$ false\n```\n"
    follow("page", '```csv title="b.csv"\nx\n1\n```\n' + skipped)
    assert Path("b.csv").read_text() == "x\n1\n"
