# SPDX-License-Identifier: GPL-2.0-only
"""The rules for Make, Ninja, CMake and Meson: a build does what a change asks for, and no more."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import btfstep
from btfstep.build.ninja import RULES, VARIABLES, Rules
from btfstep.cli import main
from btfstep.cli.kbuild import shipped
from conftest import LINK, tool

# Objects that use `struct shared` beside the one of their own; their numbers.
SHARING = (0, 1, 3)

PROGRAM = """
#include "vmlinux.h"
#include "own.h"
__attribute__((section("tp_btf/event"), used)) int prog(struct own{number} *own{parameters})
{{
	return own->count + EXTRA{use};
}}
"""
SHARED = {"parameters": ", struct shared *shared", "use": " + shared->value"}
NOTHING = {"parameters": "", "use": ""}


class Project:
    """A directory with a kernel, BPF sources that use it, and what builds them."""

    objects = "build"  # where they are
    clean: tuple[str, ...] = ()

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.names = [f"prog{number:02}" for number in range(count)]
        self.kernel = folder / "vmlinux"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.program("btfstep", f'exec {sys.executable} -m btfstep "$@"')
        path = os.environ["PATH"].split(os.pathsep)
        kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "CLICOLOR")}
        self.environment = {**kept, "PATH": os.pathsep.join([str(self.bin), *path])}
        (folder / "own.h").write_text("#define EXTRA 1\n")
        for number in range(count):
            self.source(number, shared=number in SHARING)
        self.link()
        self.configure()

    def configure(self) -> None:
        """Write what the build reads."""

    def command(self, *targets: str) -> list[str]:
        """How to build."""
        raise NotImplementedError

    @property
    def sharing(self) -> list[str]:
        return [self.names[number] for number in SHARING if number < len(self.names)]

    def program(self, name: str, script: str) -> None:
        """A shell script that the build finds as a program of this name."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def source(self, number: int, *, shared: bool) -> None:
        text = PROGRAM.format(number=number, **(SHARED if shared else NOTHING))
        (self.folder / f"{self.names[number]}.bpf.c").write_text(text)

    def link(
        self, *, shared: str = "", body: int = 0, own: dict[int, str] | None = None, level: str = "", sized: str = ""
    ) -> None:
        """Link the kernel: `shared`, `own` and `sized` add members to structs, `level` constants to an enumeration,
        `body` changes a function."""
        lines = [f"enum level {{ LOW, {level} HIGH }};", f"struct sized {{ long value; {sized} }} sized;"]
        lines += ["struct far { enum level level; };", f"struct shared {{ long value; struct far *far; {shared} }};"]
        fields = own or {}
        numbers = range(len(self.names))
        lines += [f"struct own{number} {{ int count; {fields.get(number, '')} }};" for number in numbers]
        lines += [f"int work{n}(struct own{n} *own, struct shared *s) {{ return {body}; }}" for n in numbers]
        source = self.folder / "kernel.c"
        source.write_text("\n".join(lines) + "\n")
        linked = self.folder / "vmlinux.new"
        subprocess.run([tool("gcc"), "-g", "-O2", *LINK, "-o", linked, source], check=True)
        assert main(["-J", "--btf_features=default", str(linked)]) == 0
        linked.rename(self.kernel)

    def run(self, *targets: str, status: int = 0) -> str:
        done = subprocess.run(
            self.command(*targets), cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode != 0) == (status != 0), done.stdout + done.stderr
        return done.stdout + done.stderr

    def build(self, *targets: str, status: int = 0) -> list[str]:
        """Build; the names of the objects that are new then."""
        before = self.state()
        self.run(*targets, status=status)
        after = self.state()
        return [name for name in self.names if after[name] != before[name]]

    def state(self) -> dict[str, tuple[int, int] | None]:
        states: dict[str, tuple[int, int] | None] = {}
        for name in self.names:
            try:
                status = self.object(name).stat()
                states[name] = (status.st_ino, status.st_mtime_ns)
            except FileNotFoundError:
                states[name] = None
        return states

    def object(self, name: str) -> Path:
        return self.folder / self.objects / f"{name}.bpf.o"

    def sees(self, name: str, member: str) -> bool:
        """Whether an object was compiled with a header in which `struct shared` has this member."""
        shared = btfstep.open_btf(self.object(name)).find("shared", "struct")
        return member in [one.name for one in shared.members]


