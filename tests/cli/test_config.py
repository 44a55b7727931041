"""One configuration for all commands, and completion by the shell."""

import os
import subprocess
import sys

import pytest

import inftda


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "ours.toml"
    path.write_text(
        "areas = 'areas.csv'\nepsilon = 1\ndelta = 1e-6\nneighbours = 'add-remove'\n"
        "[release]\nflows = 'flows.csv'\nout = 'made'\nsplit = [1, 1, 1, 1, 2]\n"
        "[report]\nrelease = 'made'\nout = 'page.html'\n"
    )
    (tmp_path / "areas.csv").write_text("region,town\nN,001\nN,002\nS,003\n")
    (tmp_path / "flows.csv").write_text("origin,destination,count\n001,002,30\n003,003,50\n")
    return path


def test_one_configuration_serves_plan_release_and_report(done, config, tmp_path):
    for command in ("plan", "release", "report"):
        done(f"{command} --config {config.name}")
    assert (tmp_path / "page.html").exists()
    plan = inftda.open_release(tmp_path / "made").manifest.plan
    assert (plan.epsilon, plan.unit.neighbours, len(plan.levels)) == (1, "add-remove", 5)


@pytest.mark.slow  # six commands, with what they simulate
def test_the_same_configuration_serves_those_who_read_the_release(done, config, tmp_path):
    config.write_text(
        "measurements = 'all'\n" + config.read_text() +
        "estimate = 'estimated'\n"  # an option of the last section, not one of its own
        "[estimate]\nrelease = 'made'\nout = 'estimated'\n"
        "[export]\nsource = 'made'\nout = 'exported'\nto = 'csv'\n"
        "level = 'town'\nintervals = false\n"
        "[preview]\nstand-in = 'flows.csv'\nepsilon = [1, 2]\nruns = 1\n"
        "[compare]\ntruth = 'flows.csv'\nmethods = ['round:5', 'inftda']\nout = 'compared'\n"
    )  # fmt: skip
    for command in ("release", "estimate", "report", "export", "preview", "compare"):
        done(f"{command} --config {config.name}")
    assert inftda.open_estimate("estimated").tree == inftda.open_release("made").tree
    assert [path.name for path in tmp_path.glob("exported/flows-*.csv")] == ["flows-2-town.csv"]
    assert (tmp_path / "compared").is_dir()


def test_an_option_named_like_a_command_may_stand_among_the_shared_keys(done, typed, config):
    config.write_text("estimate = 'nothing'\n" + config.read_text())
    done(f"release --config {config.name}")
    assert "nothing" in typed(f"report --config {config.name}").err


def test_flags_win_over_a_configuration_and_sections_over_what_is_shared(done, config):
    assert "epsilon = 2" in done(f"plan --config {config.name} --epsilon 2")
    config.write_text(config.read_text() + "[plan]\nepsilon = 3\n")
    assert "epsilon = 3" in done(f"plan --config {config.name}")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("epsilom = 1\n", "epsilom"),
        ("[report]\ntitel = 1\n", "'title'"),
        ("report = 1\n", "[report]"),
    ],
)
def test_a_key_that_no_command_knows_is_refused(typed, config, text, word):
    config.write_text(text)
    done = typed(f"report RELEASE --config {config.name}")
    assert done.code == 2
    assert word in done.err


#: What the script does that is installed.
_AS_INFTDA = "import sys; sys.argv[0] = 'inftda'; from inftda.cli.main import main; main()"


@pytest.mark.parametrize(
    ("words", "offered"), [("re", ["release", "report"]), ("release --eps", ["--epsilon"])]
)
def test_the_shell_completes_commands_and_options(words, offered):
    typed = f"inftda {words}"
    variables = {"_INFTDA_COMPLETE": "bash_complete", "COMP_WORDS": typed}
    done = subprocess.run(
        [sys.executable, "-c", _AS_INFTDA],
        env={**os.environ, **variables, "COMP_CWORD": str(len(typed.split()) - 1)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert [line.partition(",")[2] for line in done.stdout.split()] == offered
