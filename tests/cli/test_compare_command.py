"""`inftda compare` as it is typed."""

import json

import pytest

METHODS = "suppress:10,round:5,cell-key,inftda"


@pytest.fixture
def typed(country, cli, tmp_path):
    def call(*arguments):
        return cli(
            "compare", country.flows, "--areas", country.areas, "--methods", METHODS,
            "--epsilon", "1,5", "--delta", 1e-6, "--out", tmp_path / "figures", *arguments,
        )  # fmt: skip

    return call


def test_everything_is_marked(typed, tmp_path):
    done = typed("--html")
    assert done.code == 0, done.err
    assert done.out.startswith("CONFIDENTIAL")
    for name in ("suppress:10", "round:5", "cell-key:3", "inftda, epsilon 5"):
        assert name in done.out
    assert "have to say so" in done.out
    files = sorted((tmp_path / "figures").iterdir())
    assert [path.name for path in files] == [
        f"CONFIDENTIAL-methods.{ending}" for ending in ("csv", "html", "json", "parquet")
    ]
    page = files[1].read_text()
    assert page.count("CONFIDENTIAL: this page") == 2
    assert "<script" not in page
    data = json.loads(files[2].read_text())
    assert data["confidential"] is True
    assert [one["attack"] is None for one in data["methods"]] == [False] * 3 + [True] * 2


@pytest.mark.slow
def test_json_goes_to_standard_output_alone(typed):
    done = typed("--json")
    assert json.loads(done.out)["methods"][0]["method"] == "suppress:10"
    assert done.err == ""


def test_wrong_methods_and_tables_are_told_before_anything_is_written(cli, country, tmp_path):
    for arguments, words in (
        (["--methods", "magic"], "no method 'magic'"),
        (["--methods", "suppress:0"], "from 2 to"),
        (["--epsilon", "1"], "delta"),
    ):
        done = cli(
            "compare", country.flows, "--areas", country.areas, "--out", tmp_path / "x", *arguments
        )
        assert done.code == 2
        assert words in done.err
        assert not (tmp_path / "x").exists()
