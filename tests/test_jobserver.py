# SPDX-License-Identifier: GPL-2.0-only
"""Threads under make: as many as there are tokens, and every token given back as it was, in every ending."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from btfstep.build.jobserver import Jobserver, MakeFlags, NoPermits, Permits, permits
from btfstep.encode.jobs import available_processors, parse_jobs
from btfstep.errors import BtfstepError
from conftest import tool
from tokens import STYLES, Tokens, large_program, usual_signals

HERE = Path(__file__).parent
BTFSTEP = [sys.executable, "-m", "btfstep"]
THREE = b"abc"


class TestMakeFlags:
    """What make 4.3 and 4.4.1 say to their children, and what somebody may write by hand."""

    @pytest.mark.parametrize(
        ("text", "jobs", "auth"),
        [
            ("", None, None),
            ("rR --no-print-directory", None, None),
            (" -j3 --jobserver-auth=3,4", 3, "3,4"),
            ("ks -j3 --jobserver-auth=fifo:/tmp/GMfifo1 --no-print-directory", 3, "fifo:/tmp/GMfifo1"),
            (" --jobserver-fds=5,6 -j", None, "5,6"),
            (" -j1", 1, None),
            # With make 4.4, in a rule that does not get the descriptors.
            (" -j3 --jobserver-auth=3,4 --no-print-directory --jobserver-auth=-2,-2", 3, "-2,-2"),
            (" -j2 --jobserver-auth=3,4 -j7 --jobserver-fds=5,6", 7, "5,6"),
            (r" -j2 --jobserver-auth=fifo:/a\ b/GMfifo1", 2, "fifo:/a b/GMfifo1"),
            (r" -j2 --jobserver-auth=fifo:/a\\\ b/c", 2, r"fifo:/a\ b/c"),
            # After -- there are variables, which may hold anything.
            (" -j2 -- A=-j5 B=--jobserver-auth=3,4 --jobserver-auth=3,4", 2, None),
            ("-jx --jobserver-auth", None, None),
            (" -j99999999999999999999", None, None),
            ("\\", None, None),
        ],
    )
    def test_the_last_of_each_counts(self, text: str, jobs: int | None, auth: str | None) -> None:
        flags = MakeFlags(text)
        assert (flags.jobs, flags.auth) == (jobs, auth)

    def test_without_a_number_j_is_no_more_than_makes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MAKEFLAGS", " -j1")
        assert parse_jobs(None) == 1
        assert parse_jobs("3") == 3
        monkeypatch.setenv("MAKEFLAGS", " -j")
        assert parse_jobs(None) == available_processors()


class TestJobserver:
    @pytest.mark.parametrize("style", STYLES)
    def test_takes_the_tokens_that_there_are_and_never_waits(self, style: str, tmp_path: Path) -> None:
        with Tokens(tmp_path, THREE, style) as tokens, Jobserver(tokens.auth) as jobserver:
            assert [jobserver.acquire() for _ in range(5)] == [True, True, True, False, False]
            assert tokens.count == 0
            jobserver.release()
            assert tokens.count == 1
            assert jobserver.acquire()

    @pytest.mark.parametrize("style", STYLES)
    def test_gives_back_what_it_took(self, style: str, tmp_path: Path) -> None:
        with Tokens(tmp_path, THREE, style) as tokens:
            with Jobserver(tokens.auth) as jobserver:
                while jobserver.acquire():
                    pass
                jobserver.release()
            assert tokens.are_complete()
            jobserver.release()  # one that is not held
            assert not jobserver.acquire()
            assert tokens.are_complete()

    @pytest.mark.parametrize("style", STYLES)
    def test_a_token_that_comes_free_later_is_taken_then(self, style: str, tmp_path: Path) -> None:
        with Tokens(tmp_path, b"", style) as tokens, Jobserver(tokens.auth) as jobserver:
            assert not jobserver.acquire()
            tokens.put(b"x")
            assert jobserver.acquire()

    @pytest.mark.parametrize("style", STYLES)
    def test_the_descriptors_that_all_commands_share_stay_as_they_are(self, style: str, tmp_path: Path) -> None:
        with Tokens(tmp_path, THREE, style) as tokens:
            before = tokens.flags()
            with Jobserver(tokens.auth) as jobserver:
                jobserver.acquire()
                assert tokens.flags() == before

    def test_nothing_is_read_from_what_is_no_jobserver(self, tmp_path: Path) -> None:
        regular = tmp_path / "regular"
        regular.write_bytes(b"++++")
        one, other = os.pipe(), os.pipe()
        fd = os.open(regular, os.O_RDWR)
        try:
            os.write(one[1], b"data")
            os.write(other[1], b"data")
            wrong = [
                f"fifo:{regular}",
                "fifo:/dev/tty",
                "fifo:",
                "fifo:/nowhere/at/all",
                "fifo:" + "x" * 100_000,
                "fifo:\0",
                "-2,-2",
                "",
                "3",
                "3,4,5",
                "a,b",
                "999999999999999999999,4",
                "123456789,987654321",
                f"{fd},{fd}",
                f"{one[0]},{other[1]}",
                f"{one[1]},{one[0]}",
                f"{one[1]},{one[1]}",
            ]
            for auth in wrong:
                with pytest.raises(BtfstepError):
                    Jobserver(auth)
            assert os.read(one[0], 10) == os.read(other[0], 10) == b"data"
        finally:
            for end in (*one, *other, fd):
                os.close(end)

    def test_without_make_there_are_as_many_as_wanted(self) -> None:
        assert type(permits(4, environ={})) is Permits
        assert type(permits(4, environ={"MAKEFLAGS": " -j3"})) is Permits
        assert permits(4, environ={}).acquire()

    def test_with_a_broken_one_there_is_one_thread_and_a_line_that_says_so(self) -> None:
        said: list[str] = []
        found = permits(4, said.append, {"MAKEFLAGS": " -j3 --jobserver-auth=fifo:/nowhere"})
        assert type(found) is NoPermits
        assert not found.acquire()
        assert said == ["one thread: make's jobserver cannot be used: fifo:/nowhere: No such file or directory"]

    def test_one_that_is_gone_gives_nothing(self, tmp_path: Path) -> None:
        tokens = Tokens(tmp_path, THREE, "pipe")
        jobserver = Jobserver(tokens.auth)
        assert jobserver.acquire()
        tokens.take()
        tokens.__exit__()
        assert not jobserver.acquire()
        jobserver.close()


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that is worth several threads. Copy it before you change it."""
    tool("gcc")
    return large_program(tmp_path_factory.mktemp("large"))


