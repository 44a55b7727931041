"""Run a command: CPU seconds and memory of all its processes, and a limit on the first."""

import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
#: Seconds between two looks.
_PAUSE: Final = 0.05
#: Processes that wait are stopped when this multiple of the limit has passed.
_PATIENCE: Final = 8


@dataclass(frozen=True)
class Cost:
    """What a command used.

    Attributes:
        cpu: CPU seconds of all its processes, start-up included.
        seconds: that passed.
        memory: the most that all its processes had at one time, in MB.
    """

    cpu: float
    seconds: float
    memory: int

    def __add__(self, other: "Cost") -> "Cost":
        memory = max(self.memory, other.memory)
        return Cost(self.cpu + other.cpu, self.seconds + other.seconds, memory)


class CommandError(Exception):
    """A command failed, or used more than its limit."""


def run(
    command: Sequence[str], limit: float, log: Path, environment: Mapping[str, str] | None = None
) -> Cost:
    """Run a command to its end.

    Args:
        command: program and arguments.
        limit: CPU seconds that it may use.
        log: file for what it prints.
        environment: variables in addition to those of this process.

    Raises:
        CommandError: it failed, or used more than the limit.
    """
    started, before = time.monotonic(), _awaited()
    with log.open("ab") as printed:
        process = subprocess.Popen(  # noqa: S603 - commands of the registry
            command,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | (environment or {}),
        )
        used: dict[int, float] = {}
        memory = 0
        while process.poll() is None:
            here = _members(process.pid)
            used |= here
            memory = max(memory, sum(map(_memory, here)))
            passed = time.monotonic() - started
            if sum(used.values()) > limit or passed > _PATIENCE * limit:
                for member in _members(process.pid):
                    with suppress(ProcessLookupError):
                        os.kill(member, signal.SIGKILL)
                process.wait()
                is_busy = sum(used.values()) > limit
                raise CommandError(
                    f"stopped after {limit:.0f} CPU seconds"
                    if is_busy
                    else f"stopped after {passed:.0f} seconds, most of which it waited"
                )
            time.sleep(_PAUSE)
    if process.returncode:
        raise CommandError(f"failed: {_last_line(log)}")
    # What was seen lacks the last moments; what the system counted lacks processes nobody awaited.
    cpu = max(sum(used.values()), _awaited() - before)
    return Cost(cpu, time.monotonic() - started, memory // 1024)


def _awaited() -> float:
    """CPU seconds of all processes that ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _members(session: int) -> dict[int, float]:
    """CPU seconds of each process of a session, by number."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(stat[3]) == session:
                    found[int(entry.name)] = (int(stat[11]) + int(stat[12])) / _TICKS
    return found


def _memory(process: int) -> int:
    """Memory of a process in kB, shared pages divided among those that share them."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "it printed nothing"
