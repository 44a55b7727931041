"""A job: one command of the command line, in a process of its own, that reads the document.

The app thus runs the commands of the terminal, with the same messages. A process can be interrupted
by Ctrl-C; a thread cannot.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from inftda.app.document import Document, to_toml
from inftda.errors import InftdaError
from inftda.util.screen import MARK, TOLD

#: Seconds that an interrupted command gets to clean up.
_PATIENCE = 60.0
_EARLY = "interrupted before it began; nothing was published and no ledger was charged"
_LOOK = "look at the folder, and at the ledger if there is one, before it is run again"


class Job:
    """A command under way, or ended; it reads the document and runs in the folder `root`."""

    def __init__(self, command: str, document: Document, root: Path) -> None:
        self.command, self.document = command, document
        self._progress: list[Any] | None = None
        self._said: list[str] = []
        self._answer: list[str] = []
        self._is_cancelled = False
        # -P: no module is loaded from the folder. A process group of its own: Ctrl-C in the
        # terminal reaches the server alone, which passes it on, once.
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-P", "-m", "inftda", command, "--config", "/dev/stdin"],
            cwd=root,
            env={**os.environ, TOLD: "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            process_group=0,
        )
        if self._process.stdin is not None:
            with self._process.stdin as pipe:
                pipe.write(to_toml(document))
        self._threads = [
            threading.Thread(target=self._follow, args=pair, daemon=True)
            for pair in ((self._process.stdout, self._answer), (self._process.stderr, self._said))
        ]
        for thread in self._threads:
            thread.start()

    def _follow(self, stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            if line.startswith(MARK):
                self._progress = json.loads(line.removeprefix(MARK))
            else:
                lines.append(line.rstrip("\n"))

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None or any(one.is_alive() for one in self._threads)

    @property
    def is_done(self) -> bool:
        """Whether it has ended well."""
        return not self.is_running and self._process.returncode == 0

    def cancel(self) -> None:
        """Interrupt it as Ctrl-C does, once: a second one could disturb its cleaning up."""
        if self.is_running and not self._is_cancelled:
            self._is_cancelled = True
            self._process.send_signal(signal.SIGINT)

    def end(self) -> str:
        """Interrupt it, wait, and return its last message; empty if it had ended before."""
        if not self.is_running:
            return ""
        self.cancel()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for thread in self._threads:
            thread.join(_PATIENCE)
        return self.facts()["error"] or f"{self.command}: done"

    def facts(self) -> dict[str, Any]:
        """Facts of the job for the page."""
        is_running, code = self.is_running, self._process.returncode
        errors = [line for line in self._said if line.startswith("error: ")]
        notes = [line for line in self._said if line not in errors]
        if not is_running and code and not errors:  # what was said is a traceback, if anything
            is_early = self._is_cancelled and code == -signal.SIGINT
            errors, notes = [_EARLY if is_early else f"it ended by itself ({code}); {_LOOK}"], []
        return {
            "command": self.command,
            "running": is_running,
            "cancelled": self._is_cancelled,
            "ok": self.is_done,
            "progress": self._progress if is_running else None,
            "notes": notes,
            "error": "\n".join(errors).removeprefix("error: "),
            "answer": "\n".join(self._answer),
        }


class Jobs:
    """At most one job at a time; `of` has the last one of each command."""

    def __init__(self, root: Path) -> None:
        self._root, self._lock = root, threading.Lock()
        self.last: Job | None = None
        self.of: dict[str, Job] = {}

    @property
    def is_running(self) -> bool:
        """Whether one is under way."""
        return self.last is not None and self.last.is_running

    def start(self, command: str, document: Document) -> Job:
        """Start a job.

        Raises:
            InftdaError: another one is under way, perhaps of another tab.
        """
        with self._lock:
            if self.is_running:
                raise InftdaError(
                    "a job is under way, perhaps in another tab; wait until it ends, or cancel it"
                )
            self.last = self.of[command] = Job(command, document, self._root)
            return self.last
