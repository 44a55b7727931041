"""Work on all cores: items handed to threads, results in the order of the items.

Compiled kernels and the generation of random bits release the interpreter lock, so threads
are enough and nothing is copied between workers.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Results that may wait to be taken, per thread, until an item that takes long is done.
BACKLOG = 8


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ThreadPool:
    """A pool of threads that is kept from one piece of work to the next.

    By default it has a thread for each core; a single one is the caller's own.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = available_cores() if threads is None else threads
        self._executor: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of `work` for every item, in the order of the items.

        If the caller stops early (an error, Ctrl-C), items not yet started are cancelled and
        those under way are waited for.
        """
        if self.threads == 1:
            yield from map(work, items)
            return
        executor = self._threads()
        results: deque[Future[Result]] = deque()
        try:
            for item in items:
                results.append(executor.submit(work, item))
                while results[0].done() or len(results) > self.threads * BACKLOG:
                    yield results.popleft().result()
                    if not results:
                        break
            while results:
                yield results.popleft().result()
        finally:
            wait([result for result in results if not result.cancel()])

    def run(self, work: Callable[[Item], object], items: Iterable[Item]) -> None:
        """Do `work` for every item."""
        for _ in self.map(work, items):
            pass

    def parts(self, n: int, few: int) -> list[tuple[int, int]]:
        """First and last (exclusive) of n things, one part for each thread; few are one part."""
        n_parts = 1 if n <= few else self.threads
        return list(pairwise(n * part // n_parts for part in range(n_parts + 1)))

    def _threads(self) -> ThreadPoolExecutor:
        """The threads; new ones after a fork, which they do not survive."""
        if self._executor is None or self._process != os.getpid():
            self._process = os.getpid()
            self._executor = ThreadPoolExecutor(self.threads, thread_name_prefix="inftda")
        return self._executor
