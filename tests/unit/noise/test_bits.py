"""Random bits at addresses: AES-256 of numbered blocks, sources, secrets."""

import pickle

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from inftda.errors import PrivacyError
from inftda.noise import bits as bits_module
from inftda.noise.bits import Bits, Secret, SecureSource, SeededSource, draw_seed
from inftda.noise.distribution import Noise

KEY = bytes(range(32))


def block(row, place, key=KEY):
    """One block by the cipher itself, by definition."""
    cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    return cipher.update(np.array([row, place], "<u8").tobytes())


def words_of(rows, sizes, dtype, key=KEY):
    """Words of some rows, each taken from its own blocks."""
    per_block = 16 // np.dtype(dtype).itemsize
    found = []
    for row, size in zip(rows, sizes, strict=True):
        raw = b"".join(block(row, place, key) for place in range(-(-size // per_block)))
        found.append(np.frombuffer(raw, dtype)[:size])
    return np.concatenate([np.zeros(0, dtype), *found])


def test_the_first_block_of_a_zero_key_is_the_published_one():
    assert Bits(bytes(32)).words(2).tobytes().hex() == "dc95c078a2408989ad48a21492842087"


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("chunk", [1, 2, 5, 1 << 15])
def test_words_are_those_of_the_blocks_of_each_row(monkeypatch, dtype, chunk):
    monkeypatch.setattr(bits_module, "CHUNK", chunk)
    random = np.random.default_rng(chunk)
    rows = np.sort(random.permutation(10**6)[:30]) << 40
    sizes = random.choice([0, 1, 2, 3, 4, 5, 8, 17], 30)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    words = np.empty(offsets[-1], dtype)
    Bits(KEY).fill(words, rows, offsets)
    assert words.tolist() == words_of(rows.tolist(), sizes.tolist(), dtype).tolist()


def test_further_bits_of_a_draw_are_at_addresses_of_their_own():
    row, draw = 12345, 77
    place = 1 << 63 | draw << 32
    more = Bits(KEY).further(row, draw)
    expected = np.frombuffer(block(row, place | 2) + block(row, place | 3), "<u8").tolist()
    assert [next(more) for _ in range(4)] == expected


def test_fields_of_an_address_never_overflow(monkeypatch):
    monkeypatch.setattr(bits_module, "_MOST_PARTS", 4)
    more = Bits(KEY).further(0, 0)
    assert len({next(more) for _ in range(4)}) == 4
    with pytest.raises(PrivacyError, match="random bits cannot be right"):
        next(more)
    with pytest.raises(PrivacyError, match=r"2\^31 draws"):
        Bits(KEY).fill(np.empty(0, np.uint32), np.zeros(1, np.int64), np.array([0, 1 << 31]))


@pytest.mark.parametrize("word_bits", [2, 8])
def test_draws_and_what_settles_them_never_share_a_block(monkeypatch, word_bits):
    """Words of two bits are nearly always undecided, and words of eight sometimes."""
    asked, encrypt = [], Bits._encrypt

    def record(self, counters, random):
        asked.extend(map(tuple, counters.tolist()))
        encrypt(self, counters, random)

    monkeypatch.setattr(Bits, "_encrypt", record)
    rows, offsets = np.array([3, 9, 10]), np.array([0, 40, 47, 200])
    Noise.gaussian(4).table(word_bits).fill(np.empty(200, np.int64), Bits(KEY), rows, offsets)
    assert len(asked) == len(set(asked))
    n_further = sum(place >= 1 << 63 for _, place in asked)
    assert n_further >= {2: 150, 8: 3}[word_bits]


@pytest.mark.parametrize("rows", [[3, 3], [4, 3]])
def test_no_row_is_asked_for_twice(rows):
    with pytest.raises(PrivacyError, match="no bits are used twice"):
        Bits(KEY).fill(np.empty(2, np.uint32), np.array(rows), np.array([0, 1, 2]))


def test_secure_bits_are_fresh_each_time_whatever_the_labels():
    source = SecureSource()
    assert source.is_secure
    found = {source.bits(1, 2).words(2).tobytes() for _ in range(5)}
    assert len(found | {SecureSource().bits(1, 2).words(2).tobytes()}) == 6


def test_a_secure_key_is_256_bits_of_the_operating_system(monkeypatch):
    asked, key = [], bytes(range(32))

    def urandom(n):
        asked.append(n)
        return key[:n]

    monkeypatch.setattr(bits_module.os, "urandom", urandom)
    assert SecureSource().bits().words(4).tobytes() == Bits(key).words(4).tobytes()
    assert asked == [32]


def test_nothing_else_than_the_operating_system_gives_secure_keys(monkeypatch):
    def fails(_):
        raise NotImplementedError

    monkeypatch.setattr(bits_module.os, "urandom", fails)
    with pytest.raises(NotImplementedError):
        SecureSource().bits()


def test_seeded_bits_follow_from_seed_and_labels_alone():
    def words(seed, *labels):
        return SeededSource(seed).bits(*labels).words(4).tobytes()

    assert not SeededSource(1).is_secure
    assert words(1, 2, 3) == words(1, 2, 3)
    distinct = [(1, 2, 3), (1, 23), (12, 3), (1, 3, 2), (1, 2), (1,), (-1,), (2**80,)]
    assert len({words(*labels) for labels in distinct}) == len(distinct)
    assert pickle.loads(pickle.dumps(SeededSource(5))).seed == 5


def test_a_secret_gives_the_same_bits_again_also_elsewhere_and_does_not_show_itself():
    one, other = Secret.of(SecureSource()), Secret.of(SecureSource())
    assert one.is_secure
    assert not Secret.of(SeededSource(1)).is_secure
    elsewhere = pickle.loads(pickle.dumps(one))
    words = one.bits(1, 2).words(4).tolist()
    assert words == one.bits(1, 2).words(4).tolist() == elsewhere.bits(1, 2).words(4).tolist()
    assert words != one.bits(2, 1).words(4).tolist()
    assert one.bits(1, 23).words(4).tolist() != one.bits(12, 3).words(4).tolist()
    assert len(one.secret) == 32
    assert words != other.bits(1, 2).words(4).tolist()
    assert str(one.secret) not in repr(one)
    assert "confidential" in repr(one.bits(1))


def test_the_public_seed_has_a_key_of_its_own():
    source = SeededSource(3)
    seed = draw_seed(source)
    assert len(seed) == 16
    assert seed == draw_seed(SeededSource(3))
    assert seed not in Secret.of(source).secret
    assert draw_seed(SecureSource()) != draw_seed(SecureSource())
