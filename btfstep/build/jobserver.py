# SPDX-License-Identifier: GPL-2.0-only
"""GNU make's jobserver, as a client: how many threads may run beside each other in one build.

Make gives each command that it starts the right to one thread, and keeps a token for each
further job of its ``-jN`` in a pipe that its children share (GNU make manual, "POSIX
Jobserver Interaction"; Ninja takes part in the same since 1.13). For each thread beyond the
first a byte is read from that pipe, and the same byte is written back afterwards, however
this process ends, but for SIGKILL.

The pipe is opened anew: reading must not wait, and the descriptors that make hands down
share their flags with every process of the build.
"""

from __future__ import annotations

import os
import stat

from ..errors import BtfstepError
from .interrupt import atomic, forget, undo_if_interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_OPEN = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class MakeFlags:
    """What ``MAKEFLAGS`` says about jobs.

    Attributes:
        jobs: the N of ``-jN``; None without it, or without N, which is no limit.
        auth: where the jobserver is, ``R,W`` or ``fifo:PATH``; None if there is none.
    """

    def __init__(self, text: str) -> None:
        self.jobs: int | None = None
        self.auth: str | None = None
        # The last one of each counts: make appends to what it was given.
        for word in _words(text):
            if word == "--":
                return  # definitions of variables follow
            name, equals, value = word.partition("=")
            if equals and name in ("--jobserver-auth", "--jobserver-fds"):
                self.auth = value
            elif word.startswith("-j"):
                self.jobs = int(word[2:]) if _is_number(word[2:]) else None


def _words(text: str) -> Iterator[str]:
    """Split at spaces; a backslash makes the next character an ordinary one."""
    word = ""
    for part in text.split(" "):
        word += part
        if (len(part) - len(part.rstrip("\\"))) % 2:
            word += " "
            continue
        if word:
            yield "\\".join(piece.replace("\\", "") for piece in word.split("\\\\"))
        word = ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


class Permits:
    """The right to run threads beyond the first one: without a jobserver, to any number. A context manager."""

    def acquire(self) -> bool:
        """Take a permit for one thread, if there is one; never waits. Any thread may call this."""
        return True

    def release(self) -> None:
        """Give one back."""

    def close(self) -> None:
        """Give back all that are held, and take none any more."""

    def __enter__(self) -> Permits:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NoPermits(Permits):
    """One thread, and no other."""

    def acquire(self) -> bool:
        return False


class Jobserver(Permits):
    """The tokens of a jobserver, from which as many may be held as there are."""

    def __init__(self, auth: str) -> None:
        """Connect to the jobserver at `auth` (see MakeFlags). Raises BtfstepError, which says why that cannot be."""
        self._held: list[bytes] = []
        self._open = False
        try:
            if auth.startswith("fifo:"):
                self._reader = self._writer = _open_fifo(auth[len("fifo:") :])
            else:
                self._reader, self._writer = _open_pipe(*_descriptors(auth))
        except OSError as error:
            raise BtfstepError(error.strerror or str(error), path=auth) from None
        except ValueError as error:  # a null byte in the name, a descriptor that is no number
            raise BtfstepError(str(error), path=auth) from None
        self._open = True
        with atomic:
            undo_if_interrupted(self._give_all_back)

    def acquire(self) -> bool:
        with atomic:
            try:
                token = os.read(self._reader, 1) if self._open else b""
            except OSError:
                return False  # none there, or the jobserver is gone
            if token:
                self._held.append(token)
            return bool(token)

    def release(self) -> None:
        with atomic:
            if self._held:
                self._give_back()

    def close(self) -> None:
        with atomic:
            if not self._open:
                return
            self._give_all_back()
            forget(self._give_all_back)
            self._open = False
            for fd in {self._reader, self._writer}:
                os.close(fd)

    def _give_all_back(self) -> None:
        while self._held:
            self._give_back()

    def _give_back(self) -> None:
        try:
            os.write(self._writer, self._held.pop())
        except OSError:
            pass  # the pipe is full of tokens: whoever made it has lost count


def permits(jobs: int, log: Callable[[str], None] | None = None, environ: Mapping[str, str] = os.environ) -> Permits:
    """The permits for `jobs` threads; `log` is told if a jobserver limits them.

    Where ``MAKEFLAGS`` names a jobserver that cannot be used, there is one
    thread: the build's others are counted, and nobody says how many run.
    """
    if jobs == 1:
        return NoPermits()
    auth = MakeFlags(environ.get("MAKEFLAGS", "")).auth
    if auth is None:
        return Permits()
    try:
        jobserver = Jobserver(auth)
    except BtfstepError as error:
        if log is not None:
            log(f"one thread: make's jobserver cannot be used: {error}")
        return NoPermits()
    if log is not None:
        log(f"up to {jobs} threads, as far as make's jobserver has tokens")
    return jobserver


# What to do about it depends on the rule, and is the same in each case.
_NOT_HANDED_DOWN = "not handed down to this command; in a rule of make's, start the line with '+'"


def _open_fifo(path: str) -> int:
    """Open a FIFO for reading and writing. Raises OSError, ValueError."""
    if not stat.S_ISFIFO(os.stat(path).st_mode):
        raise ValueError("is not a FIFO")
    return os.open(path, os.O_RDWR | _OPEN)


def _descriptors(auth: str) -> tuple[int, int]:
    reader, comma, writer = auth.partition(",")
    if not (comma and _is_number(reader) and _is_number(writer)):
        raise ValueError(_NOT_HANDED_DOWN)  # make 4.4 then adds -2,-2
    return int(reader), int(writer)


def _open_pipe(reader: int, writer: int) -> tuple[int, int]:
    """Open both ends of the pipe at these descriptors anew. Raises OSError, ValueError."""
    import fcntl

    # Make 4.3 tells a rule without '+' the same, but closes them, and anything else may
    # have come to lie there since: so they have to be the ends of one pipe.
    try:
        ends = [os.fstat(fd) for fd in (reader, writer)]
        modes = [fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE for fd in (reader, writer)]
    except OSError:
        raise ValueError(_NOT_HANDED_DOWN) from None
    one_pipe = all(stat.S_ISFIFO(end.st_mode) for end in ends) and os.path.samestat(*ends)
    if not one_pipe or modes[0] == os.O_WRONLY or modes[1] == os.O_RDONLY:
        raise ValueError(_NOT_HANDED_DOWN)
    fd = os.open(f"/proc/self/fd/{reader}", os.O_RDONLY | _OPEN)
    try:
        return fd, os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | _OPEN)
    except OSError:
        os.close(fd)
        raise
