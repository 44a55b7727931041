"""Streams: the right bits, never twice."""

import copy
import hashlib
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from inftda.errors import PrivacyError
from inftda.noise import entropy
from inftda.noise.entropy import CHUNK_BYTES, SecureSource, SeededSource, Stream
from patience import PATIENCE


def aes_of_counters(key, n_blocks):
    """Counter mode by its definition: encrypt 0, 1, 2, ... one block at a time."""
    encryptor = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    return b"".join(encryptor.update(i.to_bytes(16, "big")) for i in range(n_blocks))


def test_a_stream_is_aes_256_of_a_counter():
    key = hashlib.sha256(b"some key").digest()
    stream = Stream(lambda _: key, is_rekeyed_by_fork=False)
    assert stream.words(2 * 300).tobytes() == aes_of_counters(key, 300)


def test_a_stream_agrees_with_the_published_block_of_a_zero_key():
    stream = Stream(lambda _: bytes(32), is_rekeyed_by_fork=False)
    assert stream.words(2).tobytes().hex() == "dc95c078a2408989ad48a21492842087"


@pytest.mark.parametrize("n_words", [0, 1, 2, 3, CHUNK_BYTES // 8, CHUNK_BYTES // 8 + 1, 100_001])
def test_words_do_not_depend_on_how_they_are_asked_for(n_words):
    whole, stream = SeededSource(1).stream().words(n_words), SeededSource(1).stream()
    pieces = [stream.words(n) for n in (n_words // 3, n_words - n_words // 3)]
    assert np.array_equal(whole, np.concatenate(pieces))


def test_fill_overwrites_arrays_of_short_words_too():
    short = np.zeros(7, dtype=np.uint32)
    SeededSource(1).stream().fill(short)
    assert short.tobytes() == SeededSource(1).stream().words(4).tobytes()[:28]


@pytest.mark.parametrize("shape", [(4, 4), (8, 1)])
def test_arrays_that_would_be_filled_in_part_are_refused(shape):
    for words in (np.zeros(shape, dtype=np.uint64), np.zeros(8, dtype=np.uint64)[::2]):
        with pytest.raises(PrivacyError, match="contiguous one-dimensional"):
            SeededSource(1).stream().fill(words)


def test_equal_seeds_and_labels_give_equal_streams():
    assert np.array_equal(
        SeededSource(5).stream(1, 2).words(9), SeededSource(5).stream(1, 2).words(9)
    )


def test_different_seeds_or_labels_give_different_streams():
    names = [
        (5,),
        (5, 0),
        (5, 1),
        (5, 1, 23),
        (5, 12, 3),
        (5, 123),
        (51, 23),
        (-5,),
        (6,),
        (2**80,),
    ]
    first_words = {int(SeededSource(seed).stream(*labels).words(1)[0]) for seed, *labels in names}
    assert len(first_words) == len(names)


def test_secure_streams_ignore_labels_and_differ():
    source = SecureSource()
    words = [source.stream(1).words(1000) for _ in range(3)]
    assert len(np.unique(np.concatenate(words))) == 3000


def test_only_the_secure_source_is_secure():
    assert SecureSource().is_secure
    assert not SeededSource(0).is_secure


def test_a_new_key_is_taken_before_the_old_one_is_used_up():
    keys = [hashlib.sha256(bytes([i])).digest() for i in range(4)]
    asked = []

    def key_of(n):
        asked.append(n)
        return keys[n]

    stream = Stream(key_of, is_rekeyed_by_fork=False, key_bytes=64)
    got = b"".join(stream.words(4).tobytes() for _ in range(5))  # 32 bytes each
    expected = b"".join(aes_of_counters(key, 4) for key in keys[:3])
    assert got == expected[:160]
    assert asked == [0, 1, 2]


def test_a_key_yields_far_less_than_the_counter_could_count():
    assert entropy.KEY_BYTES <= 2**40
    assert entropy.KEY_BYTES % CHUNK_BYTES == 0


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_cannot_be_duplicated(duplicate):
    with pytest.raises(PrivacyError, match="cannot be copied"):
        duplicate(SecureSource().stream())


def test_a_stream_refuses_a_second_thread_while_in_use():
    is_inside, may_go_on = threading.Event(), threading.Event()

    def slow_key(n):
        if n:
            is_inside.set()
            may_go_on.wait(PATIENCE)
        return bytes(32)

    stream = Stream(slow_key, is_rekeyed_by_fork=False, key_bytes=8)
    worker = threading.Thread(target=stream.words, args=(2,))
    worker.start()
    assert is_inside.wait(PATIENCE)
    with pytest.raises(PrivacyError, match="one thread at a time"):
        stream.words(1)
    may_go_on.set()
    worker.join()
    assert stream.words(1).size == 1  # free again


FORK = """
import os
from inftda.noise.entropy import SecureSource, SeededSource
secure, seeded = SecureSource().stream(), SeededSource(3).stream()
secure.words(5), seeded.words(5)

def tell(who):
    print(who, *secure.words(4), *seeded.words(4), flush=True)

if os.fork() == 0:
    if os.fork() == 0:
        tell("grandchild")
        os._exit(0)
    os.wait()
    tell("child")
    os._exit(0)
os.wait()
tell("parent")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_fork_gets_a_new_key_but_seeded_streams_stay_reproducible():
    # In a process of its own, because forking one that has threads is unsafe.
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    told = {line.split()[0]: line.split()[1:] for line in run.stdout.splitlines()}
    assert set(told) == {"parent", "child", "grandchild"}
    secure_words = [word for words in told.values() for word in words[:4]]
    assert len(set(secure_words)) == 12
    seeded_words = {tuple(words[4:]) for words in told.values()}
    assert len(seeded_words) == 1


FOREIGN_FORK = """
import ctypes, os
from inftda.noise.entropy import SecureSource, SeededSource
secure, seeded = SecureSource().stream(), SeededSource(3).stream()
secure.words(5), seeded.words(5)
child = ctypes.PyDLL(None).fork()  # as a library in C does: Python's hooks are not called
if child:
    os.waitpid(child, 0)
print("parent" if child else "child", *secure.words(4), *seeded.words(4), flush=True)
os._exit(0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_fork_that_python_does_not_know_of_gets_a_new_key_as_well():
    code = [sys.executable, "-c", FOREIGN_FORK]
    run = subprocess.run(code, capture_output=True, text=True, check=True)
    told = {line.split()[0]: line.split()[1:] for line in run.stdout.splitlines()}
    assert set(told) == {"parent", "child"}
    assert len({*told["parent"][:4], *told["child"][:4]}) == 8
    assert told["parent"][4:] == told["child"][4:]


def test_a_fork_frees_a_stream_that_was_in_use_by_a_thread_left_behind(monkeypatch):
    stream = SecureSource().stream()
    stream._lock.acquire()
    monkeypatch.setattr(entropy._Forks, "count", entropy._Forks.count + 1)
    assert stream.words(1).size == 1