class Make(Project):
    clean = ("clean",)

    def configure(self) -> None:
        (self.folder / "Makefile").write_text(
            "BTFSTEP_KERNEL := vmlinux\n"
            "BTFSTEP_SOURCES := $(wildcard *.bpf.c)\n"
            "include $(shell btfstep kbuild)/btfstep.mk\n"
            "all: $(BTFSTEP_OBJECTS) $(BTFSTEP_SKELETONS)\n"
            "clean: btfstep-clean\n"
        )

    def command(self, *targets: str) -> list[str]:
        return [tool("make"), "-j2", *(targets or ("BTFSTEP_BPFTOOL=",))]


class Ninja(Project):
    """The manifest that btfstep writes."""

    clean = ("-t", "clean")

    def configure(self) -> None:
        pytest.importorskip("ninja", reason="the PyPI package ninja is not installed")
        sources = [f"{name}.bpf.c" for name in self.names]
        command = [sys.executable, "-m", "btfstep", "ninja", "-o", "build.ninja", "--kernel", "vmlinux", *sources]
        subprocess.run(command, cwd=self.folder, check=True)

    def command(self, *targets: str) -> list[str]:
        return [tool("ninja"), "-j2", *targets]


class Include(Ninja):
    """A manifest of one's own, with the rules that come along."""

    def configure(self) -> None:
        lines = [
            f"include {shipped('btfstep.ninja')}",
            "build build/vmlinux.btf: btfstep_btf vmlinux",
            "build build/include/vmlinux.h: btfstep_header build/vmlinux.btf",
        ]
        for name in self.names:
            made = f"build/{name}.bpf.o"
            lines += [
                f"build {made}.uses: btfstep_uses build/vmlinux.btf",
                f"  object = {made}",
                f"build {made}: btfstep_object {name}.bpf.c | {made}.uses || build/include/vmlinux.h",
                "  btf = build/vmlinux.btf",
                "  include = build/include",
            ]
        (self.folder / "build.ninja").write_text("\n".join(lines) + "\n")


class Cmake(Project):
    generator = "Ninja"
    objects = "build/programs.dir"

    def configure(self) -> None:
        if self.generator == "Ninja":
            tool("ninja")
        (self.folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.20)\n"
            "project(test NONE)\n"
            "execute_process(COMMAND btfstep kbuild btfstep.cmake OUTPUT_VARIABLE rules"
            " OUTPUT_STRIP_TRAILING_WHITESPACE)\n"
            "include(${rules})\n"
            "file(GLOB sources *.bpf.c)\n"
            "btfstep_add_objects(programs KERNEL vmlinux SOURCES ${sources} CFLAGS -Wall)\n"
        )
        command = [tool("cmake"), "-G", self.generator, "-B", "build", "."]
        subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, check=True)

    def command(self, *targets: str) -> list[str]:
        return [tool("cmake"), "--build", "build", "-j2"]


class CmakeMake(Cmake):
    generator = "Unix Makefiles"


class Meson(Project):
    objects = "build"

    def configure(self) -> None:
        tool("ninja")
        names = ", ".join(f"'{name}.bpf.c'" for name in self.names)
        settings = f"bpf_kernel = '{self.kernel}'\nbpf_sources = [{names}]\nbpf_cflags = ['-Wall']\n"
        rules = Path(shipped("meson.build")).read_text()
        (self.folder / "meson.build").write_text(f"project('test')\n{settings}{rules}")
        # Not every machine has one, and this is not about skeletons.
        hidden = "[binaries]\nbpftool = '/nonexistent'\n"
        (self.folder / "native.ini").write_text(hidden)
        command = [tool("meson"), "setup", "--native-file", "native.ini", "build"]
        subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, check=True)

    def command(self, *targets: str) -> list[str]:
        return [tool("meson"), "compile", "-C", "build", "-j2"]


