"""`inftda dossier` as it is typed: a template first, then the dossier."""


def test_a_template_is_printed_or_written_once(cli, tmp_path):
    printed = cli("dossier", "--template")
    assert printed.code == 0
    assert 'name = ""' in printed.out
    out = tmp_path / "about.toml"
    assert cli("dossier", "--template", "--out", out).code == 0
    assert out.read_text() == printed.out
    assert cli("dossier", "--template", "--out", out).code == 2


def test_a_filled_template_gives_a_dossier(cli, released, tmp_path):
    cli("dossier", "--template", "--out", tmp_path / "about.toml")
    text = (tmp_path / "about.toml").read_text()
    for key in ("name", "intended_use", "data_product_region", "description"):
        text = text.replace(f'\n{key} = ""', f'\n{key} = "Some {key}"')
    text = text.replace('publication_date = ""', "publication_date = 2026-01-31")
    text = text.replace("data_curators = []", 'data_curators = ["Office"]')
    text = text.replace("registry_authors = []", 'registry_authors = ["Clerk"]')
    (tmp_path / "about.toml").write_text(text)
    done = cli(
        "dossier", released, "--about", tmp_path / "about.toml", "--out", tmp_path / "dossier",
        "--no-selftest", "--runs", 1, "--seconds", 0,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == f"Written:    {tmp_path / 'dossier' / 'registry.yaml'}"
    assert len(list((tmp_path / "dossier").iterdir())) == 3


def test_wrong_use_is_one_clear_error(cli, released, tmp_path):
    (tmp_path / "about.toml").write_text('name = "x"\n')
    wrong = {
        (released,): "give --about and --out",
        (released, "--template"): "leave out RELEASE",
        (
            released,
            "--about",
            tmp_path / "about.toml",
            "--out",
            tmp_path / "d",
        ): "missing required field `data_curators`",
    }
    for arguments, message in wrong.items():
        done = cli("dossier", *arguments)
        assert done.code == 2
        assert message in done.err
    assert not (tmp_path / "d").exists()
