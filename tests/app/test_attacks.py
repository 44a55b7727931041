"""Nobody but the one user in the one browser gets anything; nobody gets out of the folder."""

import re
import socket

import pytest

from inftda.app import document as document_module
from inftda.app import server
from inftda.errors import InftdaError

HEADERS = {
    "content-security-policy": "default-src 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "evil.example:{port}", "[::1]:{port}", None]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_host_is_refused(app, host, method):
    name = host and host.format(port=app.port)
    for path in ("/", f"{app.path}look"):
        status, _, text = app.send(method, path, {} if method == "POST" else None, Host=name)
        assert status in {400, 403}
        assert "inftda" not in text


def test_localhost_is_the_same_machine(app):
    assert app.send("GET", "/", Host=f"localhost:{app.port}")[0] == 200


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "http://evil.example",
        "https://{host}",
        "http://localhost:{port}",
        "http://127.0.0.1:1",
    ],
)
def test_a_post_from_another_page_or_from_none_is_refused(app, origin, document):
    given = origin and origin.format(host=app.host, port=app.port)
    for path in ("/enter", f"{app.path}look", f"{app.path}run"):
        assert app.send("POST", path, {"document": document}, Origin=given)[0] == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_port_or_site_cannot_even_load_a_file_of_the_app(app, site):
    assert app.send("GET", f"{app.path}state", Sec_Fetch_Site=site)[0] == 403


@pytest.mark.parametrize("cookie", [None, "inftda=", "inftda=x", "other=x"])
@pytest.mark.parametrize("name", ["", "state", "job", "app.mjs", "shown/report"])
def test_without_the_cookie_nothing_is_given(app, cookie, name):
    assert app.send("GET", app.path + name, Cookie=cookie)[0] == 403
    assert app.send("POST", f"{app.path}files", {"folder": ""}, Cookie=cookie)[0] == 403


def test_the_token_is_good_for_one_cookie_that_only_the_secret_path_gets(app):
    cookie = app.set_cookie.lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert re.search(r"path=/[\w-]{20,}/;", cookie)
    for token in (app.token, "", "guess", None):
        status, headers, _ = app.send("POST", "/enter", {"token": token})
        assert (status, "set-cookie" in headers) == (403, False)


@pytest.mark.parametrize(
    "path", ["/", "/style.css", "/nothing", "{app}", "{app}app.mjs", "{app}job"]
)
def test_every_answer_forbids_caches_and_foreign_content(app, path):
    _, headers, _ = app.send("GET", path.format(app=app.path))
    assert {
        name: headers[name].startswith(value) for name, value in HEADERS.items()
    } == dict.fromkeys(HEADERS, True)
    assert not any(name.startswith("access-control") or name == "server" for name in headers)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS"])
def test_other_methods_do_nothing(app, method):
    assert app.send(method, f"{app.path}look")[0] in {403, 405}
    assert app.send("GET", f"{app.path}run")[0] == 405


def test_only_this_machine_is_listened_to(app):
    with pytest.raises(OSError, match=r"refused|unreachable"):
        socket.create_connection(("127.0.0.2", app.port), timeout=5)
    assert server.HOST == "127.0.0.1"


OUTSIDE = [
    "../secret.csv",
    "/etc/passwd",
    "link.csv",
    "away/secret.csv",
    "away",
    "a/../../secret.csv",
]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize(
    ("section", "key"),
    [("release", "flows"), ("", "areas"), ("", "axis"), ("release", "out"), ("", "ledger"),
     ("release", "sign"), ("preview", "stand_in"), ("preview", "html"), ("report", "out"),
     ("export", "out"), ("dossier", "out"), ("verify", "key"), ("report", "names")],
)  # fmt: skip
def test_a_file_outside_of_the_folder_is_not_touched(app, document, section, key, path):
    value = [f"mode={path}"] if key == "axis" else path
    at = document if not section else document.setdefault(section, {})
    at[key] = value
    assert "is not below the folder" in app.look(document)["error"]
    begun = app.ask(
        "run", {"command": section or "release", "document": document, "typed": "flows.csv"}
    )
    assert "is not below the folder" in begun["error"]


def test_a_folder_outside_is_refused_before_its_files_are_listed(tmp_path, monkeypatch):
    """Else the first sign of an absolute path, "/", would list all files of the machine."""
    monkeypatch.setattr(document_module, "files_at", lambda path: pytest.fail(f"listed {path}"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path)
    for text in ("/", "..", "link", "link/**"):
        with pytest.raises(InftdaError, match="is not below the folder"):
            document_module.check_place(text, tmp_path / "folder")


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_list_and_no_document_comes_from_outside(app, path):
    assert "is not below" in app.ask("files", {"folder": path})["error"]
    for name in ("open", "save"):
        found = app.ask(name, {"path": f"{path}/x.toml", "document": {}})
        assert "is not below" in found["error"]


def test_a_folder_lists_no_link_that_leads_outside(app):
    assert app.ask("files", {"folder": ""})["files"][:2] == ["areas.csv", "flows.csv"]
    assert "away" not in app.ask("files", {"folder": ""})["folders"]


@pytest.mark.parametrize("address", ["sqlite:///../secret.db", "duckdb:////etc/passwd"])
def test_a_database_outside_of_the_folder_is_not_opened(app, document, address):
    document["release"] |= {"flows": "", "sql": "SELECT 1", "database": address}
    assert "is not below the folder" in app.look(document)["error"]


def test_a_password_is_refused(app, document):
    document["release"] |= {"flows": "", "sql": "x", "database": "postgresql://me:secret@host/db"}
    found = app.look(document)["error"]
    assert "password" in found
    assert "secret" not in found


@pytest.mark.parametrize("command", ["evaluate", "compare", "plan; ls", "ledger", "--help", None])
def test_no_other_command_is_run(app, document, command):
    assert app.ask("run", {"command": command, "document": document})["error"]


@pytest.mark.parametrize("choices", [
    None, [], {"engine": "spark"}, {"release": {"truth": "x"}},
    {"release": {"engine": "spark"}}, {"preview": {"allow_confidential": True}},
    {"areas": 1}, {"areas": {"x": {}}}, {"areas": "a\0b"}, {"epsilon": [[]]},
])  # fmt: skip
def test_choices_of_another_kind_are_refused(app, choices):
    status, _, text = app.send("POST", f"{app.path}look", {"document": choices})
    assert (status, "error" in text) == (400, True)


def test_a_request_may_not_be_endless(app):
    assert app.send("POST", f"{app.path}look", {"document": {"areas": "x" * (1 << 21)}})[0] == 400


def test_nothing_is_released_until_its_name_is_typed(app, document, folder):
    for typed in (None, "", "flows", "FLOWS.CSV"):
        found = app.ask("run", {"command": "release", "document": document, "typed": typed})
        assert "type the name" in found["error"]
    assert not (folder / "made").exists()
