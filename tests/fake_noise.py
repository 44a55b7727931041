"""Noise that is chosen, not drawn, and a record of what was asked for."""

import itertools
from dataclasses import dataclass, field

import numpy as np

from inftda.engines.local import LocalEngine
from inftda.mechanisms.base import Setting
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import SeededSource


@dataclass
class Record:
    """What a mechanism asked for: a scale for each sampler made, and the size of every block."""

    noise: object = None
    scales: list = field(default_factory=list)
    sizes: list = field(default_factory=list)
    steps: list = field(default_factory=list)

    def make_sampler(self, sigma2):
        self.scales.append(sigma2)
        return _Sampler(self, DiscreteGaussian(sigma2) if self.noise is None else self.noise)

    def progress(self, name, done, total):
        self.steps.append((name, done, total))

    @property
    def n_draws(self):
        return sum(self.sizes)


@dataclass
class _Sampler:
    record: Record
    noise: object

    def fill(self, out, stream):
        self.record.sizes.append(len(out))
        if hasattr(self.noise, "fill"):
            self.noise.fill(out, stream)
        else:
            out[:] = list(itertools.islice(self.noise, len(out)))


def always(value):
    """The same noise everywhere."""
    return itertools.repeat(value)


def setting_of(plan, record=None, *, seed=0, threads=1, **changes):
    record = record or Record()
    facts = {
        "spending": plan.account(),
        "make_sampler": record.make_sampler,
        "source": SeededSource(seed),
        "engine": LocalEngine(threads),
        "progress": record.progress,
    }
    return Setting(**{**facts, **changes})


def cells(blocks):
    """Cell to value; fails if a cell stands twice."""
    blocks = list(blocks)
    columns = [
        np.concatenate([block.areas[i] for block in blocks]) for i in range(len(blocks[0].areas))
    ]
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    values = np.concatenate([block.value for block in blocks])
    assert values.dtype == np.int64
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, values.tolist(), strict=True))
