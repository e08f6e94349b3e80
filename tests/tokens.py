# SPDX-License-Identifier: GPL-2.0-only
"""A jobserver as GNU make sets one up, but one that can be looked into, and a program that is worth several threads."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import termios
from pathlib import Path

STYLES = ("fifo", "pipe")  # make 4.4's, and that of all before


class Tokens:
    """A pipe with tokens in it, as make hands it down to its commands.

    The tokens differ from each other, which make's own do not: so it shows
    whether each one came back as what it was.
    """

    def __init__(self, folder: Path, tokens: bytes, style: str = "fifo") -> None:
        self.tokens = bytes(sorted(tokens))
        self.inherited: tuple[int, ...] = ()
        if style == "fifo":
            path = folder / "jobserver"
            os.mkfifo(path)
            self._reader = self._writer = os.open(path, os.O_RDWR)
            self.auth = f"fifo:{path}"
        else:
            self._reader, self._writer = self.inherited = os.pipe()
            self.auth = f"{self._reader},{self._writer}"
        self.put(tokens)

    def __enter__(self) -> Tokens:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in {self._reader, self._writer}:
            os.close(fd)

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a command that make starts, in a rule with ``+``."""
        return {**os.environ, "MAKEFLAGS": f"s -j{len(self.tokens) + 1} --jobserver-auth={self.auth} -- V=1"}

    @property
    def count(self) -> int:
        """How many tokens are there."""
        return int(struct.unpack("i", fcntl.ioctl(self._reader, termios.FIONREAD, b"\0\0\0\0"))[0])

    def take(self) -> bytes:
        """Take those that are there, sorted."""
        count = self.count
        return bytes(sorted(os.read(self._reader, count))) if count else b""

    def put(self, tokens: bytes) -> None:
        os.write(self._writer, tokens)

    def are_complete(self) -> bool:
        """Whether each token is there. Leaves them there."""
        found = self.take()
        self.put(found)
        return found == self.tokens

    def flags(self) -> int:
        """The flags of the descriptor that all commands share."""
        return fcntl.fcntl(self._reader, fcntl.F_GETFL)


def usual_signals() -> None:
    """For preexec_fn: a child takes signals as usual, even if these tests run under nohup or in the background."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


UNIT = 4000  # structs in each unit, which makes its DIEs as large as what a thread takes at once


def large_program(folder: Path, units: int = 16) -> Path:
    """Link a program whose units are decoded by as many threads as there are; by one, in a tenth of a second."""
    source, compiled = folder / "unit.c", folder / "unit.o"
    structs = [
        f"struct s{i} {{ int a; long b; struct s{max(i - 1, 0)} *c; char d[{i % 50 + 1}]; unsigned e:3, f:5; }};"
        for i in range(UNIT)
    ]
    used = "static int __attribute__((used)) f(struct s1 *p) { return p->a; }"
    source.write_text("\n".join([*structs, used, ""]))
    subprocess.run(
        ["gcc", "-g", "-O1", "-fno-eliminate-unused-debug-types", "-c", "-o", compiled, source], cwd=folder, check=True
    )
    program = folder / "large.elf"
    # Nothing in it has a global name, so one object will do for all units.
    copies = [folder / f"unit-{number}.o" for number in range(units)]
    for copy in copies:
        os.link(compiled, copy)
    link = ["gcc", "-nostdlib", "-static", "-Wl,-e0", "-Wl,--build-id=none", "-o", str(program)]
    subprocess.run([*link, *map(str, copies)], cwd=folder, check=True)
    return program
