"""Secure random bits: AES-256 in counter mode, keyed by the operating system.

A source hands out streams; a stream writes uniform words into the caller's buffer at memory
speed. Every item of work asks for a stream of its own. No word is ever handed out twice: a
stream cannot be copied or pickled, refuses to be used by two threads at once, takes a new
key after a fork, and takes a new key long before its counter could repeat.

Nothing here is global, and nothing here falls back to a generator that is not secure.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from inftda.errors import PrivacyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


CHUNK_BYTES: Final = 1 << 21
"""Bytes encrypted at a time. The cipher releases the GIL for large pieces only, and fewer pieces
mean less waiting for it."""

KEY_BYTES: Final = 1 << 40
"""Bytes per key: 2^36 blocks distinguish AES from random bits with an advantage below 2^-56."""

SECRET_LABEL: Final = 0x737061726B  # "spark" in ASCII
"""Label of the stream that the secret of a `KeyedSource` is taken from."""


_ZEROS: Final = bytes(CHUNK_BYTES)  # what is encrypted; immutable, shared by all streams


class _Forks:
    """Number of forks between the process that started Python and this one."""

    count = 0

    @classmethod
    def note(cls) -> None:
        """Run in every child right after a fork."""
        cls.count += 1


if hasattr(os, "register_at_fork"):  # absent where there is no fork
    os.register_at_fork(after_in_child=_Forks.note)


class Stream:
    """An endless sequence of uniform random words, for one thread at a time.

    Args:
        key_of: gives the stream's n-th 32-byte key, n = 0, 1, ...
        is_rekeyed_by_fork: whether a forked child goes on with a new key. If not, parent and
            child repeat each other, which only a reproducible source may want.
        key_bytes: how many bytes a key may yield before the next one is taken.
    """

    __slots__ = (
        "_encryptor", "_forks", "_key_bytes", "_key_of", "_left", "_lock", "_n", "_process",
        "_rekeys",
    )  # fmt: skip

    def __init__(
        self,
        key_of: Callable[[int], bytes],
        *,
        is_rekeyed_by_fork: bool,
        key_bytes: int = KEY_BYTES,
    ) -> None:
        self._key_of = key_of
        self._rekeys = is_rekeyed_by_fork
        self._key_bytes = key_bytes
        self._forks, self._process = _Forks.count, os.getpid()
        self._lock = threading.Lock()
        self._n = 0
        self._take_key()

    def fill(self, words: NDArray[np.unsignedinteger[Any]]) -> None:
        """Overwrite an array with fresh uniform bits.

        Raises:
            PrivacyError: if it is not one-dimensional and contiguous, or the stream is in use.
        """
        if words.ndim != 1 or not words.flags.c_contiguous:
            raise PrivacyError(
                f"words must be a contiguous one-dimensional array, got {words.ndim} dimensions "
                "(fill a new array and copy it)"
            )
        target = words.view(np.uint8)
        # By the process, too: a library that forks by itself does not call Python's hooks.
        if self._forks != _Forks.count or self._process != os.getpid():
            self._renew_after_fork()
        if not self._lock.acquire(blocking=False):
            raise PrivacyError(
                "a stream must be used by one thread at a time, but a second one asked for "
                "words (take one stream per worker from the source)"
            )
        try:
            for start in range(0, target.size, CHUNK_BYTES):
                self._encrypt(target[start : start + CHUNK_BYTES])
        finally:
            self._lock.release()

    def words(self, n: int) -> NDArray[np.uint64]:
        """Return n fresh uniform 64-bit words."""
        words = np.empty(n, dtype=np.uint64)
        self.fill(words)
        return words

    def _encrypt(self, target: NDArray[np.uint8]) -> None:
        size = target.size
        if size > self._left:
            self._take_key()
        zeros = _ZEROS if size == CHUNK_BYTES else memoryview(_ZEROS)[:size]
        self._encryptor.update_into(zeros, target)  # type: ignore[arg-type] # any writable buffer
        self._left -= size

    def _take_key(self) -> None:
        key = self._key_of(self._n)
        # The counter may start at zero again: no two encryptors share a key.
        self._encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
        self._n += 1
        self._left = self._key_bytes

    def _renew_after_fork(self) -> None:
        self._forks, self._process = _Forks.count, os.getpid()
        # The inherited lock may be held by a thread that does not exist in the child.
        self._lock = threading.Lock()
        if self._rekeys:
            self._take_key()

    def __reduce__(self) -> NoReturn:
        raise PrivacyError(
            "a stream cannot be copied or pickled, because both copies would yield the same "
            "noise (send the source, and take a stream from it where it is used)"
        )


class RandomSource(Protocol):
    """Where streams come from."""

    @property
    def is_secure(self) -> bool:
        """Whether what is made from its streams may be called private."""

    def stream(self, *labels: int) -> Stream:
        """Return a new stream for the item of work with these labels."""


class SecureSource:
    """Streams with keys of their own from the operating system; labels are ignored."""

    __slots__ = ()
    is_secure: Final = True

    def stream(self, *labels: int) -> Stream:
        """Return a stream with a fresh key."""
        del labels  # equal labels must not mean equal noise
        return Stream(lambda _: os.urandom(32), is_rekeyed_by_fork=True)


class SeededSource:
    """Reproducible streams for tests and experiments: never private.

    Equal seeds and labels give equal streams, in any process and on any machine; different
    ones give independent streams.

    Args:
        seed: any integer.

    Example:
        >>> bool(SeededSource(7).stream(1, 2).words(1) == SeededSource(7).stream(1, 2).words(1))
        True
    """

    __slots__ = ("seed",)
    is_secure: Final = False

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def stream(self, *labels: int) -> Stream:
        """Return the stream that belongs to the seed and these labels."""
        name = ",".join(str(int(part)) for part in (self.seed, *labels))

        def key_of(n: int) -> bytes:
            return hashlib.sha256(f"inftda seeded stream {name};{n}".encode()).digest()

        return Stream(key_of, is_rekeyed_by_fork=False)


@dataclass(frozen=True)
class KeyedSource:
    """Random bits that a task can be asked for twice: streams that follow from a secret and labels.

    Spark runs a task again when a machine dies, runs it twice when a machine is slow, and may
    evaluate a plan once more whenever it likes. If each run drew fresh noise, two different
    draws for the same counts could both become visible, and their mean has less noise than was
    paid for. So noise on executors is a function of a secret of 256 bits, taken by the driver
    from its secure source for one level step, and of the item of work: every run of a task
    gives the same flows, bit for bit. Without the secret the keys are independent uniform ones
    to anyone (HMAC-SHA-256 is a pseudorandom function).

    The secret is as confidential as the true counts: whoever has it can subtract the noise. It
    goes where the true counts go (from the driver to the executors) and nowhere else.

    Attributes:
        secret: 256 random bits.
        is_secure: whether the secret came from a secure source.
    """

    secret: bytes = field(repr=False)
    is_secure: bool

    @classmethod
    def of(cls, source: RandomSource) -> KeyedSource:
        """A source with a fresh secret."""
        return cls(source.stream(SECRET_LABEL).words(4).tobytes(), source.is_secure)

    def stream(self, *labels: int) -> Stream:
        """The stream of one item."""
        name = ",".join(str(int(label)) for label in labels)

        def key_of(stretch: int) -> bytes:
            text = f"inftda item {name};{stretch}"
            return hmac.digest(self.secret, text.encode(), "sha256")

        return Stream(key_of, is_rekeyed_by_fork=False)
