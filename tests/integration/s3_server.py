"""An S3 server on loopback, and a wire to it that breaks."""

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

from patience import PATIENCE

#: Nobody's; they must turn up nowhere.
KEY, SECRET = "AKIAZq7Kj9Xw", "Zq7Kj9XwSesameSesame"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def s3_server(**environment):
    """Port of a fresh server."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert server.poll() is None, "the server does not start"
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield port
    finally:
        server.kill()
        server.wait()


class Wire:
    """Passes bytes on to a server, until so many have been sent to it."""

    def __init__(self, port, most=None):
        self.sent, self._most, self._port = 0, most, port
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self._ends = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        for end in (self._door, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                here, _ = self._door.accept()
                there = socket.create_connection(("127.0.0.1", self._port))
                self._ends += [here, there]
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source, target):
        with suppress(OSError):
            is_upward = target.getpeername()[1] == self._port
            while piece := source.recv(1024):
                self.sent += len(piece) * is_upward
                if self._most is not None and self.sent > self._most:
                    self.close()
                target.sendall(piece)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
