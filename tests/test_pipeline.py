# SPDX-License-Identifier: GPL-2.0-only
"""The ordered pipeline: parallel map, ordered consume, bounded window, first error wins, Ctrl-C ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btfstep import OrderedPipeline
from tokens import usual_signals

JOBS = [1, 2, 3, 8]
delays = st.lists(st.sampled_from([0.0, 0.0, 0.0002, 0.002]), max_size=24)


@settings(max_examples=40, deadline=None)
@given(delays=delays, jobs=st.integers(1, 6), window=st.none() | st.integers(1, 8), slow_consumer=st.booleans())
def test_results_are_consumed_in_the_order_of_the_items_whatever_the_timing(
    delays: list[float], jobs: int, window: int | None, slow_consumer: bool
) -> None:
    def work(index: int) -> str:
        time.sleep(delays[index])
        return f"result {index}"

    def consume(result: str) -> None:
        if slow_consumer:
            time.sleep(0.0002)
        consumed.append(result)

    consumed: list[str] = []
    OrderedPipeline(work, consume, jobs=jobs, window=window).run(range(len(delays)))
    assert consumed == [f"result {index}" for index in range(len(delays))]


@settings(max_examples=40, deadline=None)
@given(delays=delays, jobs=st.integers(1, 6), window=st.integers(1, 8))
def test_no_more_items_than_the_window_are_taken_and_not_yet_consumed(
    delays: list[float], jobs: int, window: int
) -> None:
    outstanding = 0
    most = 0
    lock = threading.Lock()

    def items() -> Iterator[int]:
        nonlocal outstanding, most
        for index in range(len(delays)):
            with lock:
                outstanding += 1
                most = max(most, outstanding)
            yield index

    def work(index: int) -> int:
        time.sleep(delays[index])
        return index

    def consume(index: int) -> None:
        nonlocal outstanding
        with lock:
            outstanding -= 1

    OrderedPipeline(work, consume, jobs=jobs, window=window).run(items())
    assert most <= window
    assert outstanding == 0


@settings(max_examples=40, deadline=None)
@given(
    delays=st.lists(st.sampled_from([0.0, 0.0002, 0.002]), min_size=1, max_size=24),
    failing=st.sets(st.integers(0, 23), min_size=1),
    where=st.sampled_from(["items", "work", "consume"]),
    jobs=st.integers(1, 6),
)
def test_the_first_error_in_item_order_wins_and_stops_the_rest(
    delays: list[float], failing: set[int], where: str, jobs: int
) -> None:
    """As in a plain loop: all before the first failing item is consumed, nothing after it."""

    class FailedError(Exception):
        pass

    def step(name: str, index: int) -> int:
        if name == where and index in failing:
            raise FailedError(index)
        return index

    def work(index: int) -> int:
        time.sleep(delays[index])
        return step("work", index)

    def consume(index: int) -> None:
        consumed.append(step("consume", index))

    consumed: list[int] = []
    first = min(failing)
    pipeline = OrderedPipeline(work, consume, jobs=jobs)
    if first < len(delays):
        with pytest.raises(FailedError, match=f"^{first}$"):
            pipeline.run(step("items", index) for index in range(len(delays)))
        assert consumed == list(range(first))
    else:
        pipeline.run(step("items", index) for index in range(len(delays)))
        assert consumed == list(range(len(delays)))


@pytest.mark.parametrize("jobs", JOBS)
def test_after_an_error_no_more_items_are_taken(jobs: int) -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for index in range(10_000):
            taken += 1
            yield index

    def work(index: int) -> int:
        if index == 5:
            raise RuntimeError("no")
        return index

    with pytest.raises(RuntimeError):
        OrderedPipeline(work, lambda _: None, jobs=jobs, window=16).run(items())
    assert taken <= 5 + 16 + 1


@pytest.mark.parametrize("jobs", JOBS)
def test_each_thread_owns_a_worker_and_none_is_used_by_two_at_once(jobs: int) -> None:
    made: list[list[int]] = []

    def make_worker() -> Callable[[int], int]:
        users: list[int] = []
        made.append(users)

        def work(index: int) -> int:
            users.append(threading.get_ident())
            time.sleep(0.0005)
            return index

        return work

    before = threading.active_count()
    consumed: list[int] = []
    OrderedPipeline(None, consumed.append, jobs=jobs, make_worker=make_worker).run(iter(range(40)))
    assert consumed == list(range(40))
    assert len(made) == jobs
    assert all(len(set(users)) <= 1 for users in made)
    assert threading.active_count() == before, "no thread is left over"


def test_work_goes_on_while_a_result_is_being_consumed() -> None:
    second_is_worked_on = threading.Event()

    def work(index: int) -> int:
        if index == 1:
            second_is_worked_on.set()
        return index

    def consume(index: int) -> None:
        if index == 0:
            assert second_is_worked_on.wait(10)

    OrderedPipeline(work, consume, jobs=2).run(range(2))


def test_one_job_or_one_item_runs_in_the_calling_thread() -> None:
    threads: set[int] = set()

    def work(_: int) -> None:
        threads.add(threading.get_ident())

    OrderedPipeline(work, lambda _: work(0), jobs=1).run(range(5))
    OrderedPipeline(work, lambda _: work(0), jobs=8).run([1])
    assert threads == {threading.get_ident()}


def test_it_may_be_run_again() -> None:
    consumed: list[int] = []
    pipeline = OrderedPipeline(lambda index: index, consumed.append, jobs=2)
    pipeline.run([1, 2, 3])
    pipeline.run([])
    pipeline.run([4, 5])
    assert consumed == [1, 2, 3, 4, 5]


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="jobs"):
        OrderedPipeline(abs, print, jobs=0)
    with pytest.raises(ValueError, match="window"):
        OrderedPipeline(abs, print, jobs=1, window=0)
    with pytest.raises(TypeError, match="work"):
        OrderedPipeline(None, print, jobs=1)


class Counted:
    """Permits that are counted. `later`: how often there is none before there are `count` of them."""

    def __init__(self, count: int, later: int = 0) -> None:
        self.left = count
        self.held = 0
        self._later = later
        self._lock = threading.Lock()

    def acquire(self) -> bool:
        with self._lock:
            self._later -= 1
            if self._later >= 0 or not self.left:
                return False
            self.left -= 1
            self.held += 1
            return True

    def release(self) -> None:
        with self._lock:
            assert self.held > 0
            self.left += 1
            self.held -= 1


def soon(condition: Callable[[], bool]) -> bool:
    """Whether it is true within ten seconds."""
    end = time.monotonic() + 10
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


@settings(max_examples=60, deadline=None)
@given(
    delays=delays,
    jobs=st.integers(1, 6),
    window=st.none() | st.integers(1, 8),
    count=st.integers(0, 6),
    later=st.integers(0, 20),
    failing=st.none() | st.integers(0, 23),
)
def test_threads_at_work_are_one_more_than_the_permits_held(
    delays: list[float], jobs: int, window: int | None, count: int, later: int, failing: int | None
) -> None:
    permits = Counted(count, later)
    at_work = 0
    lock = threading.Lock()

    def work(index: int) -> int:
        nonlocal at_work
        with lock:
            at_work += 1
            assert at_work <= permits.held + 1 <= min(jobs, count + 1)
        time.sleep(delays[index])
        with lock:
            at_work -= 1
        if index == failing:
            raise ZeroDivisionError
        return index

    consumed: list[int] = []
    pipeline = OrderedPipeline(work, consumed.append, jobs=jobs, window=window, permits=permits)
    if failing is not None and failing < len(delays):
        with pytest.raises(ZeroDivisionError):
            pipeline.run(iter(range(len(delays))))
        assert consumed == list(range(failing))
    else:
        pipeline.run(iter(range(len(delays))))
        assert consumed == list(range(len(delays)))
    assert (permits.held, permits.left) == (0, count)


def test_a_permit_that_is_there_later_is_taken_later() -> None:
    permits = Counted(1, later=10)
    two_at_once = threading.Barrier(2)

    def work(index: int) -> None:
        if index > 15:
            two_at_once.wait(10)  # raises if nobody else comes

    OrderedPipeline(work, lambda _: None, jobs=2, permits=permits).run(range(20))


def test_a_thread_without_room_gives_its_permit_back_and_takes_it_again() -> None:
    permits = Counted(2)
    held_again = False

    def work(index: int) -> int:
        nonlocal held_again
        held_again = held_again or (index > 6 and permits.held > 0)
        time.sleep(0.001)
        return index

    def consume(index: int) -> None:
        if index == 2:
            assert soon(lambda: permits.held == 0), "the others wait for this one, and hold permits"

    OrderedPipeline(work, consume, jobs=3, window=4, permits=permits).run(range(40))
    assert held_again
    assert permits.held == 0


def test_a_thread_without_an_item_gives_its_permit_back() -> None:
    permits = Counted(3)

    def work(index: int) -> None:
        if index == 7:
            assert soon(lambda: permits.held == 0), "nothing is left for the others, and they hold permits"

    OrderedPipeline(work, lambda _: None, jobs=4, permits=permits).run(range(8))


@pytest.mark.parametrize("possible", [0, 1, 2])
def test_threads_that_cannot_be_started_are_done_without(possible: int, monkeypatch: pytest.MonkeyPatch) -> None:
    started = 0
    start = threading.Thread.start

    def start_some(thread: threading.Thread) -> None:
        nonlocal started
        if started == possible:
            raise RuntimeError("can't start new thread")
        started += 1
        start(thread)

    def work(index: int) -> int:
        time.sleep(0.0005)
        return index

    monkeypatch.setattr(threading.Thread, "start", start_some)
    permits = Counted(3)
    consumed: list[int] = []
    OrderedPipeline(work, consumed.append, jobs=4, permits=permits).run(range(50))
    assert consumed == list(range(50))
    assert permits.held == 0


def test_a_worker_that_cannot_be_made_is_an_error() -> None:
    made = 0

    def make_worker() -> Callable[[int], int]:
        nonlocal made
        made += 1
        if made == 2:
            raise MemoryError
        return lambda index: index

    permits = Counted(3)
    with pytest.raises(MemoryError):
        OrderedPipeline(None, lambda _: None, jobs=3, make_worker=make_worker, permits=permits).run(range(10))
    assert permits.held == 0


INTERRUPTED = """
import sys, threading, time
from btfstep import OrderedPipeline

def work(index):
    if index == 20:
        print("working", flush=True)
    time.sleep(0.01)
    return index

def consume(index):
    assert not interrupted

interrupted = False
try:
    OrderedPipeline(work, consume, jobs=int(sys.argv[1])).run(range(1_000_000))
except KeyboardInterrupt:
    interrupted = True
    time.sleep(0.05)
    print("threads left:", threading.active_count() - 1)
"""


@pytest.mark.parametrize("jobs", JOBS)
def test_ctrl_c_ends_it_at_once_with_no_thread_left(jobs: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(jobs)],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=usual_signals,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "working\n"
    child.send_signal(signal.SIGINT)
    sent = time.monotonic()
    rest, _ = child.communicate(timeout=30)
    assert time.monotonic() - sent < 5
    assert rest == "threads left: 0\n"
    assert child.returncode == 0
