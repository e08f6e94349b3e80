# SPDX-License-Identifier: GPL-2.0-only
"""Encode in place under a jobserver, interrupted at random moments; and look at what that leaves.

    python tests/interrupted.py [--runs 500] [--seed N] FILE

makes a copy of FILE, an ELF file with DWARF, and encodes it in turn with two lists of
features, so that each run has something to write. Each is interrupted by SIGINT, SIGTERM
or SIGKILL, and checked: readelf reads the file without a warning; its .BTF is the old one
or the new one, bytes and all, and what else is in the file has not changed; no file is
left beside it; each token of the jobserver is back, the same byte, but for those that a
killed process held. Then it runs once more, to the end, and has to write the right bytes.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tokens import STYLES, Tokens, usual_signals

HERE = Path(__file__).parent
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
LISTS = ("default", "default,layout")
TOKENS = b"abc"
# As long as it may take to end by a signal, in seconds; far more than it does, for machines that are busy.
AT_ONCE = 3


class Interruptions:
    """Interrupted runs over a copy of one file, made in `folder`."""

    def __init__(self, file: Path, folder: Path, *, seed: int) -> None:
        self._random = random.Random(seed)
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        self._file = self._folder / "file"
        self._spare = Path(tempfile.mkdtemp(dir=folder))
        shutil.copyfile(file, self._file)
        self._end_of_rest = end_of_sections(self._file)
        self._rest = self._read_rest()
        started = time.monotonic()
        self._expected = {features: self._encode_detached(features) for features in LISTS}
        assert len(set(self._expected.values())) == len(LISTS), "both lists make the same BTF of this file"
        self._duration = (time.monotonic() - started) / len(LISTS)
        self.slowest = 0.0  # seconds from a signal to the end

    def run(self, runs: int, progress: bool = False) -> Counter[str]:
        """Interrupt so many runs, and check each; how often each thing happened. Raises AssertionError."""
        counts: Counter[str] = Counter()
        duration = self._duration
        before = section(self._file, ".BTF")
        for number in range(runs):
            features = LISTS[number % 2]
            folder = Path(tempfile.mkdtemp(dir=self._spare))
            with Tokens(folder, TOKENS, STYLES[number // 2 % 2]) as tokens:
                counts[self._interrupt(tokens, features, before, duration)] += 1
                started = time.monotonic()
                child = self._start(tokens, features)
                _, err = child.communicate()
                duration = (duration + time.monotonic() - started) / 2
                assert (child.returncode, err) == (0, b""), f"the next run ended with {child.returncode}: {err!r}"
                self._check_tokens(tokens, lost=0)
            before = self._check_file()
            assert before == self._expected[features], "the next run wrote something else"
            if progress and number % 10 == 9:
                print(f"{number + 1}: {dict(counts)}, slowest end {self.slowest:.3f} s", flush=True)
        return counts

    def _interrupt(self, tokens: Tokens, features: str, before: bytes | None, duration: float) -> str:
        number = self._random.choice(SIGNALS)
        old = self._file.stat()
        child = self._start(tokens, features)
        if self._random.random() < 0.3:
            # Writing takes a small part of the time, and most can go wrong in it.
            self._wait_for_write(child, old)
            time.sleep(self._random.uniform(0, 0.004))
        else:
            time.sleep(self._random.uniform(0, duration))
        sent = time.monotonic()
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
        status = child.returncode
        took = time.monotonic() - sent
        after = self._check_file()
        new = self._file.stat()
        what = "complete" if after == self._expected[features] else "as it was"
        assert what == "complete" or after == before, "neither the old BTF nor the new one"
        if number == signal.SIGINT and err.endswith(b"KeyboardInterrupt\n") and what == "as it was":
            # The interpreter was still starting, and nothing of ours has begun.
            self._check_tokens(tokens, lost=0)
            return "SIGINT, before the start"
        assert err == b"", err
        if status == 0:
            assert what == "complete", "ended well, and wrote nothing"
            self._check_tokens(tokens, lost=0)
            return "ended before the signal"
        assert status == -number, f"ended with {status} rather than by {number.name}"
        self.slowest = max(self.slowest, took)
        assert took < AT_ONCE, f"took {took:.1f} s to end"
        if number == signal.SIGKILL:
            self._check_tokens(tokens, lost=len(TOKENS))
        else:
            self._check_tokens(tokens, lost=0)
            if what == "as it was":
                assert (new.st_size, new.st_mtime_ns) == (old.st_size, old.st_mtime_ns), "the file was touched"
        return f"{number.name}, {what}"

    def _start(self, tokens: Tokens, features: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "btfstep", "-J", "-j4", f"--btf_features={features}", str(self._file)]
        return subprocess.Popen(
            command,
            cwd=HERE,
            env=tokens.environ,
            pass_fds=tokens.inherited,
            stderr=subprocess.PIPE,
            preexec_fn=usual_signals,
        )

    def _wait_for_write(self, child: subprocess.Popen[bytes], old: os.stat_result) -> None:
        while child.poll() is None and self._file.stat().st_mtime_ns == old.st_mtime_ns:
            time.sleep(0.0005)

    def _check_tokens(self, tokens: Tokens, *, lost: int) -> None:
        """Each token has to be there, but for `lost` of them at most, which are replaced."""
        found = tokens.take()
        assert len(found) >= len(TOKENS) - lost, f"tokens are lost: {found!r} are left"
        assert not Counter(found) - Counter(TOKENS), f"tokens that never were: {found!r}"
        tokens.put(TOKENS)

    def _check_file(self) -> bytes | None:
        """What is in the file's .BTF now."""
        done = subprocess.run(["readelf", "-W", "-h", "-S", "-l", self._file], capture_output=True, check=False)
        assert done.returncode == 0, "readelf does not read the file"
        assert done.stderr == b"", done.stderr
        assert os.listdir(self._folder) == [self._file.name], "something is left beside the file"
        assert self._read_rest() == self._rest, "what was in the file has changed"
        return section(self._file, ".BTF")

    def _read_rest(self) -> int:
        """A hash of all that stays in the file; BTF is put behind it. Not of the ELF header."""
        with open(self._file, "rb") as file:
            file.seek(64)
            return hash(file.read(self._end_of_rest - 64))

    def _encode_detached(self, features: str) -> bytes:
        out = self._spare / "out"
        command = [sys.executable, "-m", "btfstep", f"--btf_features={features}", f"--btf_encode_detached={out}"]
        subprocess.run([*command, self._file], cwd=HERE, check=True)
        return out.read_bytes()


