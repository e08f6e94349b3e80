# SPDX-License-Identifier: GPL-2.0-only
"""What BPF objects use of a kernel, and stamps that change with just that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import btfstep
from btfmaker import BtfMaker
from btfstep.bpf.needs import Needs, essential
from btfstep.bpf.records import core_records
from btfstep.bpf.uses import stamp, uses
from btfstep.btf.reader import BtfReader
from conftest import Build, tool

# Each line that a test changes is a string of its own.
KERNEL = """
enum state {{ {states} }};
enum colour {{ RED, GREEN }};
enum {{ {anonymous} }} anonymous;
typedef unsigned long word_t;
struct inner {{ int x; {inner} }};
struct far {{ int z; {far} }};
struct other {{ int y; {other} }};
struct task {{ int pid; struct inner in; struct far *far; enum state state; word_t word; {task} }};
struct ops {{ int (*start)(struct task *, {ops}); }};
struct bpf_struct_ops_ops {{ struct ops data; }};
typedef void (*btf_trace_switch)(void *, {tracepoint} struct task *);
btf_trace_switch trace;
struct bpf_struct_ops_ops registered;
struct far queue __attribute__((section(".data..percpu")));
struct other other;
enum colour colour;
int attached(struct task *task, {attached} int b) {{ return b; }}
int bpf_lsm_open(struct other *file) {{ return 0; }}
struct task *get_task(int pid {kfunc}) {{ return 0; }}
"""
PARTS = {
    "states": "STOPPED, RUNNING = 7",
    "anonymous": "LIMIT = 9",
    "inner": "",
    "far": "",
    "other": "",
    "task": "",
    "ops": "int",
    "tracepoint": "",
    "attached": "",
    "kfunc": "",
}

HEADER = """
#define SEC(name) __attribute__((section(name), used))
#ifndef CORE
#define CORE __attribute__((preserve_access_index))
#endif
enum state { STOPPED, RUNNING = 7 };
enum { LIMIT = 9 };
struct inner { int x; } CORE;
struct far { int z; } CORE;
struct other { int y; } CORE;
struct task { int pid; struct inner in; struct far *far; enum state state; } CORE;
"""


@pytest.fixture
def kernel(build: Build, tmp_path: Path) -> Path:
    return make_kernel(build, tmp_path)


def make_kernel(build: Build, tmp_path: Path, **changes: str) -> Path:
    """Raw BTF of the kernel above, with some parts changed."""
    elf = build(KERNEL.format(**{**PARTS, **changes}), name="kernel")
    path = tmp_path / "kernel.btf"
    path.write_bytes(btfstep.encode(elf))
    return path


def compile_bpf(tmp_path: Path, source: str, *flags: str, name: str = "prog") -> Path:
    (tmp_path / f"{name}.bpf.c").write_text(HEADER + source)
    path = tmp_path / f"{name}.bpf.o"
    command = [tool("clang"), "-target", "bpf", "-g", "-O2", *flags, "-c", f"{name}.bpf.c", "-o", str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if "No available targets are compatible" in done.stderr:
        pytest.skip("this clang does not compile for BPF")
    assert done.returncode == 0, done.stderr
    return path


def run(*arguments: object, cwd: Path | None = None, status: int = 0) -> str:
    """Run ``btfstep uses``; return its output, or the one line that it complains with."""
    command = [sys.executable, "-m", "btfstep", "uses", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    if status:
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        return done.stderr
    return done.stdout


def names(*arguments: object) -> set[str]:
    """The definitions that are used, numbers aside."""
    entries = json.loads(run(*arguments, "--format", "json"))
    return {f"{entry['kind']} {entry['name']}" for entry in entries if entry["digest"] and entry["kind"] != "int"}


FIELD = 'SEC("raw_tp/x") int prog(unsigned long long *ctx) { return ((struct task *)ctx[0])->pid; }'
TASK = {"struct task", "struct inner", "enum state", "typedef word_t"}


def test_a_field_access_uses_the_struct_and_what_it_holds_by_value(kernel: Path, tmp_path: Path) -> None:
    assert names(compile_bpf(tmp_path, FIELD), "--vmlinux", kernel) == TASK


def test_flavors_stand_for_the_type(kernel: Path, tmp_path: Path) -> None:
    source = """
    struct task___old { int tgid; } CORE;
    SEC("raw_tp/x") int prog(unsigned long long *ctx) {
        return __builtin_preserve_field_info(((struct task___old *)ctx[0])->tgid, 2);
    }"""
    assert names(compile_bpf(tmp_path, source), "--vmlinux", kernel) == TASK


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *[(b"task", b"task"), (b"task___old", b"task"), (b"task___old___er", b"task___old"), (b"___x", b"___x")],
        *[(b"a____b", b"a____b"), (b"a___", b"a___"), (b"", b""), (b"a___b____c", b"a")],
    ],
)
def test_a_flavor_follows_three_underscores_inside_of_a_name(name: bytes, expected: bytes) -> None:
    assert essential(name) == expected


def test_types_and_enumerators_by_record(kernel: Path, tmp_path: Path) -> None:
    source = """
    typedef unsigned long word_t;
    struct gone { int a; };
    SEC("raw_tp/x") int prog(void *ctx) {
        return __builtin_preserve_type_info(*(struct far *)0, 1) + __builtin_preserve_type_info(*(word_t *)0, 0)
             + __builtin_preserve_type_info(*(struct gone *)0, 0)
             + __builtin_preserve_enum_value(*(enum state *)RUNNING, 1)
             + __builtin_btf_type_id(*(struct other *)0, 1) + __builtin_btf_type_id(*(struct inner *)0, 0);
    }"""
    program = compile_bpf(tmp_path, source)
    assert names(program, "--vmlinux", kernel) == {"struct far", "typedef word_t", "enum state", "struct other"}
    # That there is none is something that the program asked about.
    assert "struct gone" in run(program, "--vmlinux", kernel)
    run(program, "--vmlinux", kernel, "--stamp", tmp_path / "stamp")
    assert "struct gone -\n" in (tmp_path / "stamp").read_text()


def test_externs_are_used(kernel: Path, tmp_path: Path) -> None:
    source = """
    extern struct task *get_task(int pid) SEC(".ksyms");
    extern const struct far queue SEC(".ksyms");
    extern const void address SEC(".ksyms");
    extern int CONFIG_X SEC(".kconfig");
    SEC("raw_tp/x") int prog(unsigned long long *ctx) {
        return get_task(3) == 0 ? queue.z + CONFIG_X + (long)&address : ((struct inner *)ctx)->x;
    }"""
    used = names(compile_bpf(tmp_path, source), "--vmlinux", kernel)
    # A pointer to the task is only passed through: its definition is not needed.
    assert used == {"func get_task", "struct far", "struct inner", "constants state"}


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("tp_btf/switch", {"typedef btf_trace_switch"}),
        *[(f"{kind}/attached", {"func attached"}) for kind in ("fentry", "fexit", "fmod_ret", "?fentry.s")],
        ("fentry/module:attached", {"func attached"}),
        ("lsm/open", {"func bpf_lsm_open"}),
        ("kprobe/attached", set()),
    ],
)
def test_programs_use_what_they_attach_to(kernel: Path, tmp_path: Path, section: str, expected: set[str]) -> None:
    program = compile_bpf(tmp_path, f'SEC("{section}") int prog(struct inner *ctx) {{ return ctx->x; }}')
    assert names(program, "--vmlinux", kernel) == {"struct inner", *expected}


def test_struct_ops_use_the_struct_that_they_implement(kernel: Path, tmp_path: Path) -> None:
    source = """
    struct ops { int (*start)(struct task *, int); } CORE;
    SEC("struct_ops/start") int start(unsigned long long *ctx) { return ((struct inner *)ctx)->x; }
    SEC(".struct_ops") struct ops my_ops = { .start = (void *)start };
    """
    program = compile_bpf(tmp_path, source)
    assert names(program, "--vmlinux", kernel) == {
        *("struct inner", "struct ops", "struct bpf_struct_ops_ops", "constants state"),
    }


def test_what_the_object_holds_itself_leaves_no_record_and_counts(kernel: Path, tmp_path: Path) -> None:
    source = """
    struct event { struct other other; };
    struct { int (*type)[1]; struct far *value; } map SEC(".maps");
    struct event buffer;
    SEC("raw_tp/x") int prog(struct inner *ctx) { return ctx->x; }
    """
    program = compile_bpf(tmp_path, source)
    assert names(program, "--vmlinux", kernel) == {"struct inner", "struct far", "struct other"}


def test_constants_count_by_their_values(kernel: Path, tmp_path: Path, build: Build) -> None:
    program = compile_bpf(
        tmp_path, 'SEC("raw_tp/x") int prog(struct inner *ctx) { return ctx->x == RUNNING ? LIMIT : 0; }'
    )
    assert names(program, "--vmlinux", kernel) == {"struct inner", "constants state", "constants {LIMIT}"}
    assert not changes(build, tmp_path, program, states="STOPPED, RUNNING = 7, ENDED")
    assert changes(build, tmp_path, program, states="STOPPED, RUNNING = 6")
    assert changes(build, tmp_path, program, anonymous="LIMIT = 10")


def test_without_records_all_that_debug_information_defines_counts(kernel: Path, tmp_path: Path) -> None:
    # The same header and access as above, but at the offset that the compiler saw.
    program = compile_bpf(tmp_path, FIELD, "-DCORE=")
    assert names(program, "--vmlinux", kernel) == TASK | {"struct far"}
    # It cannot be seen whether there were fields to record at all, but may be said.
    program = compile_bpf(
        tmp_path, 'SEC("fentry/attached") int prog(void *ctx) { struct task *t = ctx; return t != 0; }'
    )
    assert names(program, "--vmlinux", kernel) == TASK | {"struct far", "func attached"}
    assert names(program, "--vmlinux", kernel, "--core") == {"func attached", "constants state"}
    assert "exclude each other" in run(program, "--vmlinux", kernel, "--core", "--all", status=1)


def test_some_or_all_types_may_be_counted_on_request(kernel: Path, tmp_path: Path) -> None:
    program = compile_bpf(tmp_path, FIELD)
    assert names(program, "--vmlinux", kernel, "--type=other,colour") == TASK | {"struct other", "enum colour"}
    assert names(program, "--vmlinux", kernel, "--all") == TASK | {"struct far"}


def changes(build: Build, tmp_path: Path, program: Path, **parts: str) -> bool:
    """Whether a stamp of the object changes as the kernel does; the stamp's file may move only then."""
    stamp = tmp_path / "changing.stamp"
    run(program, "--vmlinux", make_kernel(build, tmp_path), "--stamp", stamp)
    os.utime(stamp, (1, 1))
    before = stamp.read_bytes(), stamp.stat().st_ino, stamp.stat().st_mtime_ns
    run(program, "--vmlinux", make_kernel(build, tmp_path, **parts), "--stamp", stamp)
    changed = stamp.read_bytes() != before[0]
    assert ((stamp.stat().st_ino, stamp.stat().st_mtime_ns) != before[1:]) == changed
    return changed


