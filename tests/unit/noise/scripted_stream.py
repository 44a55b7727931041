"""A stream that yields what a test tells it to, and notices when it is asked for more."""

import numpy as np


class ScriptedStream:
    """Yields the bytes of the given arrays, one after the other, and nothing else."""

    def __init__(self, *arrays):
        self.data = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)

    def fill(self, words):
        size = words.nbytes
        if size > len(self.data):
            raise AssertionError(f"{size} bytes asked for, {len(self.data)} left")
        words.view(np.uint8)[:] = np.frombuffer(self.data[:size], dtype=np.uint8)
        self.data = self.data[size:]

    def words(self, n):
        words = np.empty(n, dtype=np.uint64)
        self.fill(words)
        return words
