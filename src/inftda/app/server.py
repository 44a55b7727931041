"""The server of the app: for one user of this machine, in one browser.

Every request must name this address as its host, and every POST must come from a page of this
address. A browser without the cookie gets the first page only. The cookie is given once, for the
token that the terminal shows. Cookies are sent to every port of a machine, so the app lies
below a secret path, and the browser sends the cookie to that path alone.
"""

import asyncio
import hmac
import json
import os
import secrets
import signal
import socket
import sys
import time
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inftda.app.desk import Desk, message
from inftda.app.document import (
    Document,
    check_place,
    check_places,
    checked,
    completed,
    from_toml,
    to_toml,
)
from inftda.app.forms import all_fields
from inftda.app.jobs import Job, Jobs
from inftda.errors import InftdaError
from inftda.pages import html
from inftda.privacy.risk import PRECEDENTS
from inftda.util.files import check_file, private_folder, whole_file

HOST: Final = "127.0.0.1"
#: Seconds without a request until the server ends, if no job is under way.
IDLE: Final = 3600.0
_COOKIE: Final = "inftda"
#: Variables of a session with a screen; without one, a browser of the terminal would be opened.
_SCREENS: Final = frozenset({"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"})
_MOST_BYTES: Final = 1 << 20
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
#: Of pages that a job wrote: their own script may run, in an origin of its own, and reach nothing.
_FRAMED: Final = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
#: Pages that jobs write, by the option that names the file.
_PAGES: Final = {"report": "out", "preview": "html"}


class Guard:
    """Checks of every request, and headers of every answer."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._hosts = {f"{HOST}:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] != "http":
            return

        async def with_headers(sent: Message) -> None:
            if sent["type"] == "http.response.start":
                headers = MutableHeaders(scope=sent)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(sent)

        problem = self._problem(scope["method"], scope["path"], Headers(scope=scope))
        app = self._app if not problem else Response(problem, 403, media_type="text/plain")
        await app(scope, receive, with_headers)

    def _problem(self, method: str, path: str, headers: Headers) -> str:
        """Why a request is refused; empty if it is not."""
        host, origin = headers.getlist("host"), headers.getlist("origin")
        if len(host) != 1 or host[0] not in self._hosts:
            return "this is not the address of the app"
        # The first page, which holds nothing, may be opened from elsewhere: from the private file.
        is_own = headers.get("sec-fetch-site", "none") in {"same-origin", "none"}
        if not is_own and (method, path) != ("GET", "/"):
            return "another page asked"
        if method not in {"GET", "HEAD"} and origin != [f"http://{host[0]}"]:
            return "another page sent this"
        return ""


class App:
    """The routes, and their common state."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.token: str = secrets.token_urlsafe(32)
        self.jobs = Jobs(root)
        self.last_request = time.monotonic()
        self._path, self._cookie = secrets.token_urlsafe(16), secrets.token_urlsafe(32)
        self._desk = Desk(root)
        self._document: Document = {}
        self._saved: Path | None = None

    def routes(self) -> Starlette:
        """Table of routes."""
        posts: dict[str, Callable[[Any], Any]] = {
            "look": self._look, "solve": self._solve, "files": self._files, "run": self._run,
            "cancel": self._cancel, "save": self._save, "open": self._open,
        }  # fmt: skip
        inside = [
            Route("/", self._page),
            Route("/style.css", partial(_asset, "style.css")),
            Route("/app.mjs", partial(_asset, "app.mjs")),
            Route("/state", self._state),
            Route("/job", self._job),
            Route("/shown/{command}", self._shown),
            *(
                Route(f"/{name}", partial(self._answer, work), methods=["POST"])
                for name, work in posts.items()
            ),
        ]
        public = [
            Route("/", _first_page),
            Route("/style.css", partial(_asset, "style.css")),
            Route("/enter.mjs", partial(_asset, "enter.mjs")),
            Route("/enter", self._enter, methods=["POST"]),
        ]
        return Starlette(routes=[*public, Mount(f"/{self._path}", self._for_owner(inside))])

    def _for_owner(self, routes: list[Route]) -> ASGIApp:
        """Routes that require the cookie."""
        inner = Starlette(routes=routes)

        async def check(scope: Scope, receive: Receive, send: Send) -> None:
            given = Request(scope).cookies.get(_COOKIE, "")
            if not hmac.compare_digest(given.encode(), self._cookie.encode()):
                refusal = Response("open the address that the terminal shows", 403)
                await refusal(scope, receive, send)
                return
            self.last_request = time.monotonic()
            await inner(scope, receive, send)

        return check

    async def _enter(self, request: Request) -> Response:
        """Give the cookie for the token, once."""
        given = str((await _body(request)).get("token", ""))
        if not self.token or not hmac.compare_digest(given.encode(), self.token.encode()):
            return JSONResponse({"error": "this address was used already"}, 403)
        self.token = ""
        answer = JSONResponse({"path": f"/{self._path}/"})
        answer.set_cookie(
            _COOKIE, self._cookie, path=f"/{self._path}/", httponly=True, samesite="strict"
        )
        return answer

    async def _answer(self, work: Callable[[Any], Any], request: Request) -> Response:
        """Run some work in a thread; an error of the user is answered with its message."""
        body = await _body(request)
        try:
            return JSONResponse(await run_in_threadpool(work, body))
        except Exception as problem:  # noqa: BLE001 - no traceback, which may show data
            return JSONResponse({"error": message(problem)}, 400)

    # --- pages

    async def _page(self, _: Request) -> Response:
        facts = {"steps": all_fields(), "precedents": PRECEDENTS, "folder": str(self.root)}
        return HTMLResponse(_render("app.html", facts))

    async def _state(self, _: Request) -> Response:
        return JSONResponse(self._document)

    async def _job(self, _: Request) -> Response:
        last = self.jobs.last
        return JSONResponse({"running": False} if last is None else last.facts())

    async def _shown(self, request: Request) -> Response:
        """The page that a job wrote."""
        command = request.path_params["command"]
        last = self.jobs.of.get(command)
        if last is None or not last.is_done or command not in _PAGES:
            return Response("there is no such page", 404)
        path = check_place(last.document[command][_PAGES[command]], self.root)
        text = await run_in_threadpool(path.read_text, encoding="utf-8")
        return HTMLResponse(text, headers={"content-security-policy": _FRAMED})

    # --- what pages ask for

    def _of(self, body: Any) -> Document:
        """The choices of a request; a reloaded page shows the last ones."""
        self._document = checked(body.get("document"))
        return self._document

    def _look(self, body: Any) -> Any:
        return self._desk.look(self._of(body))

    def _solve(self, body: Any) -> Any:
        return self._desk.solve(self._of(body), str(body.get("level")), str(body.get("most")))

    def _run(self, body: Any) -> Any:
        command, document = str(body.get("command")), completed(self._of(body))
        if command not in {"preview", "release", "verify", "report", "export", "dossier"}:
            raise InftdaError("the app does not run this command")
        check_places(document, self.root)
        if command == "release":
            found = self._desk.look(document)["sheet"]
            if "value" not in found:
                raise InftdaError(found.get("error") or found["missing"])
            if body.get("typed") != found["value"]["type"]:
                raise InftdaError("type the name of the data set to release it")
        return self.jobs.start(command, document).facts()

    def _cancel(self, _: Any) -> Any:
        if self.jobs.last is not None:
            self.jobs.last.cancel()
        return {}

    def _files(self, body: Any) -> Any:
        """Names in a folder below the start folder."""
        folder = check_place(str(body.get("folder", "")), self.root)
        inside = [
            one
            for one in sorted(folder.iterdir(), key=lambda one: one.name.lower())
            if not one.name.startswith(".") and one.resolve().is_relative_to(self.root)
        ]
        here = folder.resolve().relative_to(self.root).as_posix()
        return {
            "folder": "" if here == "." else here,
            "folders": [one.name for one in inside if one.is_dir()],
            "files": [one.name for one in inside if one.is_file()],
        }

    def _save(self, body: Any) -> Any:
        document, path = self._of(body), self._toml(body)
        check_file(path, force=path == self._saved)
        with whole_file(path) as partial_file:
            partial_file.write_text(to_toml(document), encoding="utf-8")
        self._saved = path
        return {"saved": str(body["path"])}

    def _open(self, body: Any) -> Any:
        path = self._toml(body)
        self._document = checked(from_toml(path))
        check_places(self._document, self.root)
        self._saved = path
        return self._document

    def _toml(self, body: Any) -> Path:
        name = str(body.get("path", ""))
        if not name.endswith(".toml"):
            raise InftdaError("the name of the file must end with .toml")
        return check_place(name, self.root)


