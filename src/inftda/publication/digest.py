"""What tells the flows of a release from any others: a digest of their file or files.

It follows from what is published, so it costs nothing. It finds damage and mistakes, not
forgery: who changes the flows can change the digest as well, unless the manifest is signed.
"""

import hashlib
from pathlib import Path


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the names and digests of all files of a folder."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    together = hashlib.sha256()
    for part in sorted(path.rglob("*")):
        if part.is_file():
            together.update(f"{part.relative_to(path).as_posix()}\0{digest(part)}\n".encode())
    return together.hexdigest()
