"""Work on all cores: items handed to threads, results in the order of the items.

Compiled kernels and the generation of random bits release the interpreter lock, so threads
are enough and nothing is copied between workers. The caller's thread works too: one that
only waited would be woken for every item, and take a core each time.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Items that may wait for each thread of a pool, so that none is idle while the caller works.
AHEAD = 2

#: Results that may wait to be taken, per thread, until an item that takes long is done.
BACKLOG = 8


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew:
    """The caller's thread and some more, which are kept from one piece of work to the next.

    Args:
        threads: how many in all, at least 1.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of `work` for every item, in the order of the items.

        If the caller stops early (an error, Ctrl-C), items not yet started are cancelled and
        those under way are waited for.
        """
        if self.threads == 1:
            yield from map(work, items)
            return
        pool, ahead = self._threads(), (self.threads - 1) * (1 + AHEAD)
        given: deque[Item] = deque()
        results: deque[Future[Result]] = deque()
        try:
            for item in items:
                is_pool_busy = sum(not result.done() for result in results) >= ahead
                given.append(item)
                results.append(_done(work, item) if is_pool_busy else pool.submit(work, item))
                while results and (results[0].done() or len(results) > self.threads * BACKLOG):
                    given.popleft()
                    yield results.popleft().result()
            for n, item in enumerate(given):
                if results[n].cancel():  # it still waits, and there is nothing else to do here
                    results[n] = _done(work, item)
            while results:
                yield results.popleft().result()
        finally:
            wait([result for result in results if not result.cancel()])

    def run(self, calls: Iterable[Callable[[], object]]) -> None:
        """Make calls that give nothing back; all are there before the first is made.

        So kernels that are `prepared` are compiled or loaded by the caller. If two threads did
        that and one were interrupted, the other would wait for its lock forever.
        """
        for _ in self.map(lambda call: call(), list(calls)):
            pass

    def _threads(self) -> ThreadPoolExecutor:
        """The other threads; new ones after a fork, which they do not survive."""
        if self._pool is None or self._process != os.getpid():
            self._process = os.getpid()
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="inftda")
        return self._pool


def _done(work: Callable[[Item], Result], item: Item) -> Future[Result]:
    """Work done here and now."""
    future: Future[Result] = Future()
    future.set_result(work(item))
    return future


def map_in_order(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """Results of `work` for every item, in the order of the items, on `threads` threads."""
    return Crew(threads).map(work, items)