@pytest.mark.parametrize("part", ["task", "inner"])
def test_a_stamp_changes_with_a_struct_and_with_one_inside_of_it(build: Build, tmp_path: Path, part: str) -> None:
    assert changes(build, tmp_path, compile_bpf(tmp_path, FIELD), **{part: "int more;"})


@pytest.mark.parametrize("part", ["far", "other", "attached", "ops"])
def test_a_stamp_does_not_change_with_what_is_only_pointed_to_or_elsewhere(
    build: Build, tmp_path: Path, part: str
) -> None:
    more = {"attached": "int a,", "ops": "long"}.get(part, "int more;")
    assert not changes(build, tmp_path, compile_bpf(tmp_path, FIELD), **{part: more})


def test_a_stamp_changes_with_what_a_program_attaches_to(build: Build, tmp_path: Path) -> None:
    program = compile_bpf(tmp_path, 'SEC("fentry/attached") int prog(struct far *ctx) { return ctx->z; }')
    assert changes(build, tmp_path, program, attached="int a,")
    program = compile_bpf(tmp_path, 'SEC("tp_btf/switch") int prog(struct far *ctx) { return ctx->z; }')
    assert changes(build, tmp_path, program, tracepoint="int a,")


def test_a_stamp_changes_with_an_extern_function(build: Build, tmp_path: Path) -> None:
    source = """
    extern struct task *get_task(int pid) SEC(".ksyms");
    SEC("raw_tp/x") int prog(struct far *ctx) { return get_task(ctx->z) != 0; }
    """
    program = compile_bpf(tmp_path, source)
    assert changes(build, tmp_path, program, kfunc=", int flags")
    assert not changes(build, tmp_path, program, task="int more;")