async def _body(request: Request) -> dict[str, Any]:
    """The object in a request that is not too large."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > _MOST_BYTES:
            return {}
    with suppress(ValueError):
        found = json.loads(bytes(content))
        if isinstance(found, dict):
            return found
    return {}


async def _first_page(_: Request) -> Response:
    return HTMLResponse(_render("enter.html", {}))


async def _asset(name: str, _: Request) -> Response:
    text = files("inftda.app").joinpath("assets", name.replace("style", "app")).read_text("utf-8")
    if name == "style.css":
        return Response(html.asset(name) + text, media_type="text/css")
    return Response(text, media_type="text/javascript")


def _render(template: str, facts: dict[str, Any]) -> str:
    return html.environment(package="inftda.app").get_template(template).render(facts)


class _Server(uvicorn.Server):
    """Ends after an hour without a request."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._app = app

    async def on_tick(self, counter: int) -> bool:
        is_idle = time.monotonic() - self._app.last_request > IDLE
        ends = await super().on_tick(counter)
        return ends or (is_idle and not self._app.jobs.is_running)


def serve(root: Path, *, say: Callable[[str], object], browser: bool) -> str:
    """Serve the app until Ctrl-C, or until an hour without a request.

    Args:
        root: the start folder, which is also the current one.
        say: receives the address, which is secret: the first browser that opens it may use the
            app.
        browser: whether to open it in the browser.

    Returns:
        The last message of an interrupted job; empty if there was none.
    """
    app = App(root)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((HOST, 0))
        listener.listen()
        port = listener.getsockname()[1]
        address = f"http://{HOST}:{port}/#{app.token}"
        say(address)
        config = uvicorn.Config(
            Guard(app.routes(), port), http="h11", ws="none", lifespan="off", loop="asyncio",
            log_config=None, log_level="critical", access_log=False, server_header=False,
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        server = _Server(config, app)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, server.handle_exit)  # the terminal was closed
        if browser and (sys.platform == "darwin" or _SCREENS & os.environ.keys()):
            _open_browser(address, stack)
        with suppress(KeyboardInterrupt):
            asyncio.run(server.serve([listener]))
        last: Job | None = app.jobs.last
        return "" if last is None else last.end()


def _open_browser(address: str, stack: ExitStack) -> None:
    """Open the address by a private file: others see the arguments of a process, and its token."""
    folder = stack.enter_context(private_folder(Path(gettempdir()), "inftda-app-"))
    page = folder / "open.html"
    page.write_text(
        f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(address)}">'
        f'<a href="{escape(address)}">inftda</a>',
        encoding="utf-8",
    )
    webbrowser.open(page.as_uri())