Start = Callable[[type[Project], int], Project]


@pytest.fixture
def start(tmp_path: Path, clang: str) -> Start:
    """``start(Make, 20)``: a project with 20 BPF objects."""
    assert clang
    folder = tmp_path / "project"
    folder.mkdir()
    return lambda builder, count: builder(folder, count)


@pytest.fixture(params=[Make, Ninja], ids=["make", "ninja"])
def project(request: pytest.FixtureRequest, start: Start) -> Project:
    """A project with three objects; the first two use `struct shared`."""
    return start(request.param, 3)


@pytest.mark.parametrize(
    ("builder", "count"),
    [(Make, 20), (Ninja, 20), (Include, 5), (Cmake, 5), (CmakeMake, 5), (Meson, 5)],
    ids=["make", "ninja", "ninja-include", "cmake-ninja", "cmake-make", "meson"],
)
def test_only_objects_that_use_a_changed_type_are_compiled_again(
    builder: type[Project], count: int, start: Start
) -> None:
    project = start(builder, count)
    assert project.build() == project.names
    assert project.build() == []
    project.link(body=1)
    assert project.build() == []
    project.link(shared="int added;")
    assert project.build() == project.sharing
    assert project.build() == []
    assert len(project.sharing) == 3
    assert all(project.sees(name, "value") for name in project.sharing)
    if count < 20:  # again the same for each; and compiling takes its time
        (project.folder / "own.h").write_text("#define EXTRA 2\n")
        assert project.build() == project.names
        assert project.build() == []


def test_an_object_that_starts_to_use_a_type_follows_it_from_then_on(project: Project) -> None:
    assert project.build() == project.names
    project.source(2, shared=True)
    assert project.build() == [project.names[2]]
    project.link(body=1)
    assert project.build() == []
    project.link(shared="int added;")
    assert project.build() == project.names
    project.source(0, shared=False)
    assert project.build() == [project.names[0]]
    project.link()
    assert project.build() == project.names[1:]


def test_what_only_the_source_names(project: Project) -> None:
    """Constants and sizes are numbers in an object; others hold the enumeration where they do not look."""
    number = 2
    source = project.folder / f"{project.names[number]}.bpf.c"
    for use, level, sized in (("HIGH", "MIDDLE,", ""), ("sizeof(struct sized)", "", "long added;")):
        project.link()
        source.write_text(PROGRAM.format(number=number, parameters="", use=f" + {use}"))
        project.build()
        assert project.build() == []
        project.link(level=level, sized=sized)
        assert project.build() == [project.names[number]]
        project.link(level=level, sized=sized, shared="int added;")
        assert project.build() == project.sharing


def test_a_source_and_a_type_that_change_at_once(project: Project) -> None:
    project.build()
    project.source(2, shared=True)
    project.link(shared="int added;", own={2: "int more;"})
    assert project.build() == project.names
    assert project.build() == []
    project.link(shared="int added;")
    assert project.build() == [project.names[2]]


def test_an_included_file_that_changed(project: Project) -> None:
    project.build()
    (project.folder / "own.h").write_text("#define EXTRA 2\n")
    assert project.build() == project.names
    assert project.build() == []


def test_after_clean_all_is_built_once(project: Project) -> None:
    project.build()
    project.run(*project.clean)
    left = {path.name for path in (project.folder / "build").rglob("*") if path.is_file()}
    assert left <= {".ninja_log", ".ninja_deps"}
    assert project.build() == project.names
    assert project.build() == []
    project.link(shared="int added;")
    assert project.build() == project.sharing