def test_a_stamp_does_not_depend_on_type_ids(kernel: Path, build: Build, tmp_path: Path) -> None:
    program = compile_bpf(tmp_path, FIELD)
    run(program, "--vmlinux", kernel, "--stamp", tmp_path / "one")
    # Other types first, and the same ones in the other order.
    elf = build(["struct first { int a; } first;", KERNEL.format(**PARTS)], name="other")
    run(program, "--vmlinux", elf, "-j2", "--stamp", tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_text().startswith("# btfstep uses 1\nenum state ")


def test_types_of_a_module_and_of_its_base(tmp_path: Path) -> None:
    base = BtfMaker()
    inner = base.struct("inner", 4, [("x", base.integer("int"), 0)])
    module = BtfMaker(base)
    module.struct("task", 8, [("pid", 1, 0), ("in", inner, 32)])
    (tmp_path / "base").write_bytes(base.data())
    (tmp_path / "module").write_bytes(module.data())
    program = compile_bpf(tmp_path, FIELD)
    assert names(program, "--vmlinux", tmp_path / "module", "-B", tmp_path / "base") == {"struct task", "struct inner"}


def test_variables_of_the_kernel(tmp_path: Path) -> None:
    kernel = BtfMaker()
    far = kernel.struct("far", 4, [("z", kernel.integer("int"), 0)])
    kernel.var("queue", kernel.const(far))
    (tmp_path / "kernel").write_bytes(kernel.data())
    source = """
    extern const struct far queue SEC(".ksyms");
    SEC("raw_tp/x") int prog(unsigned long long *ctx) { return queue.z; }
    """
    assert names(compile_bpf(tmp_path, source), "--vmlinux", tmp_path / "kernel") == {"var queue", "struct far"}


def test_several_objects_use_what_each_does(kernel: Path, tmp_path: Path) -> None:
    one = compile_bpf(tmp_path, FIELD, name="one")
    two = compile_bpf(tmp_path, FIELD.replace("task", "other").replace("pid", "y"), name="two")
    assert names(one, two, "--vmlinux", kernel) == TASK | {"struct other"}


def test_big_endian_objects_and_those_without_dwarf(kernel: Path, tmp_path: Path) -> None:
    program = compile_bpf(tmp_path, FIELD, "--target=bpfeb")
    assert names(program, "--vmlinux", kernel) == TASK
    subprocess.run([tool("llvm-strip"), "-g", program], check=True)
    assert names(program, "--vmlinux", kernel) == TASK


def test_a_depfile_names_what_was_read(kernel: Path, tmp_path: Path) -> None:
    compile_bpf(tmp_path, FIELD)
    run("prog.bpf.o", "--vmlinux", "kernel.btf", "--stamp", "stamp", "--depfile", "d", cwd=tmp_path)
    assert (tmp_path / "d").read_text() == "stamp: prog.bpf.o \\\n  kernel.btf\n"
    assert "--depfile needs --stamp" in run("prog.bpf.o", "--depfile", "d", status=1)


def test_an_object_that_is_not_there_yet(kernel: Path, tmp_path: Path) -> None:
    stamp = tmp_path / "stamp"
    assert "missing.o: No such file" in run("missing.o", "--vmlinux", kernel, "--stamp", stamp, status=1)
    run("missing.o", "--missing-ok", "--vmlinux", kernel, "--stamp", stamp)
    assert stamp.read_bytes() == b""
    stamp.write_text("known")
    run("missing.o", "--missing-ok", "--vmlinux", kernel, "--stamp", stamp)
    assert stamp.read_text() == "known"


def test_what_cannot_be_read_leaves_the_stamp(kernel: Path, tmp_path: Path, build: Build) -> None:
    stamp = tmp_path / "stamp"
    stamp.write_text("old")
    elf = build("int x;", name="none")
    assert "none.elf: has no .BTF section" in run(elf, "--vmlinux", kernel, "--stamp", stamp, status=1)
    assert "no BPF object given" in run("--vmlinux", kernel, "--stamp", stamp, status=64)
    program = compile_bpf(tmp_path, FIELD)
    assert "neither an ELF file nor raw BTF" in run(program, "--vmlinux", stamp, "--stamp", stamp, status=1)
    assert "one of them" in run(program, "--vmlinux", kernel, "--stamp", stamp, "--format=json", status=1)
    assert stamp.read_text() == "old"


def ext(
    *, size: int = 16, count: int = 1, offset: int = 0, length: int = 28, header: int = 32, version: int = 1
) -> bytes:
    """A ``.BTF.ext`` with a CO-RE record about type 1, true or not."""
    start = pack("<HBBIIIIIII", 0xEB9F, version, 0, header, 0, 0, 0, 0, offset, length)
    return start + pack("<IIIIIII", size, 1, count, 0, 1, 1, 0)


def test_core_records() -> None:
    assert list(core_records(ext(), "f")) == [(1, "byte_off")]
    assert list(core_records(ext(length=0), "f")) == []
    # Before there were CO-RE records, the header ended sooner.
    assert list(core_records(ext(header=24), "f")) == []
    # Later ones may be longer.
    assert list(core_records(ext(size=20, length=32) + bytes(4), "f")) == [(1, "byte_off")]
    assert list(core_records(ext()[:-4] + b"\x63\0\0\0", "f")) == [(1, "kind 99")]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "0 bytes, less than a header"),
        (b"no BTF at all", "does not start with the magic number"),
        (ext(version=2), "version 2; only 1 is known"),
        (ext(header=99), "header of 99 bytes in 60"),
        (ext(offset=4), r".BTF.ext\+0x24: CO-RE records of 28 bytes run past the end"),
        (ext(length=2), "2 bytes are no CO-RE records"),
        (ext(size=12), "CO-RE records of 12 bytes each"),
        (ext(size=18), "CO-RE records of 18 bytes each"),
        (ext(count=2), "2 CO-RE records, with 16 bytes left"),
        (ext(count=1 << 31), "2147483648 CO-RE records"),
        (ext(length=8), "4 bytes left, which name no section"),
    ],
)
def test_malformed_core_records(data: bytes, complaint: str) -> None:
    with pytest.raises(btfstep.FormatError, match=complaint):
        list(core_records(data, "f"))


