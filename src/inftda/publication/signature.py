"""Ed25519 signatures of manifests, which show who published a release.

The manifest states the SHA-256 of every other file, so its signature covers the whole release.
`manifest.sig` has the 64 bytes of the signature of the bytes of `manifest.json`, so any Ed25519
tool can check it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from inftda.errors import InftdaError, ReleaseError
from inftda.publication.manifest import SIGNATURE_FILE
from inftda.util.files import MANIFEST_FILE, check_file, is_plain, whole_file
from inftda.util.formats import GET_AGAIN

#: Length of an Ed25519 signature in bytes.
SIZE: Final = 64
#: Largest size of a file with a key, in bytes.
_MAX_KEY: Final = 1 << 16


def make_keys(path: Path) -> Path:
    """Make a private key that only its owner can read, and a public key; return the public file.

    For `office.pem` the public file is `office.public.pem`.
    """
    public = path.with_suffix(f".public{path.suffix}")
    for file in (path, public):
        if os.path.lexists(file):
            raise InftdaError(
                f"{str(file)!r} exists already, and keys are never replaced; choose another name"
            )
        check_file(file)
    key = Ed25519PrivateKey.generate()
    texts = {
        public: key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
        path: key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    }
    for file, text in texts.items():
        mode = 0o600 if file == path else 0o666
        with whole_file(file) as partial:
            partial.touch(mode)
            partial.write_bytes(text)
    return public


def read_private_key(path: str | Path) -> Ed25519PrivateKey:
    """The key to sign with."""
    try:
        key = serialization.load_pem_private_key(_read(Path(path)), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InftdaError(
            f"{str(path)!r} is not a private Ed25519 key in PEM without a password; make one with "
            "`inftda keygen`"
        )
    return key


def read_public_key(path: str | Path) -> Ed25519PublicKey:
    """The key to check signatures with."""
    text = _read(Path(path))
    if b"PRIVATE KEY" in text:
        raise InftdaError(
            f"{str(path)!r} is a private key, which only its owner should have; give the public "
            "key of the publisher"
        )
    try:
        key = serialization.load_pem_public_key(text)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InftdaError(
            f"{str(path)!r} is not a public Ed25519 key in PEM; ask the publisher for theirs"
        )
    return key


def sign(folder: Path, key: Ed25519PrivateKey) -> None:
    """Sign the manifest of a folder after all other files are written."""
    signature = key.sign((folder / MANIFEST_FILE).read_bytes())
    (folder / SIGNATURE_FILE).write_bytes(signature)


def check_signature(folder: Path, key: str | Path | None, say: Callable[[str], object]) -> str:
    """Check the signature with a public key, if one is given; return the result in words.

    A signature that cannot be checked is no check that passed; `say` is told about it.
    """
    if not is_plain(folder / MANIFEST_FILE):
        return ""  # `open_release` reports other problems
    file = folder / SIGNATURE_FILE
    is_signed = os.path.lexists(file)
    if is_signed and (not is_plain(file) or file.stat().st_size != SIZE):
        raise ReleaseError(f"{SIGNATURE_FILE} is not a signature of {SIZE} bytes; {GET_AGAIN}")
    if key is None:
        if is_signed:
            say("the signature was not checked; give the public key of the publisher (`key=`)")
        return ""
    public = read_public_key(key)
    if not is_signed:
        raise ReleaseError(
            f"the release is not signed: it has no {SIGNATURE_FILE}; get the signed one from its "
            "publisher"
        )
    try:
        public.verify(file.read_bytes(), (folder / MANIFEST_FILE).read_bytes())
    except InvalidSignature:
        raise ReleaseError(
            f"{SIGNATURE_FILE} was not made with the key {str(key)!r} for this {MANIFEST_FILE}: "
            f"somebody else signed the release, or it was changed since; {GET_AGAIN}"
        ) from None
    return f"signed by the owner of the key {str(key)!r}"


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MAX_KEY:
            raise InftdaError(f"{str(path)!r} is far too large to be a key")
        return path.read_bytes()
    except OSError as problem:
        raise InftdaError(
            f"cannot read the key {str(path)!r}: {problem.strerror}; check the path"
        ) from None
