# SPDX-License-Identifier: GPL-2.0-only
"""What is undone when a signal ends the process: temporary files, half an append, tokens of make's.

Python runs its handlers in the main thread, between two bytecodes, and that thread may be
inside the encoder for a while. So a thread of its own waits for the signals here, undoes
what was noted, and lets the signal end the process, as make expects of its children.
Everything else stops where it is: outputs are written such that this leaves them good.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal  # the same without its enums, which take half as long to import as Python to start

atomic = allocate_lock()
"""``with atomic:``, no signal ends the process in between: to do something and note how to undo it."""

_noted: list[Callable[[], object]] = []

_ENDING = frozenset((signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
# Stops the thread. Nobody sends it to mean anything: by default it is ignored.
_STOP = signal.SIGURG


def undo_if_interrupted(action: Callable[[], object]) -> None:
    """Note `action`, to be called if a signal ends the process. Call this, and `forget`, with `atomic` held."""
    _noted.append(action)


def forget(action: Callable[[], object]) -> None:
    """There is nothing to undo any more."""
    if action in _noted:
        _noted.remove(action)


class Interruptible:
    """A context in which SIGHUP, SIGINT and SIGTERM undo what was noted, and then end the process.

    To be entered by the main thread, before there are others. Signals that are ignored (``nohup``), blocked, or that
    the program has a handler of its own for are left alone. Programs that are started inside inherit the blocked
    signals.
    """

    def __init__(self) -> None:
        self._mask: set[int] | None = None  # what was blocked before; None outside of the context
        self._thread = 0
        self._ended = allocate_lock()
        self._python_handler = False  # whether SIGINT has to get its handler back

    def __enter__(self) -> None:
        wanted: set[int] = {number for number in _ENDING if self._is_default(number)}
        mask = {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, wanted | {_STOP})}
        wanted -= mask
        if signal.SIGINT in wanted and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                # The thread cannot do this when the time has come: only the main one may.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                self._python_handler = True
            except ValueError:  # nor can this one
                wanted.remove(signal.SIGINT)
        self._mask = mask
        self._ended.acquire()
        try:
            self._thread = start_new_thread(self._wait, (wanted,))
        except RuntimeError:
            # No thread to be had: then signals end the process, and undo nothing.
            self._restore()

    def __exit__(self, *_: object) -> None:
        if self._mask is None:
            return
        signal.pthread_kill(self._thread, _STOP)
        self._ended.acquire()
        self._restore()

    def _restore(self) -> None:
        if self._mask is not None:
            # A signal that came too late to be waited for ends the process here.
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            self._mask = None
        if self._python_handler:
            self._python_handler = False
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @staticmethod
    def _is_default(number: int) -> bool:
        return signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)

    def _wait(self, wanted: set[int]) -> None:
        number = signal.sigwait(wanted | {_STOP})
        if number == _STOP:
            self._ended.release()
            return
        atomic.acquire()  # for good
        for action in reversed(_noted):
            try:
                action()
            except Exception:
                pass  # the others all the same
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
        signal.raise_signal(number)
        os._exit(128 + number)  # the first process of a container does not end by signals