def test_a_header_that_was_built_alone_is_no_reason_to_forget_objects(project: Project) -> None:
    project.build()
    project.link(shared="int added;")
    assert project.build("build/include/vmlinux.h") == []
    assert "added" in (project.folder / "build/include/vmlinux.h").read_text()
    assert project.build() == project.sharing


def test_one_object_can_be_built_alone(project: Project) -> None:
    project.build()
    project.link(shared="int added;")
    assert project.build(f"build/{project.names[0]}.bpf.o") == [project.names[0]]
    assert project.build() == [project.names[1]]


def test_a_kernel_that_is_linked_anew_during_the_build_counts_for_the_next(project: Project, clang: str) -> None:
    other = project.folder / "other"
    project.link(shared="int added;")
    project.kernel.rename(other)
    project.link()
    # The first compilation finds the kernel changed under it.
    project.program("clang", f'mv -f {other} {project.kernel} 2>/dev/null\nexec {clang} "$@"')
    assert project.build() == project.names
    assert "added" not in (project.folder / "build/include/vmlinux.h").read_text()
    # Some file systems keep coarse times, and a build takes no time at all here.
    os.utime(project.kernel)
    assert project.build() == project.sharing
    assert project.build() == []


def test_a_compilation_that_failed_is_done_again(project: Project, clang: str) -> None:
    project.build()
    project.program("clang", "exit 1")
    project.link(shared="int added;")
    assert project.build(status=1) == []
    assert project.build(status=1) == []
    # One that dies between compiling and stamping must not pass for a whole one.
    project.program("clang", f'exec {clang} "$@"')
    stamping = (project.bin / "btfstep").read_text()
    project.program("btfstep", f"case $*/ in *.tmp*) kill -9 $PPID;; esac\n{stamping}")
    project.source(0, shared=False)
    assert project.build(status=1) == []
    project.program("btfstep", stamping)
    assert project.build() == project.sharing
    assert project.build() == []


@pytest.mark.parametrize("suffix", ["uses", "d"])
def test_a_file_that_was_lost_costs_no_more_than_a_compilation(project: Project, suffix: str) -> None:
    project.build()
    (project.folder / "build" / f"{project.names[1]}.bpf.o.{suffix}").unlink()
    project.link(own={2: "int added;"})
    assert project.build() == project.names[1:]
    assert project.build() == []


def test_skeletons(start: Start, bpftool: str) -> None:
    project = start(Make, 2)
    pytest.importorskip("ninja", reason="the PyPI package ninja is not installed")
    manifest = ["ninja", "-o", "build.ninja", "--kernel", "vmlinux", "--skeletons", "--bpftool", bpftool]
    for command in (["make", f"BTFSTEP_BPFTOOL={bpftool}"], ["ninja"]):
        if command == ["ninja"]:
            arguments = [*manifest, *(f"{name}.bpf.c" for name in project.names)]
            subprocess.run([sys.executable, "-m", "btfstep", *arguments], cwd=project.folder, check=True)
        subprocess.run(command, cwd=project.folder, env=project.environment, capture_output=True, check=True)
        for name in project.names:
            skeleton = project.folder / "build" / f"{name}.skel.h"
            assert f"{name}_bpf__open_and_load" in skeleton.read_text()
            skeleton.unlink()


def test_make_is_told_of_another_kernel_by_its_name(start: Start) -> None:
    project = start(Make, 2)
    project.link(shared="int added;")
    older = project.folder / "older"
    project.kernel.rename(older)
    os.utime(older, (1, 1))
    project.link()
    assert project.build() == project.names
    # Older than all that was made, but another one.
    assert project.build("BTFSTEP_KERNEL=older", "BTFSTEP_BPFTOOL=") == project.names
    assert project.build("BTFSTEP_KERNEL=older", "BTFSTEP_BPFTOOL=") == []
    assert project.build() == project.names


