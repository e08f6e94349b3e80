# SPDX-License-Identifier: GPL-2.0-only
"""Signals: they end the process at once, as such, and nothing is left of what was not done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from btfstep.build.interrupt import Interruptible
from btfstep.cli import main
from conftest import Build
from interrupted import Interruptions
from tokens import large_program, usual_signals

HERE = Path(__file__).parent
ENDING = [signal.SIGHUP, signal.SIGINT, signal.SIGTERM]
FEATURES = ["-J", "--btf_features=default"]

# Runs the command, and sends it a signal as soon as FUNCTION, of MODULE, has returned COUNT times.
SIGNALLED = """
import os, sys, time
import MODULE as module

def patched(*arguments, original=module.FUNCTION, **keywords):
    global count
    original(*arguments, **keywords)
    count += 1
    if count == COUNT:
        os.kill(os.getpid(), NUMBER)
        time.sleep(60)

count = 0
module.FUNCTION = patched
from btfstep.cli import main
sys.exit(main(sys.argv[1:]))
"""


def signalled(number: int, function: str, count: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    module, _, name = function.rpartition(".")
    code = SIGNALLED
    for word, value in (("MODULE", module), ("FUNCTION", name), ("COUNT", str(count)), ("NUMBER", str(int(number)))):
        code = code.replace(word, value)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(
        command, cwd=HERE, capture_output=True, text=True, timeout=50, check=False, preexec_fn=usual_signals
    )


def state(path: Path) -> tuple[bytes, int, int]:
    status = path.stat()
    return path.read_bytes(), status.st_ino, status.st_mtime_ns


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("write", [1, 2, 3])  # names, contents, section table; the fourth is the header
def test_in_place_the_file_is_as_it_was(write: int, number: signal.Signals, build: Build) -> None:
    elf = build("int one(int a) { return a; }")
    os.utime(elf, (1, 1))
    before = state(elf)
    done = signalled(number, "btfstep.elf.edit._pwrite_all", write, *FEATURES, elf)
    assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")
    assert state(elf) == before


def test_in_place_once_the_header_is_written_it_is_done(build: Build) -> None:
    elf = build("int one(int a) { return a; }")
    other = elf.with_name("other")
    other.write_bytes(elf.read_bytes())
    assert main([*FEATURES, str(other)]) == 0
    assert signalled(signal.SIGTERM, "btfstep.elf.edit._pwrite_all", 4, *FEATURES, elf).returncode == -signal.SIGTERM
    assert elf.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_detached_output_is_as_it_was_and_nothing_is_beside_it(
    old: bytes | None, number: signal.Signals, build: Build, tmp_path: Path
) -> None:
    elf = build("int one(int a) { return a; }")
    folder = tmp_path / "folder"
    folder.mkdir()
    out = folder / "out.btf"
    if old is not None:
        out.write_bytes(old)
    before = None if old is None else state(out)
    done = signalled(number, "btfstep.build.write.write_all", 1, f"--btf_encode_detached={out}", elf)
    assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")
    assert os.listdir(folder) == ([] if old is None else ["out.btf"])
    assert before is None or state(out) == before


# Prints a line inside, then does what its argument says.
INSIDE = """
import os, signal, sys, time
from btfstep.build.interrupt import Interruptible, atomic, forget, undo_if_interrupted

with Interruptible():
    with atomic:
        undo_if_interrupted(lambda: os.write(1, b"undone"))
        undo_if_interrupted(lambda: 1 / 0)
    print("inside", flush=True)
    exec(sys.argv[1])
print("done", flush=True)
"""


def inside(code: str) -> subprocess.Popen[str]:
    child: subprocess.Popen[str] = subprocess.Popen(
        [sys.executable, "-c", INSIDE, code],
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=usual_signals,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "inside\n"
    return child


@pytest.mark.parametrize("number", ENDING)
def test_what_was_noted_is_undone_whatever_fails(number: signal.Signals) -> None:
    child = inside("time.sleep(60)")
    child.send_signal(number)
    assert child.communicate(timeout=30) == ("undone", "")
    assert child.returncode == -number


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_that_is_ignored_stays_so(number: signal.Signals) -> None:
    code = f"import signal\nsignal.signal({int(number)}, signal.SIG_IGN)\n{INSIDE}"
    child = subprocess.Popen(
        [sys.executable, "-c", code, f"os.kill(os.getpid(), {int(number)})"],
        cwd=HERE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.communicate(timeout=30)[0] == "inside\ndone\n"
    assert child.returncode == 0


def test_it_waits_for_what_is_atomic() -> None:
    child = inside("with atomic: os.kill(os.getpid(), 15); time.sleep(0.3); print('whole', flush=True)")
    out, _ = child.communicate(timeout=30)
    assert out.startswith("whole\nundone")
    assert child.returncode == -signal.SIGTERM


def test_outside_all_is_as_it_was() -> None:
    """The command may be called from a program, which has handlers of its own."""

    def handler(*_: object) -> None:
        seen.append("handler")

    seen: list[str] = []
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with Interruptible():
            assert signal.getsignal(signal.SIGTERM) is handler
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
        assert seen == ["handler"]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_forgotten_is_not_undone() -> None:
    child = inside(
        "action = lambda: os.write(1, b'wrong')\n"
        "undo_if_interrupted(action); forget(action); forget(action); time.sleep(60)"
    )
    time.sleep(0.1)
    child.terminate()
    assert child.communicate(timeout=30)[0] == "undone"


@pytest.mark.parametrize("features", ["default", "default,force_cu_merging"])
def test_it_ends_at_once_while_units_are_decoded(features: str, tmp_path: Path) -> None:
    program = large_program(tmp_path, units=150)
    child = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "btfstep",
            "-j1",
            f"--btf_features={features}",
            "--btf_encode_detached=/dev/null",
            program,
        ],
        cwd=HERE,
        preexec_fn=usual_signals,
    )
    time.sleep(0.3)
    sent = time.monotonic()
    child.terminate()
    assert child.wait(30) == -signal.SIGTERM
    assert time.monotonic() - sent < 2  # a few hundredths; this is for machines that are busy


def test_interrupted_at_random_moments(tmp_path: Path) -> None:
    """A short form of ``tests/interrupted.py``."""
    counts = Interruptions(large_program(tmp_path), tmp_path, seed=1).run(12)
    assert sum(counts.values()) == 12
