"""All cores of one machine: blocks of work on threads, results in order.

The compiled kernels and the generation of random bits release the GIL, so threads are
enough and nothing is copied between workers.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from inftda.errors import InftdaError

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Blocks that may be under way or waiting to be taken, per thread: bounds the memory.
BACKLOG = 4


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class LocalEngine:
    """Carries out blocks of work on the threads of this machine."""

    threads: int = field(default_factory=available_cores)

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InftdaError(f"threads must be at least 1, got {self.threads}")

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of `work` for every item, in the order of the items.

        If the caller stops early (an error, Ctrl-C), blocks not yet started are cancelled.
        """
        if self.threads == 1:
            yield from map(work, items)
            return
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="inftda")
        try:
            yield from _in_order(pool, work, items, self.threads * BACKLOG)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _in_order(
    pool: ThreadPoolExecutor,
    work: Callable[[Item], Result],
    items: Iterable[Item],
    backlog: int,
) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) >= backlog:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
