"""All cores of one machine."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from inftda.errors import InftdaError
from inftda.threads import Crew, available_cores

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class LocalEngine:
    """Carries out blocks of work on the threads of this machine."""

    threads: int = field(default_factory=available_cores)
    _crew: Crew = field(init=False, repr=False, compare=False)
    _has_begun: threading.Event = field(
        default_factory=threading.Event, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InftdaError(f"threads must be at least 1, got {self.threads}")
        object.__setattr__(self, "_crew", Crew(self.threads))

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of `work` for every item, in the order of the items.

        The very first item is the caller's alone: kernels are compiled or loaded for it. If
        two threads did that and one were interrupted, the other would wait for its lock forever.
        """
        left = iter(items)
        if not self._has_begun.is_set():
            for item in left:
                result = work(item)
                self._has_begun.set()
                yield result
                break
        yield from self._crew.map(work, left)
