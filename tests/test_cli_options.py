# SPDX-License-Identifier: GPL-2.0-only
"""The command line: what pahole's options mean, how they may be spelled, and how it ends."""

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

from btfstep import UsageError, __version__
from btfstep.cli import main
from btfstep.cli.getopt import CommandLineError
from btfstep.cli.languages import CODES, parse_languages
from btfstep.cli.options import ALL, ELSEWHERE
from btfstep.cli.pahole import parse
from btfstep.encode.jobs import MAX_JOBS, available_processors, cgroup_limit, parse_jobs
from conftest import Build, tool
from tokens import usual_signals

EX_USAGE = 64

# Where children run: not in a directory that has btfstep's sources in it,
# which python would prefer to what is installed.
HERE = Path(__file__).parent


class TestQuestions:
    @pytest.mark.parametrize(
        ("argv", "answer"),
        [
            (["--version"], "v1.32\n"),
            (["--numeric_version"], "132\n"),
            (["--devel_version"], f"v1.32-btfstep-{__version__}\n"),
            (["-J", "--version", "--no_such_option"], "v1.32\n"),
            (["--numeric_version", "-J", "no_such_file"], "132\n"),
            (["--supported_btf_features", "--no_such_option"], None),
            (["-J", "--supported_btf_features"], None),
        ],
    )
    def test_are_answered_as_pahole_does(
        self, argv: list[str], answer: str | None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(argv) == 0
        out, err = capsys.readouterr()
        assert err == ""
        if answer is None:
            assert out.startswith("encode_force,var,float,")
        else:
            assert out == answer

    @pytest.mark.parametrize("argv", [["--help"], ["-?"], ["-J", "--hel"]])
    def test_help_names_every_encoding_option_and_our_own_version(
        self, argv: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(argv) == 0
        out = capsys.readouterr().out
        assert f"btfstep {__version__}" in out
        for option in ALL:
            named = re.search(rf"--{option.name}(?![\w-])", out) is not None
            assert named is (option.name not in ELSEWHERE), option.name

    def test_usage_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--usage"]) == 0
        assert capsys.readouterr().out.count("\n") == 1


class TestSpelling:
    def test_options_and_the_file_come_in_any_order(self) -> None:
        for argv in (["-J", "-j3", "vmlinux"], ["vmlinux", "-J", "-j3"], ["-j3", "vmlinux", "-J"]):
            command = parse(argv)
            assert (command.encode, command.jobs, command.files) == (True, 3, ["vmlinux"])

    def test_two_dashes_end_the_options(self) -> None:
        assert parse(["-J", "--", "-V", "--version"]).files == ["-V", "--version"]

    def test_short_options_may_be_run_together(self) -> None:
        command = parse(["-JVj2", "-Xdrivers/"])
        assert (command.encode, command.verbose, command.jobs, command.cu_exclude) == (True, True, 2, "drivers/")

    def test_values_are_attached_or_follow(self) -> None:
        assert (
            parse(["--btf_encode_detached=out"]).detached == parse(["--btf_encode_detached", "out"]).detached == "out"
        )
        assert parse(["--kabi_prefix=--x"]).kabi_prefix == parse(["--kabi_prefix", "--x"]).kabi_prefix == "--x"
        assert parse(["-X", "a"]).cu_exclude == parse(["-Xa"]).cu_exclude == "a"

    def test_long_options_may_be_cut_short_while_unambiguous(self) -> None:
        assert parse(["--btf_encode_d=out"]).detached == "out"
        assert parse(["--verb"]).verbose
        assert parse(["--btf_encode"]).encode, "an exact name wins over longer ones"
        with pytest.raises(
            CommandLineError, match="ambiguous: --btf_encode, --btf_encode_detached, --btf_encode_force"
        ):
            parse(["--btf_enc"])

    @pytest.mark.parametrize(
        "argv",
        [
            ["--no_such_option"],
            ["-Q"],
            ["-JQ"],
            ["--btf_encode=1"],
            ["--btf_features"],
            ["--hashbits"],
            ["-X"],
            ["--btf_feat=var"],
            ["-J"],
            ["-J", "one", "two"],
        ],
    )
    def test_what_cannot_be_read_ends_with_one_line_and_64(
        self, argv: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(argv) == EX_USAGE
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("btfstep: ")
        assert err.count("\n") == 1

    @pytest.mark.parametrize(
        "argv",
        [["--no_such_option"], ["-Q"], ["--btf_encode=1"], ["--hashbits"], ["--btf_feat=x"], ["--version", "-Q"]],
    )
    def test_the_reference_gives_the_same_status(self, argv: list[str], reference: str) -> None:
        done = subprocess.run([reference, *argv], capture_output=True, check=False)
        assert done.returncode == main(argv)


class TestJobs:
    def test_a_number_may_be_attached_or_follow(self) -> None:
        for argv in (["-j3"], ["-j", "3"], ["--jobs=3"], ["--jobs", "3"], ["-Jj", "3"]):
            command = parse([*argv, "vmlinux"])
            assert (command.jobs, command.files) == (3, ["vmlinux"])

    def test_bare_takes_the_processors(self) -> None:
        for argv in (["-j"], ["--jobs"], ["-Jj"], ["-j", "--btf_features=var"]):
            command = parse([*argv, "vmlinux"])
            assert (command.jobs, command.files) == (available_processors(), ["vmlinux"])

    def test_a_file_whose_name_is_a_number_is_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "3").touch()
        monkeypatch.chdir(tmp_path)
        assert parse(["-j", "3"]).files == ["3"]

    def test_without_the_option_there_is_one(self) -> None:
        assert parse([]).jobs == 1

    def test_odd_numbers(self) -> None:
        assert parse_jobs("0") == 1
        assert parse_jobs("9" * 10_000) == MAX_JOBS
        for text in ("4x", "-1", "", "\N{SUPERSCRIPT TWO}"):
            with pytest.raises(UsageError):
                parse_jobs(text)

    def test_processors_are_those_that_the_affinity_mask_allows(self) -> None:
        code = "from btfstep.encode.jobs import available_processors as n; print(n())"
        one = min(os.sched_getaffinity(0))
        done = subprocess.run(
            [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{one}}})\n{code}"],
            cwd=HERE,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "1\n"

    @pytest.mark.parametrize(
        ("own", "above", "limit"),
        [
            ("max 100000", "max 100000", None),
            ("150000 100000", None, 2),
            ("max 100000", "50000 100000", 1),
            ("x", "0 0", None),
        ],
    )
    def test_processors_are_at_most_what_control_groups_allow(
        self, own: str, above: str | None, limit: int | None, tmp_path: Path
    ) -> None:
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a" / "b" / "cpu.max").write_text(own + "\n")
        if above is not None:
            (tmp_path / "a" / "cpu.max").write_text(above + "\n")
        membership = tmp_path / "cgroup"
        membership.write_text("1:name=systemd:/z\n0::/a/b\n")
        assert cgroup_limit(str(tmp_path), str(membership)) == limit


class TestLanguages:
    def test_names_are_those_of_dwarf_in_any_case(self) -> None:
        assert parse_languages("rust,C11,Asm") == {0x1C, 0x1D, 0x8001}

    @pytest.mark.parametrize("text", ["", "rust,", "klingon"])
    def test_unknown_names_are_refused(self, text: str) -> None:
        with pytest.raises(UsageError, match="unknown language"):
            parse_languages(text)

    def test_the_environment_counts_only_if_no_option_does(self) -> None:
        environ = {"PAHOLE_LANG_EXCLUDE": "rust,swift"}
        assert parse([]).settings(environ).lang_exclude == {CODES["rust"], CODES["swift"]}
        assert parse(["--lang_exclude=go"]).settings(environ).lang_exclude == {CODES["go"]}
        only = parse(["--lang=c,c11"]).settings(environ)
        assert only.lang == frozenset((CODES["c"], CODES["c11"]))
        assert only.lang_exclude == frozenset()
        assert parse([]).settings({}).lang is None

    @pytest.mark.parametrize("text", [*CODES, "", "klingon", "RUST", "c,go"])
    def test_the_reference_knows_the_same_names(self, text: str, reference: str) -> None:
        done = subprocess.run([reference, f"--lang={text}", "--numeric_version"], capture_output=True, check=False)
        try:
            parse_languages(text)
        except UsageError:
            assert done.returncode == 1
        else:
            assert done.returncode == 0


class TestElsewhere:
    @pytest.mark.parametrize("name", sorted(ELSEWHERE))
    def test_what_is_not_encoding_says_which_program_does_it(
        self, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([f"--{name}", "1", "vmlinux"]) == 1
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert f"--{name} is for " in err
        assert any(program in err for program in ("use pahole", "use pfunct", "use 'bpftool btf dump", "use 'gcc"))

    def test_every_option_of_the_reference_is_known(self, reference: str) -> None:
        text = subprocess.run([reference, "--help"], capture_output=True, text=True, check=True).stdout
        words = {word.strip(",") for word in text.replace("=", " ").replace("[", " ").split()}
        names = {word[2:] for word in words if word.startswith("--") and "use" not in word}
        # Only mentioned there, in the text of another option.
        names -= {"encode_btf_global_vars)."} | {name for name in names if name.endswith("].")}
        assert names - {option.name for option in ALL} == set()

    @pytest.mark.parametrize("value", ["btf", "ctf", "btf,dwarf", "stabs", ""])
    def test_only_dwarf_is_read(self, value: str) -> None:
        with pytest.raises(UsageError):
            parse(["-F", value])

    def test_dwarf_is_a_format(self) -> None:
        assert parse(["-Fdwarf", "--format_path=dwarf,btf", "--hashbits=21", "x"]).files == ["x"]

    def test_hashbits_is_limited_as_in_pahole(self) -> None:
        with pytest.raises(UsageError):
            parse(["--hashbits=32"])

    def test_without_an_output_it_says_what_to_do(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["vmlinux"]) == 1
        assert "--btf_encode_detached" in capsys.readouterr().err


class TestProcess:
    """What only shows from outside."""

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "btfstep", *argv], cwd=HERE, capture_output=True, text=True, check=False
        )

    @pytest.mark.parametrize("argv", [["--version"], ["--numeric_version"], ["--supported_btf_features"]])
    def test_questions_import_nothing_heavy(self, argv: list[str]) -> None:
        code = f"import sys; from btfstep.cli import main; main({argv!r}); print(*sys.modules)"
        bare, asked = (
            set(
                subprocess.run(
                    [sys.executable, "-c", text], cwd=HERE, capture_output=True, text=True, check=True
                ).stdout.split()
            )
            for text in ("import sys; print(*sys.modules)", code)
        )
        assert not (asked - bare) & {"re", "typing", "argparse", "dataclasses", "threading", "mmap", "btfstep.elf"}

    def test_help_into_a_closed_pipe_is_no_traceback(self) -> None:
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(0.3); from btfstep.cli import main; main(['--help'])"],
            cwd=HERE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == ""
        child.wait()

    @pytest.mark.parametrize("argv", [["--version"], ["--help"]])
    def test_a_full_disk_is_one_line(self, argv: list[str]) -> None:
        if not os.path.exists("/dev/full"):
            pytest.skip("no /dev/full")
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "btfstep", *argv],
                cwd=HERE,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode != 0
        assert done.stderr.splitlines()[0] == "btfstep: No space left on device"

    def test_a_defect_is_one_line_too(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def run(_: list[str]) -> int:
            raise ZeroDivisionError("two\nlines")

        monkeypatch.setattr("btfstep.cli.pahole.run", run)
        assert main(["-J", "vmlinux"]) == 1
        err = capsys.readouterr().err
        assert err.startswith("btfstep: internal error: ZeroDivisionError: two lines ")
        assert err.count("\n") == 1
        monkeypatch.setenv("BTFSTEP_TRACEBACK", "1")
        with pytest.raises(ZeroDivisionError):
            main(["-J", "vmlinux"])

    def test_ctrl_c_ends_it_by_that_signal(self, tmp_path: Path) -> None:
        code = (
            "import sys, time\nimport btfstep.cli.pahole as pahole\n"
            "def run(argv):\n    print('running', flush=True)\n    time.sleep(60)\n"
            "pahole.run = run\nfrom btfstep.cli import main\nsys.exit(main(['-J', 'x']))\n"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=HERE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=usual_signals,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "running\n"
        time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
        assert child.returncode == -signal.SIGINT
        assert err == ""

    def test_both_outputs_have_the_same_bytes_at_any_j(self, build: Build, tmp_path: Path) -> None:
        pytest.importorskip("btfstep.encode.api")
        objcopy = tool("objcopy")
        elf = build(["int one(int a) { return a; }", "long two(long *b) { return *b; }"])
        out, section = tmp_path / "out", tmp_path / "section"
        made = set()
        for jobs in ("-j1", "-j2", "-j"):
            done = self.run(jobs, f"--btf_encode_detached={out}", str(elf))
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            made.add(out.read_bytes())
        before = out.stat()
        done = self.run("-V", f"--btf_encode_detached={out}", str(elf))
        assert (out.stat().st_ino, out.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        assert done.stdout == ""
        assert "unchanged" in done.stderr
        for stage in ("read headers and symbols", "decode units", "merge units", "encode units", "choose functions"):
            assert re.search(rf"^btfstep: {stage}.*: \d+\.\d+ s\b", done.stderr, re.M), done.stderr

        assert self.run("-J", str(elf)).returncode == 0
        subprocess.run(
            [objcopy, "-O", "binary", "--only-section=.BTF", "--set-section-flags", ".BTF=alloc", elf, section],
            check=True,
        )
        made.add(section.read_bytes())
        assert len(made) == 1

    @pytest.mark.parametrize(("option", "moves"), [("--touch", True), ("--no-touch", False)])
    def test_in_place_only_the_time_of_an_unchanged_file_moves(self, option: str, moves: bool, build: Build) -> None:
        pytest.importorskip("btfstep.encode.api")
        elf = build("int one(int a) { return a; }")
        assert self.run("-J", str(elf)).returncode == 0
        os.utime(elf, (1, 1))
        before = elf.read_bytes()
        assert self.run("-J", option, str(elf)).returncode == 0
        assert elf.read_bytes() == before
        assert (elf.stat().st_mtime > 1) is moves

    @pytest.mark.parametrize("mode", [["-J"], ["--btf_encode_detached=OUT"]])
    def test_without_dwarf_it_says_so_and_succeeds(self, mode: list[str], build: Build, tmp_path: Path) -> None:
        pytest.importorskip("btfstep.encode.api")
        elf = build("int one(int a) { return a; }", "-g0")
        before = elf.read_bytes()
        done = self.run(*(word.replace("OUT", str(tmp_path / "out")) for word in mode), str(elf))
        assert done.returncode == 0
        assert done.stderr == f"btfstep: {elf}: has no DWARF, so nothing was written\n"
        assert elf.read_bytes() == before
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("mode", [["-J"], ["--btf_encode_detached=OUT"]])
    def test_a_file_that_is_not_there_is_an_error(self, mode: list[str], tmp_path: Path) -> None:
        pytest.importorskip("btfstep.encode.api")
        argv = [word.replace("OUT", str(tmp_path / "out")) for word in mode]
        done = self.run(*argv, str(tmp_path / "missing"))
        assert done.returncode == 1
        assert done.stderr == f"btfstep: {tmp_path / 'missing'}: No such file or directory\n"
        assert not (tmp_path / "out").exists()

    def test_the_installed_command_is_this_program(self) -> None:
        command = shutil.which("btfstep", path=str(Path(sys.executable).parent)) or shutil.which("btfstep")
        if command is None:
            pytest.skip("btfstep is not installed as a command")
        done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == "v1.32\n"
