# SPDX-License-Identifier: GPL-2.0-only
"""The ordered parallel pipeline: work on items in parallel, consume the results in order.

What it does is what this loop does::

    for item in items:
        consume(work(item))

but with `work` running in several threads at once. It pays if `work` spends
its time without the GIL. Per item it costs a few microseconds.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Generic, Protocol, TypeVar

    T = TypeVar("T")
    R = TypeVar("R")

    class _Pipeline(Generic[T, R]):
        pass

    class Permits(Protocol):
        """What each thread but one needs to run."""

        def acquire(self) -> bool:
            """Take one, if there is one; without waiting."""

        def release(self) -> None:
            """Give one back."""

else:  # importing typing costs as much as starting Python does

    class _Pipeline:
        def __class_getitem__(cls, parameters):
            return cls


WINDOW_PER_JOB = 4
"""The default window, in items for each thread."""


class OrderedPipeline(_Pipeline["T", "R"]):
    """Parallel map, ordered consume, bounded window; the first error wins and stops the rest.

    ``OrderedPipeline(work, consume, jobs=4).run(items)``, or, where each
    thread should own something that it reuses from item to item (buffers),
    ``OrderedPipeline(None, consume, jobs=4, make_worker=make)``: `make` is
    called once for each thread, before it starts, in any of them, and returns
    its `work`.

    `work` is called with an item, in any of `jobs` threads, in any order.
    `consume` is called with its result, in the order of the items, one call at
    a time, in whichever thread happens to have the next result; the others
    keep working meanwhile. With ``jobs=1``, or if `items` has a length and
    that is at most 1, there are no threads: everything runs in the caller's.

    Threads start as there are items for them. With `permits`, all but one of
    them also need a permit each: whenever there may be something to do for one
    more, its ``acquire()`` is called, which returns at once, and whether it
    gave one. A thread that has nothing to do, because no item is left or there
    is no room in the window, gives its permit back with ``release()`` at once.
    Neither may raise, and both may be called in any thread.

    At most `window` items (``4 * jobs`` by default) are taken from `items` and
    not yet consumed at any time, so memory does not grow with their number.
    `items` is iterated by one thread at a time, not always the same.

    Errors are those of the loop above, whatever the timing: if `items`, `work`
    or `consume` raises, then everything that comes before that item is
    consumed, nothing that comes after it is, and the exception is raised from
    :meth:`run`. No further items are taken meanwhile.

    An exception in the calling thread, such as KeyboardInterrupt, stops
    everything: no further call is made, and run() raises it as soon as the
    calls that are under way have returned.
    """

    def __init__(
        self,
        work: Callable[[T], R] | None,
        consume: Callable[[R], object],
        *,
        jobs: int,
        window: int | None = None,
        make_worker: Callable[[], Callable[[T], R]] | None = None,
        permits: Permits | None = None,
    ) -> None:
        """Raises ValueError if `jobs` or `window` is less than 1, TypeError without one way to `work`."""
        if jobs < 1:
            raise ValueError(f"jobs is {jobs}; it has to be at least 1")
        if window is not None and window < 1:
            raise ValueError(f"window is {window}; it has to be at least 1")
        if (work is None) == (make_worker is None):
            raise TypeError("give either work or make_worker")
        self._work = work
        self._make_worker = make_worker
        self._consume = consume
        self._permits = permits
        self.jobs = jobs
        self.window = WINDOW_PER_JOB * jobs if window is None else window

    def run(self, items: Iterable[T]) -> None:
        """Work on all items and consume their results, then return. May be called again."""
        jobs = self.jobs
        try:
            jobs = min(jobs, len(items))  # type: ignore[arg-type]  # not all have one
        except TypeError:
            pass
        if jobs <= 1:
            work = self._worker()
            for item in items:
                self._consume(work(item))
            return
        _Run(self._worker, self._consume, jobs, self.window, iter(items), self._permits).run()

    def _worker(self) -> Callable[[T], R]:
        if self._make_worker is not None:
            return self._make_worker()
        assert self._work is not None
        return self._work


class _Run(_Pipeline["T", "R"]):
    """One run with threads. Everything that changes is guarded by `_lock`.

    A thread is at work, or it waits to be called to work again. There is one
    permit less than threads at work.
    """

    def __init__(
        self,
        make_worker: Callable[[], Callable[[T], R]],
        consume: Callable[[R], object],
        jobs: int,
        window: int,
        items: Iterator[T],
        permits: Permits | None,
    ) -> None:
        import threading

        self._new_thread = threading.Thread
        self._make_worker = make_worker
        self._consume = consume
        self._jobs = jobs
        self._window = window
        self._items = items
        self._permits = permits
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._threads: list[threading.Thread] = []
        self._alive = 1  # threads that have not ended; the first one counts from now on
        self._at_work = 1
        self._waiting = 0  # those of the others that were not called yet
        self._called = 0  # those that were called, and have not noticed yet
        self._ended = threading.Lock()  # held until the last thread has ended
        self._ended.acquire()
        self._taken = 0  # items taken; the index of the next one
        self._consumed = 0  # results consumed; the index of the next one
        self._ready: dict[int, R] = {}  # results that wait for their turn
        self._consuming = False  # whether some thread holds the right to consume
        self._taking = True  # whether any more items are taken
        self._aborted = False  # whether even what is ready is no longer consumed
        self._error: BaseException | None = None
        self._error_index = 0

    def run(self) -> None:
        work = self._make_worker()
        try:
            try:
                self._start(work)
            except RuntimeError:  # no thread to be had, so this one does it
                self._thread(work)
            # Unlike Thread.join, waiting for a lock is interruptible everywhere.
            self._ended.acquire()
        except BaseException:
            with self._lock:
                self._aborted = True
                self._stop_taking()
            if any(thread.ident is not None for thread in self._threads):
                self._ended.acquire()
            self._join()
            raise
        self._join()
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # it holds this frame, which holds self

    def _start(self, work: Callable[[T], R]) -> None:
        """Start a thread. Raises RuntimeError if there cannot be one more."""
        thread = self._new_thread(target=self._thread, args=(work,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _join(self) -> None:
        """Wait until the threads, which have nothing left to do, are gone."""
        for thread in self._threads:
            if thread.ident is not None:  # or it was never started
                thread.join()

    def _thread(self, work: Callable[[T], R]) -> None:
        try:
            while (index := self._take()) is not None:
                position, item = index
                try:
                    result = work(item)
                except BaseException as error:
                    self._fail(position, error)
                else:
                    self._deliver(position, result)
                    del result
                del item, index
        finally:
            self._end()

    def _end(self) -> None:
        with self._lock:
            self._alive -= 1
            last = self._alive == 0
        if last:
            self._ended.release()

    def _take(self) -> tuple[int, T] | None:
        """The next item and its index, once there is room for it; None if there are no more to take."""
        with self._lock:
            while self._taking and self._is_full():
                # Some other thread is at work: it has an item, or consumes.
                self._stop_work()
                self._waiting += 1
                while self._taking and not self._called:
                    self._room.wait()
                if not self._called:
                    self._waiting -= 1
                    return None
                self._called -= 1
            index = self._taken
            try:
                item = next(self._items) if self._taking else None
            except StopIteration:
                self._stop_taking()
            except BaseException as error:
                self._record(index, error)
            if not self._taking:
                self._stop_work()
                return None
            self._taken = index + 1
            start = self._call_another()
        if start:
            self._start_another()
        return index, item  # type: ignore[return-value]  # an item, as _taking says

    def _is_full(self) -> bool:
        return self._taken - self._consumed >= self._window

    def _stop_work(self) -> None:
        self._at_work -= 1
        if self._at_work and self._permits is not None:
            self._permits.release()

    def _call_another(self) -> bool:
        """If there is work for one more thread, and a permit, let one work; whether it has to be started first."""
        if not self._taking or self._at_work >= self._jobs or self._is_full():
            return False
        if self._permits is not None and not self._permits.acquire():
            return False
        self._at_work += 1
        if self._waiting:
            self._waiting -= 1
            self._called += 1
            self._room.notify()
            return False
        self._alive += 1
        return True

    def _start_another(self) -> None:
        try:
            work = self._make_worker()
        except BaseException as error:
            with self._lock:
                self._record(self._taken, error)
                self._stop_work()
            self._end()
            return
        try:
            self._start(work)
        except RuntimeError:  # no thread to be had, so go on with those that there are
            with self._lock:
                self._jobs = self._at_work - 1
                self._stop_work()
            self._end()

    def _deliver(self, index: int, result: R) -> None:
        """Hand over a result. If it is the next one, consume it and what follows it, as far as it is there."""
        with self._lock:
            self._ready[index] = result
            if self._consuming or index != self._consumed:
                return
            self._consuming = True
        del result
        while True:
            with self._lock:
                if self._aborted or self._consumed not in self._ready:
                    self._consuming = False
                    return
                position = self._consumed
                following = self._ready.pop(position)
            try:
                self._consume(following)
            except BaseException as error:
                # The right to consume is kept: nothing after this is consumed.
                self._fail(position, error)
                return
            del following
            with self._lock:
                self._consumed += 1
                start = self._call_another()
            if start:
                self._start_another()

    def _fail(self, index: int, error: BaseException) -> None:
        with self._lock:
            self._record(index, error)

    def _record(self, index: int, error: BaseException) -> None:
        """Note an error. Of several, that of the first item wins.

        Items are taken in order, so all items before a failed one are taken
        already, and come to be consumed or fail themselves: which one wins
        does not depend on timing. The failed item never gets ready, so nothing
        after it is consumed.
        """
        if self._error is None or index < self._error_index:
            self._error = error
            self._error_index = index
        self._stop_taking()

    def _stop_taking(self) -> None:
        self._taking = False
        self._room.notify_all()
