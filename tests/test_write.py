# SPDX-License-Identifier: GPL-2.0-only
"""Outputs move only when their content changes, and are never seen half."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import btfstep.build
from btfstep.build import write
from btfstep.build.write import write_if_changed
from btfstep.errors import BtfstepError

LONG_AGO = 1_000_000_000 * 10**9  # a file time, in ns


def identity(path: Path) -> tuple[int, int, int, bytes]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_mode, path.read_bytes()


@pytest.fixture
def umask() -> object:
    old = os.umask(0o027)
    yield
    os.umask(old)


def test_a_new_file(tmp_path: Path, umask: object) -> None:
    path = tmp_path / "out.btf"
    assert write_if_changed(path, b"types") is True
    assert path.read_bytes() == b"types"
    assert path.stat().st_mode & 0o7777 == 0o640  # as any new file: 0666 less the umask
    assert os.listdir(tmp_path) == ["out.btf"]


@pytest.mark.parametrize("data", [b"types", bytearray(b"types"), memoryview(b"types"), b""])
def test_unchanged_is_untouched(tmp_path: Path, data: bytes | bytearray | memoryview) -> None:
    path = tmp_path / "out.btf"
    path.write_bytes(data)
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    before = identity(path)
    assert write_if_changed(path, data) is False
    assert identity(path) == before


def test_changed_is_replaced_and_keeps_its_mode(tmp_path: Path, umask: object) -> None:
    path, link = tmp_path / "out.btf", tmp_path / "link"
    path.write_bytes(b"other")
    path.chmod(0o604)
    os.link(path, link)
    assert write_if_changed(path, b"types") is True
    assert path.read_bytes() == b"types"
    assert path.stat().st_mode & 0o7777 == 0o604
    assert link.read_bytes() == b"other"  # a new file took the name


@settings(deadline=None)
@given(st.binary(max_size=100), st.binary(max_size=100), st.integers(0, 2))
def test_any_content(tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes, blocks: int) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    same = bytes(write._COMPARE * blocks)
    path.write_bytes(same + old)
    assert write_if_changed(path, same + new) is (old != new)
    assert path.read_bytes() == same + new


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link", tmp_path / "there" / "target"
    link.symlink_to("there/target")
    assert write_if_changed(link, b"types") is True  # though it dangles
    assert link.is_symlink()
    assert target.read_bytes() == b"types"
    assert write_if_changed(link, b"more types") is True
    assert link.is_symlink()
    assert target.read_bytes() == b"more types"
    assert write_if_changed(link, b"more types") is False


def test_the_longest_name(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    assert write_if_changed(path, b"types") is True
    assert write_if_changed(tmp_path / ("\u00e9" * 127), b"types") is True


def test_relative_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write_if_changed("out", b"types") is True
    assert (tmp_path / "out").read_bytes() == b"types"


# What is not a regular file


def test_a_fifo_is_written(tmp_path: Path) -> None:
    fifo, got = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    assert write_if_changed(fifo, b"types" * 100_000) is True
    reader.join()
    assert got == [b"types" * 100_000]
    assert os.listdir(tmp_path) == ["fifo"]


def test_dev_null() -> None:
    assert write_if_changed("/dev/null", b"types") is True
    assert not os.path.isfile("/dev/null")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_written_where_it_stands(tmp_path: Path, name: str) -> None:
    """Also if it is a file that the shell appends to, or a pipe."""
    code = f"from btfstep.build.write import write_if_changed as w; w({name!r}, b'types'); w({name!r}, b' again')"
    command = [sys.executable, "-c", code]
    env = os.environ | {"PYTHONPATH": str(Path(btfstep.build.__file__).parents[2])}
    assert subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True).stdout == b"types again"
    log = tmp_path / "log"
    log.write_bytes(b"before ")
    inode = log.stat().st_ino
    with open(log, "ab") as out:
        subprocess.run(command, env=env, stdout=out, check=True)
    assert (log.read_bytes(), log.stat().st_ino) == (b"before types again", inode)


# Failures


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", errno.EISDIR),
        ("absent/out", errno.ENOENT),
        ("file/out", errno.ENOTDIR),
        ("loop", errno.ELOOP),
        ("n" * 256, errno.ENAMETOOLONG),
    ],
)
def test_errors_name_the_file(tmp_path: Path, name: str, reason: int) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    path = os.path.join(tmp_path, name) if name else str(tmp_path)
    with pytest.raises(BtfstepError) as caught:
        write_if_changed(path, b"types")
    assert str(caught.value) == f"{path}: cannot write: {os.strerror(reason)}"
    assert sorted(os.listdir(tmp_path)) == ["file", "loop"]


def test_a_name_with_a_null_byte() -> None:
    with pytest.raises(BtfstepError, match="null"):
        write_if_changed("a\0b", b"types")


@pytest.mark.parametrize("call", ["write", "fchmod", "close", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_output_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    path = tmp_path / "out.btf"
    path.write_bytes(b"old")
    before, real = identity(path), getattr(os, call)

    def failing(*args: object) -> None:
        if call == "close":
            if os.readlink(f"/proc/self/fd/{args[0]}") == str(path):
                real(*args)
                return
            real(*args)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises((BtfstepError, KeyboardInterrupt)) as caught:
            write_if_changed(path, b"new")
    if isinstance(error, OSError):
        assert str(caught.value) == f"{path}: cannot write: No space left on device"
    assert identity(path) == before
    assert os.listdir(tmp_path) == ["out.btf"]


@pytest.mark.parametrize("limit", [0, 10])
def test_a_full_disk(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "out.btf"
    path.write_bytes(b"old")
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            write_if_changed(path, b"new" * 100)
        except BtfstepError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.btf"]


def test_a_kill_leaves_the_old_output_and_at_most_a_dot_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.btf"
    path.write_bytes(b"old")
    child = os.fork()
    if child == 0:
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        try:
            write_if_changed(path, b"new")
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert path.read_bytes() == b"old"
    (beside,) = set(os.listdir(tmp_path)) - {"out.btf"}
    assert beside.startswith(".out.btf.")


def test_output_that_cannot_be_compared_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.btf"
    path.write_bytes(b"types")
    opened = os.open

    def denied(name: str, flags: int, *args: int) -> int:
        if name == str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(name, flags, *args)

    monkeypatch.setattr(os, "open", denied)
    assert write_if_changed(path, b"types") is True
