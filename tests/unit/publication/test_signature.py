"""Signatures: a wrong key, a changed byte and a missing signature are refused in words."""

import shutil
import stat
import subprocess
from contextlib import chdir

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

import inftda
from inftda.cli.main import run
from inftda.errors import InftdaError, ReleaseError

AREAS = {"town": ["1", "2", "3"]}
TRIPS = {"origin": ["1", "2"] * 90, "destination": ["2", "3"] * 90}
BUDGET = {"epsilon": 2, "delta": 1e-6}


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """A folder with two pairs of keys and a signed release."""
    folder = tmp_path_factory.mktemp("signed")
    with chdir(folder):
        for name in ("office", "other"):
            assert run(["keygen", f"{name}.pem"]) == 0
        inftda.release(TRIPS, AREAS, **BUDGET, out="release", sign="office.pem")
    return folder


@pytest.fixture
def place(signed, tmp_path, monkeypatch):
    """A copy of it, which is the current folder."""
    monkeypatch.chdir(shutil.copytree(signed, tmp_path / "place"))
    return tmp_path / "place"


def test_a_signed_release_says_who_published_it(place):
    assert (place / "release" / "manifest.sig").stat().st_size == 64
    said = inftda.verify("release", key="office.public.pem")
    assert said[0] == "signed by the owner of the key 'office.public.pem'"
    told = []
    assert inftda.verify("release", on_message=told.append) == said[1:]
    assert told == ["the signature was not checked; give the public key of the publisher (`key=`)"]
    inftda.open_release("release").save("copy")
    assert inftda.verify("copy", key="office.public.pem")
    made = inftda.release(TRIPS, AREAS, **BUDGET, out="release", force=True)
    assert "signed" not in " ".join(inftda.verify("release")), made


def changed(name):
    def change(folder):
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(content)

    return change


OURS = "office.public.pem"


def empty(folder):
    (folder / "manifest.sig").write_bytes(b"")


def linked(folder):
    (folder / "manifest.sig").rename("elsewhere")
    (folder / "manifest.sig").symlink_to("../elsewhere")


def nothing(_):
    pass


CHANGES = {
    "another key": (nothing, "other.public.pem", "somebody else signed the release"),
    "no signature": (
        lambda folder: (folder / "manifest.sig").unlink(), OURS, "the release is not signed",
    ),
    "an empty signature": (empty, OURS, "not a signature of 64 bytes"),
    "a link": (linked, OURS, "not a signature of 64 bytes"),
    "a byte of the manifest": (changed("manifest.json"), OURS, "changed since"),
    "a byte of the signature": (changed("manifest.sig"), OURS, "changed since"),
    "a byte of the flows": (changed("flows.parquet"), OURS, "flows.parquet"),
    "a byte of the areas": (changed("areas.csv"), OURS, "areas"),
    "a byte of the totals": (changed("measurements.parquet"), OURS, "measurements.parquet"),
    "a private key": (nothing, "office.pem", "is a private key"),
    "no key": (nothing, "release/areas.csv", "not a public Ed25519 key"),
    "a missing key": (nothing, "nowhere.pem", "check the path"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_is_wrong_is_refused_in_words(place, capsys, what):
    change, key, says = CHANGES[what]
    change(place / "release")
    assert run(["verify", "release", "--key", key]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_private_keys_are_private_and_keys_never_replaced(place, capsys):
    before = (place / "office.pem").read_bytes()
    assert stat.S_IMODE((place / "office.pem").stat().st_mode) == 0o600
    (place / "page.html").touch()
    usual, public = (place / name for name in ("page.html", "office.public.pem"))
    assert public.stat().st_mode == usual.stat().st_mode, "everybody may read the public key"
    assert b"PRIVATE" not in (place / "office.public.pem").read_bytes()
    assert run(["keygen", "office.pem"]) == 2
    (place / "new.public.pem").touch()
    assert run(["keygen", "new.pem"]) == 2
    assert capsys.readouterr().err.count("never replaced") == 2
    assert (place / "office.pem").read_bytes() == before
    assert not (place / "new.pem").exists()


@pytest.mark.parametrize("key", ["office.public.pem", "curve.pem", "locked.pem", "release"])
@pytest.mark.usefixtures("place")
def test_what_is_no_key_to_sign_with_is_refused_before_anything_is_drawn(place, key):
    other = generate_private_key(SECP256R1())
    for name, how in (
        ("curve.pem", serialization.NoEncryption()),
        ("locked.pem", serialization.BestAvailableEncryption(b"secret")),
    ):
        (place / name).write_bytes(
            other.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
        )
    with pytest.raises(InftdaError, match="key"):
        inftda.release("nowhere.csv", AREAS, **BUDGET, out="new", sign=key)
    assert not (place / "new").exists()
    with pytest.raises(InftdaError, match="give `out=`"):
        inftda.release(TRIPS, AREAS, **BUDGET, sign="office.pem")


@pytest.mark.usefixtures("place")
def test_openssl_agrees():
    command = (
        "openssl pkeyutl -verify -rawin -pubin -inkey office.public.pem "
        "-in release/manifest.json -sigfile release/manifest.sig"
    )
    try:
        done = subprocess.run(command.split(), capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no openssl")
    assert done.returncode == 0, done.stderr


def test_a_stranger_called_like_a_signature_is_refused(place):
    (place / "release" / "manifest.sig").write_text("true counts: 17")
    with pytest.raises(ReleaseError, match="not a signature"):
        inftda.verify("release")
