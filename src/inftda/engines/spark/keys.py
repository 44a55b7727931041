"""Random bits that a task can be asked for twice: one secret for a release, one key for a block.

Spark runs a task again when a machine dies, runs it twice when a machine is slow, and may
evaluate a plan once more whenever it likes. If each run drew fresh noise, two different
draws for the same counts could both become visible, and their mean has less noise than was
paid for. So noise on executors is a function of a secret of 256 bits, taken by the driver
from its secure source for one release, and of the place in the tree: every run of a task
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
    """Streams that follow from a secret and the labels of the block they are for.

    Attributes:
        secret: 256 random bits.
        place: labels of the part of the work; no two parts of a release have the same.
        is_secure: whether the secret came from a secure source.
    """

    secret: bytes = field(repr=False)
    place: tuple[int, ...]
    is_secure: bool

    def stream(self, *labels: int) -> Stream:
        """The stream of one block of this part."""
        name = ",".join(str(int(label)) for label in labels)
        text = f"inftda subtree {','.join(map(str, self.place))};{name}"

        def key_of(stretch: int) -> bytes:
            return hmac.digest(self.secret, f"{text};{stretch}".encode(), "sha256")

        return Stream(key_of, is_rekeyed_by_fork=False)


def draw_secret(source: RandomSource) -> bytes:
    """256 fresh bits for one release."""
    return source.stream(STREAM_LABEL).words(4).tobytes()
