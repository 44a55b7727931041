"""Divisions that fail on executors; sent there as a file of its own."""

import os
from dataclasses import dataclass, field

from inftda.spark.tasks import SharedDivision


@dataclass(frozen=True, repr=False, kw_only=True)
class Fragile(SharedDivision):
    """Kills the process of its task, so many times in all."""

    folder: str
    deaths: int
    driver: int = field(default_factory=os.getpid)

    def check_version(self):
        """Called on the executor, in the midst of its task."""
        if os.getpid() != self.driver:
            for death in range(self.deaths):
                try:
                    os.close(os.open(f"{self.folder}/{death}", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os._exit(1)


@dataclass(frozen=True, repr=False)
class Hopeless(SharedDivision):
    """Fails every time, and says what it had in hand."""

    def check_version(self):
        """Called on the executor, in the midst of its task."""
        raise RuntimeError(f"a confidential count: {self.secret.secret}")
