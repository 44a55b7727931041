"""Noise that is chosen, not drawn, and a record of what was asked for."""

import itertools
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np

from inftda.mechanism import batches, topdown
from inftda.noise.bits import SeededSource
from inftda.noise.distribution import Noise


@dataclass
class Record:
    """What a release asked for: the noise of every table, and the number of draws of each.

    Attributes:
        noise: what is drawn, in this order; real noise without it.
    """

    noise: object = None
    scales: list = field(default_factory=list)
    sizes: list = field(default_factory=list)
    steps: list = field(default_factory=list)

    @contextmanager
    def watching(self):
        """While it lasts, noise is drawn from here."""

        real = Noise.fill_rows

        def fill_rows(law, out, bits, rows, offsets):
            self.scales.append(law.square)
            self.sizes.append(len(out))
            if self.noise is None:
                real(law, out, bits, rows, offsets)
            else:
                out[:] = list(itertools.islice(self.noise, len(out)))

        with patch.object(Noise, "fill_rows", fill_rows):
            yield self

    def progress(self, name, done, total):
        self.steps.append((name, done, total))

    @property
    def n_draws(self):
        return sum(self.sizes)


def always(value):
    """The same noise everywhere."""
    return itertools.repeat(value)


def release(truth, plan, record=None, *, seed=0, threads=1, account=None, part=None):
    """What comes of a release, by noise that is recorded; `part` is the size of batches."""
    record = record or Record()
    size = batches.PART_CHILDREN if part is None else part
    with (
        record.watching(),
        patch.object(batches, "PART_CHILDREN", size),
        patch.object(topdown, "LARGE", 3 * size),
    ):
        return topdown.release_counts(
            truth,
            account or plan.account(),
            SeededSource(seed),
            threads=threads,
            progress=record.progress,
        )


def cells(outcome):
    """Cell to value; fails if a cell stands twice."""
    leaves = outcome.leaves
    keys = list(zip(*(column.tolist() for column in leaves.areas), strict=True))
    assert leaves.value.dtype == np.int64
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, leaves.value.tolist(), strict=True))
