"""What the app does is what the terminal does: jobs, cancelled ones, and the end of the server."""

import asyncio
import os
import platform
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import uvicorn

import inftda
from app_server import PROGRAM, started_app
from inftda.app import server
from inftda.privacy.budget import Budget
from inftda.privacy.ledger import Ledger
from inftda.privacy.unit import Unit
from patience import PATIENCE
from slow_table import write_slow_table

NO_NETWORK = Path(__file__).parents[1] / "leaks/no_network.py"
ENDED = "The app has ended.\n"


@pytest.fixture
def ledger(folder):
    path = folder / f"{time.monotonic_ns()}.ledger"
    Ledger.create(path).add("census", Unit(), Budget.make(epsilon=1, delta=1e-6))
    return path


@pytest.fixture
def slow_table(folder):
    write_slow_table(folder)
    return {"areas": "many.csv", "delta": "1e-8", "release": {"flows": "long.csv", "out": "slow"}}


def begin_to_draw(visitor, document, typed):
    """Start a release, and wait until it draws noise."""
    job = visitor.ask("run", {"command": "release", "document": document, "typed": typed})
    deadline = time.monotonic() + PATIENCE
    while not job.get("progress"):
        assert job.get("running"), job["error"]
        assert time.monotonic() < deadline
        time.sleep(0.05)
        job = visitor.ask("job")


def test_without_the_extra_one_message_names_it(tmp_path):
    code = "import sys; sys.modules['starlette'] = None; import inftda.cli.main as m; m.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "app", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: `inftda app` needs Starlette and uvicorn: pip install 'inftda-od[app]'"
    ]