def sections(path: Path) -> list[tuple[str, str, int, int]]:
    """Name, type, offset and size of each section, as readelf tells them."""
    text = subprocess.run(["readelf", "-W", "-S", path], capture_output=True, text=True, check=True).stdout
    row = re.compile(r"^ *\[ *\d+\] (\S*) +(\w+) +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) ", re.M)
    return [(name, kind, int(offset, 16), int(size, 16)) for name, kind, offset, size in row.findall(text)]


def section(path: Path, name: str) -> bytes | None:
    """A section's bytes."""
    for found, _, offset, size in sections(path):
        if found == name:
            with open(path, "rb") as file:
                file.seek(offset)
                return file.read(size)
    return None


def end_of_sections(path: Path) -> int:
    """Where what stays in the file ends: not the names of sections, nor BTF, which may be replaced."""
    ends = [
        offset + size
        for name, kind, offset, size in sections(path)
        if kind != "NOBITS" and name not in (".BTF", ".shstrtab")
    ]
    return max(ends)


def main() -> None:
    parser = argparse.ArgumentParser(prog="interrupted.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="for the copy; default: beside FILE")
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder or arguments.file.parent) as folder:
        interruptions = Interruptions(arguments.file, Path(folder).resolve(), seed=arguments.seed)
        counts = interruptions.run(arguments.runs, progress=True)
    for what, count in sorted(counts.items()):
        print(f"{count:5} {what}")
    print(f"{sum(counts.values()):5} runs interrupted; the slowest took {interruptions.slowest:.3f} s to end")


if __name__ == "__main__":
    main()
