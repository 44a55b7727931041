"""Secure random bits: AES-256 under keys of the operating system, at addresses.

A key encrypts numbered blocks, each of which is 16 random bytes. The number of a block is its
address: a *row* (64 bits) and a *place* in the row (64 bits). The draws for the children of a
parent are a row, so noise depends on the parent only, not on the place or order of the work.

No two draws share a block. A key serves one level or one cross table of one release, and a
row of it one parent, or one row of cells of that table. In a row

- places below 2^63 are blocks 0, 1, 2, ... of its words, which are handed out in order;
- places from 2^63 on have three fields, `1 | draw (31 bits) | part (32 bits)`: further bits of one
  draw, for the rare ones that need more.

A row has fewer than 2^31 draws, and a draw fewer than 2^16 parts, so no field overflows.
A level has far fewer than 2^36 blocks, which distinguish AES from random bits with an advantage
below 2^-56.

Nothing here is global, and nothing here falls back to a generator that is not secure.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from inftda.errors import PrivacyError
from inftda.util.kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

BLOCK_BYTES: Final = 16
CHUNK: Final = 1 << 15
"""Blocks encrypted at a time: half a megabyte, which stays in the cache. The cipher releases the
interpreter lock for large pieces only."""

SECRET_LABEL: Final = 0x736563726574  # "secret" in ASCII
SEED_LABEL: Final = 0x73656564  # "seed" in ASCII
_FURTHER: Final = 1 << 63
_FIRST_PART: Final = 2  # seeded draws depend on it
_MOST_PARTS: Final = 1 << 16
_MOST_DRAWS: Final = 1 << 31


class Bits:
    """Random bits at addresses, all under one key.

    Args:
        key: 32 bytes.
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "Bits(confidential)"

    def words(self, n: int) -> NDArray[np.uint64]:
        """The first n 64-bit words of row 0."""
        halves = np.empty(2 * n, np.uint32)  # as most noise is drawn: one kernel less to compile
        self.fill(halves, np.zeros(1, np.int64), np.array([0, 2 * n]))
        return halves.view(np.uint64)

    def fill(
        self,
        words: NDArray[np.unsignedinteger[Any]],
        rows: NDArray[np.int64],
        offsets: NDArray[np.int64],
    ) -> None:
        """Overwrite an array with the first words of some rows.

        Args:
            words: uint32 or uint64, contiguous.
            rows: int64[rows], ascending and different.
            offsets: int64[rows + 1], slices of words: those of each row.

        Raises:
            PrivacyError: a row is named twice, or has too many words.
        """
        sizes = np.diff(offsets)
        if (np.diff(rows) <= 0).any():
            raise PrivacyError("rows must be different and ascending: no bits are used twice")
        if sizes.size and int(sizes.max()) >= _MOST_DRAWS:
            raise PrivacyError("a row must have fewer than 2^31 draws; split the areas")
        per_block = BLOCK_BYTES // words.itemsize
        blocks = np.zeros(len(offsets), np.int64)
        np.cumsum(-(-sizes // per_block), out=blocks[1:])
        room = min(int(blocks[-1]), CHUNK)
        counters = np.empty((room, 2), np.uint64)
        # The cipher wants room for one block more.
        random = np.empty((room + 1) * per_block, words.dtype)
        for first in range(0, int(blocks[-1]), CHUNK):
            n = min(CHUNK, int(blocks[-1]) - first)
            row = int(np.searchsorted(blocks, first, side="right")) - 1
            number_blocks_kernel(rows, blocks, first, row, counters[:n])
            self._encrypt(counters[:n], random)
            take_words_kernel(random, (blocks, offsets), (first, first + n), row, words)

    def further(self, row: int, draw: int) -> Iterator[int]:
        """Yield further 64-bit words for one draw of a row.

        Raises:
            PrivacyError: a draw takes more of them than random bits ever need.
        """
        for part in range(_FIRST_PART, _MOST_PARTS):
            counter = np.array([[row, _FURTHER | draw << 32 | part]], np.uint64)
            random = np.empty(4, np.uint64)
            self._encrypt(counter, random)
            yield from random[:2].tolist()
        raise PrivacyError(
            "a draw was not decided by 2^16 blocks of bits; the random bits cannot be right, so "
            "nothing is released (report it, with the versions of inftda and cryptography)"
        )

    def _encrypt(
        self, counters: NDArray[np.uint64], random: NDArray[np.unsignedinteger[Any]]
    ) -> None:
        """Encrypt numbers of blocks, all of them different: counter mode with chosen counters."""
        cipher = Cipher(algorithms.AES256(self._key), modes.ECB()).encryptor()  # noqa: S305 - counter mode
        data = counters.reshape(-1).view(np.uint8)
        cipher.update_into(data, random.view(np.uint8))  # type: ignore[arg-type] # any buffers


class RandomSource(Protocol):
    """Where random bits come from."""

    @property
    def is_secure(self) -> bool:
        """Whether noise from these bits protects privacy; false for a seed."""

    def bits(self, *labels: int) -> Bits:
        """Bits for the purpose with these labels."""


class SecureSource:
    """Keys from the operating system, a fresh one each time; labels are ignored."""

    __slots__ = ()
    is_secure: Final = True

    def bits(self, *labels: int) -> Bits:
        """Bits under a fresh key."""
        del labels  # equal labels must not mean equal noise
        return Bits(os.urandom(32))


class SeededSource:
    """Reproducible bits for tests and experiments: never private.

    Equal seeds and labels give equal bits, in any process and on any machine; different
    ones give independent bits.

    Args:
        seed: any integer.

    Example:
        >>> bool(SeededSource(7).bits(1, 2).words(1) == SeededSource(7).bits(1, 2).words(1))
        True
    """

    __slots__ = ("seed",)
    is_secure: Final = False

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def bits(self, *labels: int) -> Bits:
        """The bits that belong to the seed and these labels."""
        name = ",".join(str(int(part)) for part in (self.seed, *labels))
        return Bits(hashlib.sha256(f"inftda seeded bits {name}".encode()).digest())


@dataclass(frozen=True)
class Secret:
    """The secret of a release: all its noise follows from it, reproducibly.

    Spark runs a task again when a machine dies, runs it twice when a machine is slow, and may
    evaluate a plan once more whenever it likes. If each run drew fresh noise, two different
    draws for the same counts could both become visible, and their mean has less noise than was
    paid for. So noise is a function of a secret of 256 bits, taken from the source for one release,
    and of the address of the count. Without the secret the keys are independent uniform ones to
    anyone (HMAC-SHA-256 is a pseudorandom function).

    The secret is as confidential as the true counts: it allows to subtract the noise. It
    goes where the true counts go (from the driver to the executors) and nowhere else.

    Attributes:
        secret: 256 random bits.
        is_secure: whether the secret came from a secure source.
    """

    secret: bytes = field(repr=False)
    is_secure: bool

    @classmethod
    def of(cls, source: RandomSource) -> Secret:
        """A fresh secret."""
        return cls(source.bits(SECRET_LABEL).words(4).tobytes(), source.is_secure)

    def bits(self, *labels: int) -> Bits:
        """The bits of one level or table."""
        name = ",".join(str(int(label)) for label in labels)
        return Bits(hmac.digest(self.secret, f"inftda noise {name}".encode(), "sha256"))


def draw_seed(source: RandomSource) -> bytes:
    """16 random bytes that decide ties. They are published, and no noise follows from them."""
    return source.bits(SEED_LABEL).words(2).tobytes()


@kernel
def number_blocks_kernel(
    rows: NDArray[np.int64],
    blocks: NDArray[np.int64],
    first: int,
    row: int,
    counters: NDArray[np.uint64],
) -> None:
    """Write the addresses of n blocks from number `first` on, which belongs to `row`.

    Args:
        rows: int64[rows].
        blocks: int64[rows + 1], blocks of all rows before each, and of all.
        first: index of the first block.
        row: index of its row.
        counters: uint64[n, 2], written.
    """
    for i in range(counters.shape[0]):
        while first + i >= blocks[row + 1]:
            row += 1
        counters[i, 0] = np.uint64(rows[row])
        counters[i, 1] = np.uint64(first + i - blocks[row])


@kernel
def take_words_kernel(
    random: NDArray[np.unsignedinteger[Any]],
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    part: tuple[int, int],
    row: int,
    words: NDArray[np.unsignedinteger[Any]],
) -> None:
    """Copy the words of rows; the rest of the last block of a row is not used.

    Args:
        random: blocks of the part, as words.
        rows: int64[rows + 1] twice: blocks of all rows before each, and of all; and slices of
            words.
        part: index of the first block, and of the one after the last.
        row: the row that the first belongs to.
        words: some are written.
    """
    blocks, offsets = rows
    first, last = part
    per_block = 16 // random.itemsize
    while row < offsets.size - 1 and blocks[row] < last:
        low, high = max(blocks[row], first), min(blocks[row + 1], last)
        start = offsets[row] + (low - blocks[row]) * per_block
        stop = min(offsets[row] + (high - blocks[row]) * per_block, offsets[row + 1])
        shift = (low - first) * per_block - start
        for i in range(np.uint64(start), np.uint64(max(start, stop))):
            words[i] = random[i + np.uint64(shift)]
        row += 1