def test_make_is_told_of_other_types_for_the_header(start: Start) -> None:
    project = start(Make, 2)
    header = project.folder / "build/include/vmlinux.h"
    only = "BTFSTEP_HEADER_FLAGS=--only 'own*'"
    project.build(only + " --only work0", "BTFSTEP_BPFTOOL=", "build/include/vmlinux.h")
    assert "struct shared {" not in header.read_text()
    assert project.build(only + " --only shared", "BTFSTEP_BPFTOOL=") == project.names
    assert "struct shared {" in header.read_text()
    assert project.build(only + " --only shared", "BTFSTEP_BPFTOOL=") == []
    # The objects have what they use already.
    assert project.build() == []


def test_make_prints_a_line_for_each_step_and_none_if_silent(start: Start) -> None:
    project = start(Make, 1)
    lines = project.run().splitlines()
    assert lines == [
        "  BTF      build/vmlinux.btf",
        "  HEADER   build/include/vmlinux.h",
        "  BPF      build/prog00.bpf.o",
    ]
    project.link(shared="int added;")
    assert project.run("-s", "BTFSTEP_BPFTOOL=") == ""
    project.run("clean")
    assert "clang -target bpf -O2 -g" in project.run("V=1", "BTFSTEP_BPFTOOL=")


def test_make_keeps_what_was_the_default_goal(start: Start) -> None:
    project = start(Make, 1)
    text = (project.folder / "Makefile").read_text()
    (project.folder / "Makefile").write_text(f"mine:\n\t@echo mine\n{text}")
    assert project.run("BTFSTEP_BPFTOOL=") == "mine\n"


def test_make_makes_a_file_that_was_removed(start: Start) -> None:
    project = start(Make, 1)
    project.build()
    for name in ("build/vmlinux.btf", "build/include/vmlinux.h"):
        (project.folder / name).unlink()
        assert project.build() == []
        assert (project.folder / name).exists()


def rules_text() -> str:
    syntax = pytest.importorskip("ninja.ninja_syntax", reason="the PyPI package ninja is not installed")
    out = io.StringIO()
    Rules(syntax.Writer(out, width=120))
    return out.getvalue()


