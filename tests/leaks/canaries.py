"""A confidential table full of canaries, a scanner that finds them in whatever form, a watcher."""

import os
import re
import stat
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq

from packed_page import unpack

AREAS = "region,town\nN,1\nN,2\nS,3\nS,4\n"
REGION = {"1": "N", "2": "N", "3": "S", "4": "S"}
#: Noise so wide that any released number equals a true one with odds of less than one in a
#: thousand, and the same true one in two releases with less than one in a million.
COUNTS = {
    ("1", "2"): 700_000_012_347,
    ("1", "4"): 20_000_077_773,
    ("2", "2"): 310_000_055_561,
    ("3", "1"): 90_000_031_333,
    ("4", "4"): 150_000_099_991,
}
WIDE_NOISE = ("--epsilon", "2e-3", "--delta", "1e-14")
SEED = 918_273_645_546_372_819
PASSWORD = "Sesame-Canary-77"
PERSON = "person-canary-"


def flows_csv() -> str:
    rows = (f"{origin},{destination},{n}\n" for (origin, destination), n in COUNTS.items())
    return "origin,destination,count\n" + "".join(rows)


def trips_csv(n_persons: int) -> str:
    """One trip for each of so many persons; their names are canaries."""
    pairs = list(COUNTS)
    rows = (f"{pairs[i % 5][0]},{pairs[i % 5][1]},{PERSON}{i:06d}\n" for i in range(n_persons))
    return "origin,destination,person\n" + "".join(rows)


def true_numbers(*, is_total_public: bool) -> set[int]:
    """Every true number: all cells of all levels of the tree, and of all pairs of levels."""
    sums: dict[tuple[str, str], int] = {}
    for (origin, destination), n in COUNTS.items():
        origins = (f"town {origin}", f"region {REGION[origin]}", "all")
        destinations = (f"town {destination}", f"region {REGION[destination]}", "all")
        for pair in product(origins, destinations):
            sums[pair] = sums.get(pair, 0) + n
    if is_total_public:
        del sums["all", "all"]
    total = sum(COUNTS.values())
    return set(sums.values()) - ({total} if is_total_public else set())


def forms(number: int) -> Iterator[bytes]:
    """How a number may be written."""
    yield str(number).encode()
    yield f"{number:,}".encode()
    yield f"{number:,}".replace(",", " ").encode()
    yield f"{number:x}".encode()
    for order in "<>":
        yield struct.pack(f"{order}q", number)
        yield struct.pack(f"{order}d", number)


def found_in(content: bytes, numbers: Iterable[int] = (), texts: Iterable[str] = ()) -> list[str]:
    """Canaries in some bytes, for the message of a failing test."""
    # On a screen, colours and cursor moves stand between the digits.
    plain = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", content)
    wanted = [(str(number), form) for number in numbers for form in forms(number)]
    wanted += [(text, text.encode()) for text in texts]
    wanted += [(text, text.encode("utf-16-le")) for text in texts]
    return sorted({name for name, form in wanted if form in content or form in plain})


def unpacked(path: Path) -> bytes:
    """A file's bytes; of a Parquet file or a page, all that is packed in it as well."""
    content = path.read_bytes()
    if path.suffix == ".html":
        header, arrays = unpack(content.decode("utf-8"))
        return content + repr(header).encode() + repr(arrays).encode()
    if path.suffix != ".parquet":
        return content
    with pq.ParquetFile(path) as file:
        table, metadata = file.read(), file.metadata
        content += repr(metadata.to_dict()).encode() + repr(metadata.metadata).encode()
        content += repr(file.schema_arrow.metadata).encode()
    content += repr(table.to_pylist()).encode()
    for column in table.columns:
        for chunk in column.chunks:
            content += b"".join(bytes(buffer) for buffer in chunk.buffers() if buffer)
            if hasattr(chunk, "dictionary"):
                content += repr(chunk.dictionary.to_pylist()).encode()
    return content


class Watcher(threading.Thread):
    """Looks again and again at what stands in some folders for others to see: name to rights."""

    def __init__(self, *folders: Path) -> None:
        super().__init__(daemon=True)
        self.folders, self.seen, self.is_over = folders, {}, False

    def run(self) -> None:
        while not self.is_over:
            for folder in self.folders:
                self.look(folder)
            time.sleep(0.002)

    def look(self, folder: Path | str) -> None:
        with suppress(FileNotFoundError, NotADirectoryError):  # it has gone again
            for entry in os.scandir(folder):
                with suppress(FileNotFoundError, NotADirectoryError):
                    mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
                    self.seen[entry.name] = mode
                    if mode & 0o077 and entry.is_dir(follow_symlinks=False):
                        self.look(entry.path)

    def end(self) -> None:
        self.is_over = True
        self.join()
