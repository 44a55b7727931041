"""The app as a user starts it, and a visitor who sends whatever it likes."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

from patience import PATIENCE

#: The command line, in a process of its own.
PROGRAM = (sys.executable, "-P", "-m", "inftda")


@contextmanager
def started_app(folder, program=PROGRAM):
    """`inftda app` in a folder; ended as by Ctrl-C."""
    process = subprocess.Popen(
        [*program, "app", str(folder), "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        port, token = re.fullmatch(r"Open +http://127\.0\.0\.1:(\d+)/#(\S+)\n", line).groups()
        yield Visitor(process, int(port), token)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)
        process.stdout.close()


class Visitor:
    """Somebody who knows the address, with a cookie or without."""

    def __init__(self, process, port, token):
        self.process, self.port, self.token = process, port, token
        self.host = f"127.0.0.1:{port}"
        self.address = f"http://{self.host}/#{token}"
        self.path, self.cookie = "/", ""

    def send(self, method, path, body=None, **headers):
        """Status, headers and text of the answer; a header that is None is not sent."""
        given = {"Host": self.host}
        if self.cookie:
            given["Cookie"] = self.cookie
        if method == "POST":
            given["Origin"] = f"http://{self.host}"
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        data = None if body is None else json.dumps(body).encode()
        connection.putrequest(method, path, skip_host=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, text

    def enter(self):
        """Exchange the token for the cookie, as the first page does."""
        _, headers, text = self.send("POST", "/enter", {"token": self.token})
        self.set_cookie = headers["set-cookie"]
        self.cookie = headers["set-cookie"].partition(";")[0]
        self.path = json.loads(text)["path"]
        return self

    def ask(self, name, body=None):
        """What the page asks for, as a page does."""
        method = "GET" if body is None else "POST"
        return json.loads(self.send(method, self.path + name, body)[2])

    def look(self, document):
        return self.ask("look", {"document": document})

    def run(self, command, document, **more):
        """A job to its end."""
        begun = self.ask("run", {"command": command, "document": document, **more})
        return begun if "command" not in begun else self.ended()

    def ended(self):
        deadline = time.monotonic() + PATIENCE
        while (job := self.ask("job"))["running"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return job