def statements(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def test_the_shipped_rules_are_those_that_python_writes() -> None:
    assert statements(Path(shipped("btfstep.ninja")).read_text()) == statements(rules_text())
    assert all(name in rules_text() for name in (*RULES, *VARIABLES))
    assert rules_text().count("restat = 1") == len(RULES)


def test_ninja_prints_the_shipped_rules(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    assert main(["ninja", "--rules"]) == 0
    expected = Path(shipped("btfstep.ninja")).read_bytes()
    assert capfdbinary.readouterr().out == expected
    assert main(["ninja", "--rules", "-o", str(tmp_path / "rules")]) == 0
    assert (tmp_path / "rules").read_bytes() == expected


def test_ninja_takes_names_with_spaces_and_dollars(start: Start) -> None:
    project = start(Ninja, 1)
    project.source(0, shared=False)
    (project.folder / "prog00.bpf.c").rename(project.folder / "a b$c.bpf.c")
    (project.folder / "my kernel").write_bytes(project.kernel.read_bytes())
    arguments = ["--kernel", "my kernel", "--builddir", "the $build", "--cflags", '-DTEXT="a b"', "--only", "own*"]
    command = [sys.executable, "-m", "btfstep", "ninja", "-o", "build.ninja", *arguments, "a b$c.bpf.c"]
    subprocess.run(command, cwd=project.folder, check=True)
    project.run()
    made = project.folder / "the $build"
    assert (made / "a b$c.bpf.o").exists()
    assert (made / "a b$c.bpf.o.uses").read_bytes()
    assert "no work to do" in project.run()
    assert "shared" not in (made / "include/vmlinux.h").read_text()
    os.utime(project.folder / "own.h")
    assert "no work to do" not in project.run()


MODULE = """
struct own0 {{ int count; }};
struct widget {{ struct own0 *own; long size; {field} }};
int use(struct widget *widget) {{ return widget->own->count; }}
"""


def test_ninja_encodes_modules_in_one_call(start: Start) -> None:
    project = start(Ninja, 1)
    modules = ["m0.ko", "m1.ko"]

    def compile_module(name: str, field: str = "") -> None:
        source = project.folder / "module.c"
        source.write_text(MODULE.format(field=field))
        subprocess.run([tool("gcc"), "-g", "-O2", "-c", "-o", project.folder / name, source], check=True)

    for name in modules:
        compile_module(name)
    command = [sys.executable, "-m", "btfstep", "ninja", "-o", "build.ninja", "--kernel", "vmlinux", *modules]
    subprocess.run(command, cwd=project.folder, check=True)
    with open(project.folder / "build.ninja", "a") as manifest:
        manifest.write("rule next\n  command = echo after $in && touch $out\n")
        manifest.writelines(f"build {name}.next: next {name}.btf\n" for name in modules)

    def after() -> list[str]:
        lines = project.run().splitlines()
        return sorted(line for line in lines if line.startswith("after"))

    assert after() == ["after m0.ko.btf", "after m1.ko.btf"]
    base = btfstep.open_btf(project.kernel)
    for name in modules:
        module = btfstep.open_btf(project.folder / f"{name}.btf", base=project.kernel)
        assert [own.name for own in module.own if own.kind == "struct"] == ["widget"]
    assert len(base) > 1
    assert after() == []
    compile_module("m1.ko")
    assert after() == []
    compile_module("m1.ko", "int added;")
    assert after() == ["after m1.ko.btf"]
    project.link(body=1)
    assert after() == []


def test_ninja_adds_btf_to_modules_in_place(start: Start) -> None:
    syntax = pytest.importorskip("ninja.ninja_syntax", reason="the PyPI package ninja is not installed")
    project = start(Ninja, 1)
    (project.folder / "module.c").write_text(MODULE.format(field=""))
    with open(project.folder / "build.ninja", "w") as manifest:
        rules = Rules(syntax.Writer(manifest))
        rules.writer.rule("cc", "gcc -g -O2 -c -o $out $in")
        rules.writer.build(["m.ko"], "cc", ["module.c"])
        rules.modules_in_place("modules.stamp", ["m.ko"], base=rules.btf("vmlinux.btf", "vmlinux"))
        rules.encode("m.btf", "m.ko", base="vmlinux.btf", flags="--no-record")
    project.run()
    module = btfstep.open_btf(project.folder / "m.ko", base=project.kernel)
    assert module.find("widget").kind == "struct"
    project.run()
    assert "no work to do" in project.run()
    alone = btfstep.open_btf(project.folder / "m.btf", base=project.kernel)
    assert alone.raw() == module.raw()


def test_ninja_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ninja", "ninja.ninja_syntax", "ninja_syntax"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["ninja", "prog.bpf.c"]) == 1
    assert "pip install 'btfstep[ninja]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "nothing to make"),
        (["prog.txt"], "'prog.txt' is neither a source"),
        (["a\nb.c"], "line break"),
        (["--rules", "prog.bpf.c"], "--rules writes rules without files"),
        (["@/nonexistent"], "/nonexistent: No such file"),
    ],
)
def test_ninja_refuses(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ninja", reason="the PyPI package ninja is not installed")
    assert main(["ninja", *arguments]) in (1, 64)
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_kbuild_tells_where_the_files_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kbuild"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    for name in ("btfstep.mk", "btfstep.ninja", "btfstep.cmake", "meson.build"):
        assert main(["kbuild", name]) == 0
        path = Path(capsys.readouterr().out.strip())
        assert path == folder / name
        assert path.read_text().startswith("# SPDX-License-Identifier: GPL-2.0-only")
    assert main(["kbuild", "nonsense"]) == 1
    assert "named 'nonsense'" in capsys.readouterr().err