@pytest.fixture(scope="module")
def object_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An object with something of everything, without DWARF."""
    folder = tmp_path_factory.mktemp("object")
    source = """
    extern struct task *get_task(int pid) SEC(".ksyms");
    struct ops { int (*start)(struct task *, int); } CORE;
    SEC("tp_btf/switch") int prog(struct far *ctx) { return get_task(ctx->z) != 0; }
    SEC(".struct_ops") struct ops my_ops;
    struct { int (*type)[1]; struct far *value; } map SEC(".maps");
    """
    path = compile_bpf(folder, source)
    subprocess.run([tool("llvm-strip"), "-g", path], check=True)
    return path.read_bytes()


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_object_is_an_error_or_used_as_it_is(
    object_bytes: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    kernel = BtfMaker()
    kernel.struct("far", 4, [("z", kernel.integer("int"), 0)])
    damaged = bytearray(object_bytes)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.o"
    path.write_bytes(damaged)
    needs = Needs()
    complaint = None
    try:
        needs.add(str(path))
    except btfstep.BtfstepError as error:
        complaint = str(error)
    if complaint is not None:
        assert str(path) in complaint
        return
    assert stamp(uses(needs, BtfReader(kernel.data()))).startswith(b"# btfstep uses 1\n")


def test_a_kernel_of_types_without_end(tmp_path: Path) -> None:
    kernel = BtfMaker()
    kernel.struct("task", 8, [("p", kernel.next_id + 1, 0)])
    kernel.ptr(kernel.next_id)
    (tmp_path / "kernel").write_bytes(kernel.data())
    program = compile_bpf(tmp_path, FIELD)
    assert "kernel: type [2]: reference cycle" in run(program, "--vmlinux", tmp_path / "kernel", status=1)
    # Each holds the one before it twice; all are looked at once.
    kernel = BtfMaker()
    inner = kernel.integer("int")
    for _ in range(200):
        inner = kernel.struct("", 8, [("a", inner, 0), ("b", inner, 32)])
    kernel.struct("task", 8, [("in", inner, 0)])
    (tmp_path / "kernel").write_bytes(kernel.data())
    assert names(program, "--vmlinux", tmp_path / "kernel") == {"struct task"}


def test_digests_are_those_of_this_version_of_stamps(tmp_path: Path) -> None:
    # If this fails for a good reason, the number in the first line of stamps has to change.
    kernel = BtfMaker()
    state = kernel.enum("state", [("RUNNING", 7)])
    kernel.struct("task", 8, [("pid", kernel.integer("int"), 0), ("state", state, 32, 3)])
    (tmp_path / "kernel").write_bytes(kernel.data())
    run(compile_bpf(tmp_path, FIELD), "--vmlinux", tmp_path / "kernel", "--stamp", tmp_path / "stamp")
    assert (tmp_path / "stamp").read_text() == (
        "# btfstep uses 1\nenum state 4a7fb2f0b5c097e6\nint int d08846e96cdb0360\nstruct task dd3e96dd7ab52f39\n"
    )


def test_names_that_are_no_text(tmp_path: Path) -> None:
    kernel = BtfMaker()
    kernel.struct("task", 4, [("in", kernel.struct("a\nb \udcff", 4), 0)])
    (tmp_path / "kernel").write_bytes(kernel.data())
    program = compile_bpf(tmp_path, FIELD)
    run(program, "--vmlinux", tmp_path / "kernel", "--stamp", tmp_path / "stamp")
    lines = (tmp_path / "stamp").read_text().splitlines()
    assert [line.rpartition(" ")[0] for line in lines[1:]] == ["struct a\\nb \\udcff", "struct task"]


def test_every_type_that_libbpf_would_need_is_used(kernel: Path, tmp_path: Path, bpftool: str) -> None:
    source = """
    struct task___old { int pid; struct far *far; } CORE;
    SEC("raw_tp/x") int prog(unsigned long long *ctx) {
        struct task *task = (void *)ctx[0];
        return task->in.x + task->far->z + ((struct task___old *)task)->far->z
             + __builtin_preserve_enum_value(*(enum state *)RUNNING, 1)
             + __builtin_preserve_type_info(*(struct other *)0, 0);
    }"""
    program = compile_bpf(tmp_path, source)
    subprocess.run([bpftool, "gen", "min_core_btf", kernel, tmp_path / "min", program], check=True)
    needed = {
        f"{entry.kind} {entry.name}"
        for entry in btfstep.open_btf(tmp_path / "min")
        if entry.name and entry.kind in ("struct", "union", "enum") and (entry.members or entry.enumerators)
    }
    assert needed
    assert needed <= names(program, "--vmlinux", kernel)


def test_help_names_every_option() -> None:
    text = run("--help")
    for option in (
        "--vmlinux",
        "--stamp",
        "--base",
        "--type",
        "--all",
        "--core",
        "--missing-ok",
        "--format",
        "--depfile",
    ):
        assert option in text
