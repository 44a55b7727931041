"""The data in a page, read as the browser reads it."""

import base64
import gzip
import json
import re
from itertools import accumulate


def unpack(text):
    """Header and arrays of packed data, or of the page that holds it."""
    text = packed_of(text)
    plain = gzip.decompress(base64.b64decode(text))
    length = int.from_bytes(plain[:4], "little")
    header = json.loads(plain[4 : 4 + length])
    arrays = {}
    for name, (start, n, width, least) in header["arrays"].items():
        planes = plain[4 + length + start :][: n * width]
        numbers = [
            least + sum(planes[plane * n + i] << 8 * plane for plane in range(width))
            for i in range(n)
        ]
        arrays[name] = list(accumulate(numbers)) if name.endswith(".cells") else numbers
    return header, arrays


def header_of(text):
    return unpack(text)[0]


def packed_of(text):
    """The packed data of a page; itself if it is no page."""
    return re.search(r'id="packed">([^<]*)<', text).group(1) if "<html" in text else text
