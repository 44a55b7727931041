"""Optimisers that fail on executors; sent there as a file of its own."""

import os
from dataclasses import dataclass, field

from inftda.optimize.segments import optimize_intopt


@dataclass
class Fragile:
    """IntOpt that kills its process in the midst of a task, so many times in all."""

    folder: str
    deaths: int
    driver: int = field(default_factory=os.getpid)

    def __call__(self, x, *arguments):
        if os.getpid() != self.driver:
            for death in range(self.deaths):
                try:
                    os.close(os.open(f"{self.folder}/{death}", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os._exit(1)
        return optimize_intopt(x, *arguments)


@dataclass
class Hopeless:
    """Fails every time, and says what it had in hand."""

    driver: int = field(default_factory=os.getpid)

    def __call__(self, x, *arguments):
        if os.getpid() != self.driver:
            raise RuntimeError(f"a confidential count: {x.max()}")
        return optimize_intopt(x, *arguments)
