"""Frames of zstd, which compresses pages: whether one holds anything but compressed values.

Readers pass over skippable frames and empty blocks, so anything could be hidden there. A page must
be one frame without empty blocks.
"""

from typing import BinaryIO, Final

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
#: Bytes of the size that a frame states, by the two top bits of its first byte.
_SIZE_BYTES: Final = (0, 2, 4, 8)
#: Its other bits: whether all of it is one segment, which has no byte for the window; and what no
#: page has: a checksum, a dictionary, reserved ones.
_ONE_SEGMENT, _OTHERS = 0x20, 0x1F
#: A block says in three bytes whether it is the last, of which kind and of what size.
_BLOCK: Final = 3
_LAST, _RUN, _RESERVED = 1, 1, 3


def is_one_frame(file: BinaryIO, start: int, end: int, *, expanded: int) -> bool:
    """Whether there is one frame from `start` to `end`, with nothing in it but compressed values.

    Args:
        file: to look into.
        start: offset of the first byte.
        end: offset after the last.
        expanded: bytes that are packed, as they are stated.
    """
    file.seek(start)
    head = file.read(len(_MAGIC) + 1)
    if len(head) <= len(_MAGIC) or not head.startswith(_MAGIC) or head[-1] & _OTHERS:
        return False
    is_single = bool(head[-1] & _ONE_SEGMENT)
    at = start + len(head) + (not is_single) + (_SIZE_BYTES[head[-1] >> 6] or is_single)
    is_last = False
    while not is_last and at < end:
        file.seek(at)
        block = file.read(_BLOCK)
        number = int.from_bytes(block, "little")
        is_last, kind, size = bool(number & _LAST), number >> 1 & 3, number >> 3
        is_empty = size == 0 and not (is_last and expanded == 0)
        if len(block) < _BLOCK or kind == _RESERVED or is_empty:
            return False
        at += _BLOCK + (1 if kind == _RUN else size)
    return is_last and at == end