def test_a_missing_folder_is_refused(tmp_path):
    done = subprocess.run(
        [*PROGRAM, "app", str(tmp_path / "x")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "there is no folder" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("idle", "running", "ends"), [(0, 0, False), (9e9, 0, True), (9e9, 1, False)]
)
def test_the_server_ends_after_an_hour_without_a_request_unless_a_job_is_under_way(
    tmp_path, monkeypatch, idle, running, ends
):
    app = server.App(tmp_path)
    app.last_request -= idle
    monkeypatch.setattr(server.Jobs, "is_running", bool(running))
    serving = server._Server(uvicorn.Config(app.routes()), app)
    assert asyncio.run(serving.on_tick(1)) is ends


@pytest.mark.slow
def test_a_seeded_release_of_the_app_the_terminal_and_python_are_one(app, folder, document):
    document["release"] |= {"not_private_seed": "7", "out": "by-app", "counts": "people"}
    found = app.look(document)
    assert found["sheet"]["value"]["is_private"] is False
    assert app.run("release", document, typed=found["sheet"]["value"]["type"])["ok"]
    shown = found["drawer"]["value"]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for name, command, text in (
        ("by-terminal", ["bash"], shown["commands"]["release"]["terminal"]),
        ("by-python", [sys.executable, "-"], shown["commands"]["release"]["python"]),
        ("by-toml", [*PROGRAM, "release", "--config", "/dev/stdin"], shown["toml"]),
    ):
        subprocess.run(
            command, input=text.replace("by-app", name), text=True, cwd=folder, check=True,
            env=environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        for file in sorted((folder / "by-app").iterdir()):
            if file.suffix == ".parquet":
                assert pq.read_table(file).equals(pq.read_table(folder / name / file.name))
            else:
                assert file.read_bytes() == (folder / name / file.name).read_bytes()
    assert "made with a seed" in app.run("verify", document)["error"]


@pytest.mark.slow
def test_a_release_charges_its_ledger_and_leads_to_all_that_follows(app, folder, document, ledger):
    document |= {"ledger": ledger.name, "dataset": "census"}
    document["release"]["out"] = "charged"
    document |= {
        "report": {"out": "page.html"}, "export": {"to": "csv", "out": "files"},
        "dossier": {"out": "papers", "selftest": False},
    }  # fmt: skip
    before = app.look(document)
    assert before["sheet"]["value"]["type"] == "census"
    assert "by 1 release" in before["ledger"]["value"]["after"]
    done = app.run("release", document, typed="census")
    assert done["ok"], done
    assert "Guarantee:" in done["answer"]
    assert len(Ledger(ledger).dataset("census").entries) == 1
    for command in ("verify", "report", "export", "dossier"):
        done = app.run(command, document)
        assert done["ok"], done
    verified = [
        line for line in app.run("verify", document)["answer"].splitlines() if line.startswith("ok")
    ]
    assert len(verified) == len(inftda.verify(folder / "charged")) > 10
    assert "census" in (folder / "papers/summary.md").read_text()
    assert (folder / "files/datapackage.json").exists()
    status, headers, text = app.send("GET", f"{app.path}shown/report")
    assert (status, text) == (200, (folder / "page.html").read_text())
    assert headers["content-security-policy"].startswith("sandbox allow-scripts")
    assert "connect-src" not in headers["content-security-policy"]
    # A second one does not fit into the budget, and is not offered.
    document["release"]["out"] = "again"
    found = app.look(document)
    assert (
        "nothing is left" in found["sheet"]["error"]
        or "its first release" in found["sheet"]["error"]
    )
    assert "error" in app.run("release", document, typed="census")
    assert not (folder / "again").exists()


@pytest.mark.slow
def test_two_tabs_that_release_at_once_release_once(app, document, ledger):
    document |= {"ledger": ledger.name, "dataset": "census"}
    document["release"]["out"] = f"twice-{time.monotonic_ns()}"
    body = {"command": "release", "document": document, "typed": "census"}
    with ThreadPoolExecutor(4) as pool:
        begun = [*pool.map(lambda _: app.ask("run", body), range(4))]
    assert sum("command" in one for one in begun) == 1
    refused = next(one for one in begun if "command" not in one)
    assert "another tab" in refused["error"]
    assert app.ended()["ok"]
    assert len(Ledger(ledger).dataset("census").entries) == 1


@pytest.mark.slow
def test_a_cancelled_release_says_what_was_published_and_charged(
    app, folder, document, slow_table, ledger
):
    document |= slow_table | {"ledger": ledger.name, "dataset": "census"}
    begin_to_draw(app, document, "census")
    app.ask("cancel", {})
    app.ask("cancel", {})  # impatience changes nothing
    ended = app.ended()
    assert re.search(
        r"interrupted; nothing was published and nothing is left on disk; the ledger was charged",
        ended["error"],
    )
    assert (ended["ok"], ended["cancelled"]) == (False, True)
    assert len(Ledger(ledger).dataset("census").entries) == 1
    assert not [path.name for path in folder.iterdir() if "slow" in path.name]


@pytest.mark.slow
def test_the_end_of_the_app_ends_its_job_and_says_so(folder, document, slow_table):
    """Also when the terminal is closed; and no log has anything of the table."""
    document |= slow_table
    with started_app(folder) as visitor:
        visitor.enter()
        begin_to_draw(visitor, document, "long.csv")
        visitor.process.send_signal(signal.SIGHUP)
        said = visitor.process.communicate(timeout=PATIENCE)[0]
        assert visitor.process.returncode == 0
    assert "Interrupted: interrupted; nothing was published" in said
    assert "000000" not in said
    assert not [path.name for path in folder.iterdir() if "slow" in path.name]


@pytest.mark.slow
@pytest.mark.skipif(platform.system() != "Linux", reason="a filter of Linux")
def test_nothing_leaves_the_machine_and_nothing_is_logged(folder, document):
    """The kernel would end server and jobs at once if they connected to anything."""
    tried = subprocess.run([sys.executable, NO_NETWORK, "--serving", "--try"], check=False)
    if tried.returncode == 1:
        pytest.skip("the kernel knows no such filters")
    assert tried.returncode == -signal.SIGSYS
    document["release"]["out"] = "unheard"
    with started_app(folder, [sys.executable, str(NO_NETWORK), "--serving"]) as visitor:
        visitor.enter()
        assert "value" in visitor.look(document | {"origin": "wrong"})["plan"]
        visitor.send("GET", "/nothing", Host="evil.example")
        visitor.send("POST", f"{visitor.path}look", [])
        assert visitor.run("release", document, typed="flows.csv")["ok"]
        assert visitor.run("verify", document)["ok"]
        visitor.process.send_signal(signal.SIGINT)
        said = visitor.process.communicate(timeout=PATIENCE)[0]
    # Its first lines may have been read with the address.
    assert (
        said.removeprefix("It is for you alone, and can be opened once. Ctrl-C ends the app.\n")
        == ENDED
    )