def start(tokens: Tokens, *arguments: object, stdout: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*BTFSTEP, *map(str, arguments)],
        cwd=HERE,
        env=tokens.environ,
        pass_fds=tokens.inherited,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=usual_signals,
    )


def fewest(tokens: Tokens, child: subprocess.Popen[str]) -> int:
    """How few tokens were there while the process ran, as far as can be seen."""
    least = tokens.count
    while child.poll() is None:
        least = min(least, tokens.count)
        time.sleep(0.001)
    return least


@pytest.mark.parametrize("style", STYLES)
class TestCommand:
    """The command with a jobserver: what it takes, and that all is there again afterwards."""

    @pytest.mark.parametrize(("option", "left"), [("-j4", 0), ("-j2", 2), ("-j1", 3)])
    def test_a_number_given_is_an_upper_bound(
        self, option: str, left: int, style: str, large: Path, tmp_path: Path
    ) -> None:
        with Tokens(tmp_path, THREE, style) as tokens:
            out = tmp_path / "out.btf"
            for _ in range(5):  # it is over soon, and may not have been looked at in time
                child = start(tokens, option, f"--btf_encode_detached={out}", large)
                least = fewest(tokens, child)
                assert least >= left
                assert child.stderr is not None
                assert (child.returncode, child.stderr.read()) == (0, "")
                assert tokens.are_complete()
                if least == left:
                    break
            assert least == left

    def test_the_bytes_are_the_same_without_any_token(self, style: str, large: Path, tmp_path: Path) -> None:
        made = []
        for number, there in enumerate((THREE, b"")):
            folder = tmp_path / str(number)
            folder.mkdir()
            with Tokens(folder, there, style) as tokens:
                child = start(tokens, "-j4", f"--btf_encode_detached={folder / 'out'}", large)
                assert child.wait() == 0
                assert tokens.are_complete()
            made.append((folder / "out").read_bytes())
        assert made[0] == made[1]

    def test_after_an_error(self, style: str, large: Path, tmp_path: Path) -> None:
        with Tokens(tmp_path, THREE, style) as tokens:
            child = start(tokens, "-j4", "--btf_encode_detached=/nowhere/out", large)
            assert child.wait() == 1
            assert tokens.are_complete()
            broken = tmp_path / "broken.elf"
            data = bytearray(large.read_bytes())
            data[len(data) // 2 : len(data) // 2 + 4096] = b"\xff" * 4096
            broken.write_bytes(data)
            child = start(tokens, "-j4", f"--btf_encode_detached={tmp_path / 'out'}", broken)
            assert child.wait() == 1
            assert tokens.are_complete()

    def test_after_a_broken_pipe(self, style: str, large: Path, tmp_path: Path) -> None:
        with Tokens(tmp_path, THREE, style) as tokens:
            reader, writer = os.pipe()
            os.close(reader)
            child = start(tokens, "dump", "-j4", large, stdout=writer)
            os.close(writer)
            assert child.wait() == 1
            assert tokens.are_complete()

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_after_a_signal(self, number: signal.Signals, style: str, large: Path, tmp_path: Path) -> None:
        with Tokens(tmp_path, THREE, style) as tokens:
            for _ in range(5):
                child = start(tokens, "-j4", f"--btf_encode_detached={tmp_path / 'out'}", large)
                while tokens.count == 3 and child.poll() is None:
                    time.sleep(0.0005)
                child.send_signal(number)
                _, err = child.communicate(timeout=30)
                assert err == ""
                assert tokens.are_complete()
                assert child.returncode in (-number, 0)
                if child.returncode:
                    break  # or it had ended before it was signalled
            assert child.returncode == -number

    def test_modules_share_them(self, style: str, large: Path, tmp_path: Path) -> None:
        with Tokens(tmp_path, THREE, style) as tokens:
            base = tmp_path / "base.btf"
            assert start(tokens, f"--btf_encode_detached={base}", large).wait() == 0
            modules = [tmp_path / f"m{number}.ko" for number in range(8)]
            for module in modules:
                shutil.copy(large, module)
            child = start(tokens, "modules", "-j4", "--base", base, *modules, stdout=subprocess.DEVNULL)
            assert fewest(tokens, child) == 0
            assert child.returncode == 0
            assert tokens.are_complete()


# A make that finds tokens missing, or too many, when it ends says "INTERNAL: Exiting with N jobserver tokens".
COMPLAINT = re.compile("INTERNAL|jobserver unavailable|warning")


@pytest.fixture
def make() -> str:
    """GNU make: the one that $BTFSTEP_MAKE names, to try another version, or the one that is installed."""
    return os.environ.get("BTFSTEP_MAKE") or tool("make")


def make_version(make: str) -> tuple[int, ...]:
    text = subprocess.run([make, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"GNU Make (\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


class TestMake:
    """Under the real make, in each of its two forms as far as it has them."""

    def run(self, make: str, rule: str, large: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
        command = f"{' '.join(BTFSTEP)} -V -j4 --btf_encode_detached=$@ {large}"
        rules = [f"all: {' '.join(f'{n}.btf' for n in range(4))}", f"%.btf:\n\t{rule.replace('BTFSTEP', command)}", ""]
        (folder / "Makefile").write_text("\n".join(rules))
        environ = {name: value for name, value in os.environ.items() if "MAKE" not in name}
        environ["PYTHONPATH"] = os.pathsep.join(sys.path)
        return subprocess.run(
            [make, "-s", "-C", folder, *options], env=environ, capture_output=True, text=True, check=False
        )

    @pytest.mark.parametrize("options", [["-j3"], ["-j3", "--jobserver-style=pipe"], ["-j1"], []])
    def test_all_tokens_are_there_when_make_ends(
        self, options: list[str], make: str, large: Path, tmp_path: Path
    ) -> None:
        if len(options) > 1 and make_version(make) < (4, 4):
            pytest.skip("this make has no --jobserver-style")
        done = self.run(make, "+BTFSTEP", large, tmp_path, *options)
        assert done.returncode == 0, done.stderr
        assert not COMPLAINT.search(done.stderr), done.stderr
        limited = done.stderr.count("btfstep: up to 4 threads, as far as make's jobserver has tokens\n")
        assert limited == (4 if "-j3" in options else 0)
        assert len({(tmp_path / f"{n}.btf").read_bytes() for n in range(4)}) == 1

    def test_a_rule_without_a_plus(self, make: str, large: Path, tmp_path: Path) -> None:
        """Make 4.4 hands its FIFO down to every rule; before, it takes a '+', and one thread runs without."""
        done = self.run(make, "BTFSTEP", large, tmp_path, "-j3")
        assert done.returncode == 0, done.stderr
        assert not COMPLAINT.search(done.stderr), done.stderr
        with_fifo = make_version(make) >= (4, 4)
        assert done.stderr.count("btfstep: up to 4 threads, as far as make's jobserver") == (4 if with_fifo else 0)
        said = "cannot be used: 3,4: not handed down to this command; in a rule of make's, start the line with '+'\n"
        assert done.stderr.count(said) == (0 if with_fifo else 4)

    @pytest.mark.parametrize("name", ["TERM", "HUP"])  # shells start what runs in the background without SIGINT
    def test_all_tokens_are_there_when_commands_were_killed(
        self, name: str, make: str, large: Path, tmp_path: Path
    ) -> None:
        kill = f"+BTFSTEP & child=$$!; sleep 0.$*5; kill -{name} $$child; wait $$child"
        done = self.run(make, kill, large, tmp_path, "-j3", "-k")
        assert not COMPLAINT.search(done.stderr), done.stderr
        ended_so = 128 + signal.Signals[f"SIG{name}"]
        assert f"Error {ended_so}" in done.stderr, "all of them were done sooner"


class TestNinja:
    """Ninja takes part in a jobserver since 1.13, and what it starts gets the same MAKEFLAGS."""

    def test_in_a_jobserver(self, large: Path, tmp_path: Path) -> None:
        ninja = tool("ninja")
        version = subprocess.run([ninja, "--version"], capture_output=True, text=True, check=True).stdout
        if tuple(map(int, version.split(".")[:2])) < (1, 13):
            pytest.skip(f"ninja {version.strip()} takes no part in jobservers")
        command = f"{' '.join(BTFSTEP)} -V -j4 --btf_encode_detached=$out $in"
        edges = [f"build {number}.btf: btf {large}" for number in range(4)]
        text = "\n".join(["rule btf", f"  command = {command}", *edges, ""])
        (tmp_path / "build.ninja").write_text(text)
        with Tokens(tmp_path, THREE) as tokens:
            environ = {**tokens.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            child = subprocess.Popen(
                [ninja, "-C", str(tmp_path)], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            assert fewest(tokens, child) == 0
            assert child.stdout is not None
            said = child.stdout.read()
            assert child.returncode == 0, said
            assert said.count("btfstep: up to 4 threads, as far as make's jobserver has tokens\n") == 4
            assert tokens.are_complete()
