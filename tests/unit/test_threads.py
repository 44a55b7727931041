"""Work handed to threads: the order of results, who works, and what happens when it fails."""

import multiprocessing
import os
import threading
import time

import pytest

from inftda.util.threads import BACKLOG, ThreadPool
from patience import PATIENCE


def slowly_squared(number):
    time.sleep(0.001 * (7 * number % 5))  # later items are often done before earlier ones
    return number**2


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_results_come_in_the_order_of_the_items(threads, n):
    assert list(ThreadPool(threads).map(slowly_squared, range(n))) == [i**2 for i in range(n)]


def threads_that_meet(pool):
    """Which threads work, if the first item of each waits until all have one."""
    meeting, met = threading.Barrier(pool.threads), set()

    def work(_):
        name = threading.get_ident()
        if name not in met:
            met.add(name)
            meeting.wait(PATIENCE)
        return name

    return set(pool.map(work, range(20 * pool.threads)))


def test_all_threads_work():
    assert len(threads_that_meet(ThreadPool(3))) == 3


def test_one_thread_is_the_caller():
    assert set(ThreadPool(1).map(lambda _: threading.get_ident(), range(5))) == {
        threading.get_ident()
    }


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_items_are_taken_no_further_ahead_than_the_backlog(threads):
    """Results not yet taken are memory, also while one item takes long."""
    given = []

    def items():
        for number in range(1000):
            given.append(number)
            yield number

    def work(number):
        time.sleep(0.05 if number % 400 == 0 else 0)

    for taken, _ in enumerate(ThreadPool(threads).map(work, items()), 1):
        assert len(given) <= taken + threads * BACKLOG + 1


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_failure_reaches_the_caller_and_stops_the_rest(threads):
    begun = []

    def work(number):
        begun.append(number)
        if number == 20:
            raise ValueError("the twentieth")
        time.sleep(0.001)
        return number

    pool, taken = ThreadPool(threads), []
    with pytest.raises(ValueError, match="the twentieth"):
        taken.extend(pool.map(work, range(1000)))
    assert taken == sorted(taken)
    assert len(begun) < 60
    assert list(pool.map(lambda number: number, range(9))) == list(range(9)), "it can go on"


def test_who_stops_early_waits_for_what_is_under_way_and_for_nothing_else():
    running, done = [], []

    def work(number):
        running.append(number)
        time.sleep(0.02)
        done.append(number)

    results = ThreadPool(2).map(work, range(1000))
    next(results)
    results.close()
    assert sorted(done) == sorted(running)
    assert len(done) < 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_takes_threads_of_its_own():
    pool = ThreadPool(2)
    assert list(pool.map(slowly_squared, range(9))) == [i**2 for i in range(9)]
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: list(pool.map(slowly_squared, range(9))))
    child.start()
    child.join(PATIENCE)
    is_stuck = child.is_alive()
    child.kill()
    assert not is_stuck
