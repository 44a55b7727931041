"""Random bits that a task can be asked for twice: one secret for a level, one key for an item.

Spark runs a task again when a machine dies, runs it twice when a machine is slow, and may
evaluate a plan once more whenever it likes. If each run drew fresh noise, two different
draws for the same counts could both become visible, and their mean has less noise than was
paid for. So noise on executors is a function of a secret of 256 bits, taken by the driver
from its secure source for one level step, and of the item of work: every run of a task
gives the same flows, bit for bit. Without the secret the keys are independent uniform ones
to anyone (HMAC-SHA-256 is a pseudorandom function).

The secret is as confidential as the true counts: whoever has it can subtract the noise. It
goes where the true counts go (from the driver to the executors) and nowhere else.
"""

import hmac
from dataclasses import dataclass, field
from typing import Final

from inftda.noise.entropy import RandomSource, Stream

#: Label of the driver's stream that the secret is taken from ("spark" in ASCII).
STREAM_LABEL: Final = 0x737061726B


@dataclass(frozen=True)
class KeyedSource:
    """Streams that follow from a secret and the labels of the item they are for.

    Attributes:
        secret: 256 random bits.
        is_secure: whether the secret came from a secure source.
    """

    secret: bytes = field(repr=False)
    is_secure: bool

    @classmethod
    def of(cls, source: RandomSource) -> "KeyedSource":
        """A source with a fresh secret."""
        return cls(source.stream(STREAM_LABEL).words(4).tobytes(), source.is_secure)

    def stream(self, *labels: int) -> Stream:
        """The stream of one item."""
        name = ",".join(str(int(label)) for label in labels)

        def key_of(stretch: int) -> bytes:
            text = f"inftda item {name};{stretch}"
            return hmac.digest(self.secret, text.encode(), "sha256")

        return Stream(key_of, is_rekeyed_by_fork=False)
