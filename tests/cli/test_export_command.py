"""`inftda export` as it is typed."""

import json


def test_a_release_becomes_a_folder_and_its_files_are_listed(cli, released, tmp_path):
    out = tmp_path / "csv"
    done = cli("export", released, "--to", "csv", "--out", out, "--runs", 1, "--seconds", 0)
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == f"Written:    {out / 'areas.csv'}"
    assert len(done.out.splitlines()) == len(list(out.iterdir()))
    assert cli("export", released, "--to", "csv", "--out", out).code == 2
    quiet = cli(
        "export", released, "--to", "od", "--out", out, "--force", "--no-intervals",
        "--level", "region", "--quiet", "--title", "Ways to work", "--licence", "CC0-1.0",
    )  # fmt: skip
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    package = json.loads((out / "datapackage.json").read_text())
    assert (package["title"], package["licenses"]) == ("Ways to work", [{"name": "CC0-1.0"}])


def test_wrong_use_is_one_clear_error_and_writes_nothing(cli, released, tmp_path):
    before = {*tmp_path.iterdir()}
    wrong = {
        ("--to", "xls"): "there is no export to 'xls'",
        ("--to", "flowmap"): "give --centroids",
        ("--to", "csv", "--level", "town"): "there is no level 'town'",
        ("--to", "flowmap", "--centroids", tmp_path / "no.csv"): "there is no file",
    }
    for options, message in wrong.items():
        done = cli("export", released, "--out", tmp_path / "out", *options)
        assert done.code == 2, done.err
        assert done.err.startswith("error: ")
        assert message in done.err
        assert {*tmp_path.iterdir()} == before
