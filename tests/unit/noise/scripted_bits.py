"""Random bits that a test spells out, and that notice when more are asked for."""

import numpy as np

ROW = np.zeros(1, np.int64)


class ScriptedBits:
    """Gives the bytes of some arrays, one after the other, and nothing else.

    Args:
        arrays: the words of draws, then their further words.
    """

    def __init__(self, *arrays):
        self.data = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)

    def fill(self, words, rows, offsets):
        del rows, offsets
        words.view(np.uint8)[:] = self._taken(words.nbytes)

    def further(self, row, draw):
        del row, draw
        while True:
            yield int(self._taken(8).view(np.uint64)[0])

    def _taken(self, size):
        if size > len(self.data):
            raise AssertionError(f"{size} bytes asked for, {len(self.data)} left")
        taken, self.data = self.data[:size], self.data[size:]
        return np.frombuffer(taken, dtype=np.uint8).copy()


def fill(table, out, bits):
    """The draws of one row."""
    table.fill(out, bits, ROW, np.array([0, len(out)]))
