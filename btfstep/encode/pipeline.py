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
    from typing import Generic, TypeVar

    T = TypeVar("T")
    R = TypeVar("R")

    class _Pipeline(Generic[T, R]):
        pass

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
    called once for each thread, before any starts, and returns its `work`.

    `work` is called with an item, in any of `jobs` threads, in any order.
    `consume` is called with its result, in the order of the items, one call at
    a time, in whichever thread happens to have the next result; the others
    keep working meanwhile. With ``jobs=1``, or if `items` has a length and
    that is at most 1, there are no threads: everything runs in the caller's.

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
        workers = [self._worker() for _ in range(jobs)]
        _Run(workers, self._consume, self.window, iter(items)).run()

    def _worker(self) -> Callable[[T], R]:
        if self._make_worker is not None:
            return self._make_worker()
        assert self._work is not None
        return self._work


class _Run(_Pipeline["T", "R"]):
    """One run with threads. Everything that changes is guarded by `_lock`."""

    def __init__(
        self,
        workers: list[Callable[[T], R]],
        consume: Callable[[R], object],
        window: int,
        items: Iterator[T],
    ) -> None:
        import threading

        self._threads = [threading.Thread(target=self._thread, args=(work,), daemon=True) for work in workers]
        self._consume = consume
        self._window = window
        self._items = items
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._waiting = 0  # threads that wait for room in the window
        self._running = len(workers)
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
        started = 0
        try:
            for thread in self._threads:
                thread.start()
                started += 1
            # Unlike Thread.join, waiting for a lock is interruptible everywhere.
            self._ended.acquire()
        except BaseException:
            with self._lock:
                self._aborted = True
                self._stop_taking()
            for thread in self._threads[:started]:
                thread.join()
            raise
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # it holds this frame, which holds self

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
            with self._lock:
                self._running -= 1
                last = self._running == 0
            if last:
                self._ended.release()

    def _take(self) -> tuple[int, T] | None:
        """The next item and its index, once there is room for it; None if there are no more to take."""
        with self._lock:
            while self._taking and self._taken - self._consumed >= self._window:
                self._waiting += 1
                self._room.wait()
                self._waiting -= 1
            if not self._taking:
                return None
            index = self._taken
            try:
                item = next(self._items)
            except StopIteration:
                self._stop_taking()
                return None
            except BaseException as error:
                self._record(index, error)
                return None
            self._taken = index + 1
            return index, item

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
                if self._waiting:
                    self._room.notify()

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
