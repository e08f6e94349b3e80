# SPDX-License-Identifier: GPL-2.0-only
"""The C text of types: what makes it hard, case by case, against the text and against bpftool."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from btfmaker import BtfMaker
from btfstep.btf.cdump import CDumper
from btfstep.btf.load import load
from btfstep.btf.reader import BtfReader
from btfstep.errors import FormatError
from conftest import tool


def body(maker: BtfMaker, *, sort: bool = False) -> str:
    """What a header has between its first and its last lines."""
    text = CDumper(BtfReader(maker.data(), address_size=8)).header(sort=sort).decode()
    start = text.index("#endif\n#endif\n\n") + len("#endif\n#endif\n\n")
    return text[start : text.index("\n/* BPF kfuncs */")]


def basic() -> tuple[BtfMaker, int, int, int]:
    """A maker with char, int and long."""
    maker = BtfMaker()
    return maker, maker.integer("char", 1), maker.integer("int", 4), maker.integer("long", 8)


Case = Callable[[], tuple[BtfMaker, str]]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


@case
def natural_padding_is_left_to_the_compiler() -> tuple[BtfMaker, str]:
    maker, char, integer, long = basic()
    maker.struct("s", 16, [("c", char, 0), ("i", integer, 32), ("l", long, 64)])
    return maker, "struct s {\n\tchar c;\n\tint i;\n\tlong l;\n};\n\n"


@case
def explicit_alignment_is_padded() -> tuple[BtfMaker, str]:
    maker, char, integer, _ = basic()
    maker.struct("s", 64, [("c", char, 0), ("i", integer, 128)])
    return maker, (
        "struct s {\n\tchar c;\n\tlong: 64;\n\tint i;\n"
        "\tlong: 64;\n\tlong: 64;\n\tlong: 64;\n\tlong: 64;\n\tlong: 64;\n};\n\n"
    )


@case
def bitfields_around_padding() -> tuple[BtfMaker, str]:
    maker, _, integer, _ = basic()
    maker.struct("s", 12, [("a", integer, 0, 3), ("b", integer, 8, 4), ("c", integer, 40, 8), ("d", integer, 64)])
    return maker, (
        "struct s {\n\tint a: 3;\n\tchar: 5;\n\tint b: 4;\n\tint: 20;\n\tchar: 8;\n\tint c: 8;\n\tint d;\n};\n\n"
    )


@case
def packed_structs_say_so() -> tuple[BtfMaker, str]:
    maker, char, integer, _ = basic()
    maker.struct("s", 5, [("c", char, 0), ("i", integer, 8)])
    maker.struct("odd_size", 6, [("i", integer, 0), ("c", char, 32)])
    return maker, (
        "struct s {\n\tchar c;\n\tint i;\n} __attribute__((packed));\n\n"
        "struct odd_size {\n\tint i;\n\tchar c;\n\tshort: 0;\n} __attribute__((packed));\n\n"
    )


@case
def tags_of_one_name_get_numbers() -> tuple[BtfMaker, str]:
    maker, char, integer, _ = basic()
    maker.struct("s", 4, [("i", integer, 0)])
    maker.struct("s", 1, [("c", char, 0)])
    maker.union("s", 1, [("c", char, 0)])
    return maker, ("struct s {\n\tint i;\n};\n\nstruct s___2 {\n\tchar c;\n};\n\nunion s___3 {\n\tchar c;\n};\n\n")


@case
def typedefs_and_enumerators_share_a_name_space() -> tuple[BtfMaker, str]:
    maker, _, integer, _ = basic()
    maker.typedef("x", integer)
    maker.enum("x", [("x", 1), ("y", 2)])
    maker.enum("", [("x", 3)])
    return maker, ("typedef int x;\n\nenum x {\n\tx___2 = 1,\n\ty = 2,\n};\n\nenum {\n\tx___3 = 3,\n};\n\n")


@case
def pointers_need_only_a_declaration() -> tuple[BtfMaker, str]:
    maker, *_ = basic()
    first, second = maker.next_id, maker.next_id + 1
    maker.struct("a", 8, [("b", maker.next_id + 2, 0)])
    maker.struct("b", 16, [("a", first + 3, 0), ("self", first + 2, 64)])
    maker.ptr(second)
    maker.ptr(first)
    return maker, (
        "struct b;\n\nstruct a {\n\tstruct b *b;\n};\n\nstruct b {\n\tstruct a *a;\n\tstruct b *self;\n};\n\n"
    )


@case
def embedded_structs_come_first() -> tuple[BtfMaker, str]:
    maker, _, integer, _ = basic()
    maker.struct("outer", 4, [("in", maker.next_id + 1, 0)])
    maker.struct("inner", 4, [("i", integer, 0)])
    return maker, "struct inner {\n\tint i;\n};\n\nstruct outer {\n\tstruct inner in;\n};\n\n"


@case
def forward_types_are_declared_once() -> tuple[BtfMaker, str]:
    maker, *_ = basic()
    maker.ptr(maker.fwd("far"))
    maker.fwd("away", union=True)
    return maker, "struct far;\n\nunion away;\n\n"


@case
def anonymous_types_are_written_where_they_are() -> tuple[BtfMaker, str]:
    maker, char, integer, _ = basic()
    inner = maker.struct("", 4, [("i", integer, 0)])
    union = maker.union("", 4, [("", inner, 0), ("c", char, 0)])
    enum = maker.enum("", [("E", 5)])
    maker.struct("s", 8, [("", union, 0), ("e", enum, 32)])
    return maker, (
        "struct s {\n\tunion {\n\t\tstruct {\n\t\t\tint i;\n\t\t};\n\t\tchar c;\n\t};\n"
        "\tenum {\n\t\tE = 5,\n\t} e;\n};\n\n"
    )


@case
def arrays_and_function_pointers() -> tuple[BtfMaker, str]:
    maker, char, integer, _ = basic()
    grid = maker.array(maker.array(integer, 3, integer), 2, integer)
    callback = maker.ptr(maker.func_proto(0, [("n", integer), ("", maker.ptr(char))]))
    table = maker.array(callback, 4, integer)
    to_array = maker.ptr(maker.array(integer, 5, integer))
    returning = maker.ptr(maker.func_proto(callback, [("", 0)]))
    members = [(grid, 192), (table, 256), (to_array, 64), (returning, 64)]
    at, placed = 0, []
    for name, (member, size) in zip("gtar", members, strict=True):
        placed.append((name, member, at))
        at += size
    maker.struct("s", at // 8, placed)
    return maker, (
        "struct s {\n\tint g[2][3];\n\tvoid (*t[4])(int n, char *);\n\tint (*a)[5];\n"
        "\tvoid (* (*r)(void))(int n, char *);\n};\n\n"
    )


@case
def variable_arguments() -> tuple[BtfMaker, str]:
    maker, char, integer, _ = basic()
    prototype = maker.func_proto(integer, [("fmt", maker.ptr(maker.const(char))), ("", 0)])
    maker.typedef("printer", maker.ptr(prototype))
    maker.typedef("nothing", prototype - 1)
    return maker, "typedef int (*printer)(const char *fmt, ...);\n\ntypedef const char *nothing;\n\n"


@case
def qualifiers_in_every_position() -> tuple[BtfMaker, str]:
    maker, char, _, _ = basic()
    both = maker.const(maker.volatile(char))
    pointer = maker.restrict(maker.const(maker.ptr(both)))
    maker.typedef("p", pointer)
    maker.typedef("array", maker.const(maker.array(maker.const(char), 2, char)))
    maker.typedef("f", maker.ptr(maker.volatile(maker.func_proto(0))))
    return maker, (
        "typedef volatile const char * const restrict p;\n\ntypedef const char array[2];\n\n"
        "typedef void (*f)(void);\n\n"
    )


@case
def enumerations_of_every_size() -> tuple[BtfMaker, str]:
    maker = BtfMaker()
    maker.enum("s", [("N", -1), ("M", -(1 << 31))], signed=True)
    maker.enum("u", [("U", -1)])
    maker.enum("b", [("B", 1)], 1)
    maker.enum("w", [("W", 1)], 8)
    maker.enum64("l", [("L", -1), ("K", 1 << 40)], signed=True)
    maker.enum64("h", [("H", -1)])
    maker.enum64("small", [("S", 1)])
    maker.enum("declared", [])
    return maker, (
        "enum s {\n\tN = -1,\n\tM = -2147483648,\n};\n\nenum u {\n\tU = 4294967295,\n};\n\n"
        "enum b {\n\tB = 1,\n} __attribute__((mode(byte)));\n\n"
        "enum w {\n\tW = 1,\n} __attribute__((mode(word)));\n\n"
        "enum l {\n\tL = -1LL,\n\tK = 1099511627776LL,\n};\n\n"
        "enum h {\n\tH = 18446744073709551615ULL,\n};\n\n"
        "enum small {\n\tS = 1ULL,\n} __attribute__((mode(word)));\n\nenum declared;\n\n"
    )


@case
def type_tags_and_attributes() -> tuple[BtfMaker, str]:
    maker, char, _, _ = basic()
    maker.typedef("p", maker.ptr(maker.type_tag("user", char)))
    maker.typedef("q", maker.ptr(maker.type_tag("address_space(1)", char, attribute=True)))
    return maker, (
        'typedef char __attribute__((btf_type_tag("user"))) *p;\n\n'
        "typedef char __attribute__((address_space(1))) *q;\n\n"
    )


@case
def floats_and_wide_integers() -> tuple[BtfMaker, str]:
    maker, char, *_ = basic()
    wide = maker.integer("__int128", 16)
    double = maker.floating("double", 8)
    maker.struct("s", 48, [("c", char, 0), ("w", wide, 128), ("d", double, 256)])
    return maker, "struct s {\n\tchar c;\n\tlong: 64;\n\t__int128 w;\n\tdouble d;\n\tlong: 64;\n};\n\n"


@case
def empty_and_flexible() -> tuple[BtfMaker, str]:
    maker, char, integer, _ = basic()
    empty = maker.struct("empty", 0)
    maker.struct("s", 4, [("n", integer, 0), ("e", empty, 32), ("rest", maker.array(char, 0, integer), 32)])
    maker.struct("hollow", 8)
    return maker, (
        "struct empty {};\n\nstruct s {\n\tint n;\n\tstruct empty e;\n\tchar rest[0];\n};\n\n"
        "struct hollow {\n\tlong: 64;\n};\n\n"
    )


@case
def compilers_own_types() -> tuple[BtfMaker, str]:
    maker, char, *_ = basic()
    builtin = maker.typedef("__builtin_va_list", maker.ptr(char))
    maker.typedef("va_list", builtin)
    maker.typedef("__gnuc_va_list", 0)
    poly = maker.integer("__Poly8_t", 1)
    maker.struct("vector", 1, [("p", poly, 0)])
    return maker, (
        "typedef __builtin_va_list va_list;\n\ntypedef __builtin_va_list __gnuc_va_list;\n\n"
        "typedef unsigned char __Poly8_t;\n\nstruct vector {\n\t__Poly8_t p;\n};\n\n"
    )


@pytest.mark.parametrize("name", CASES)
def test_text(name: str) -> None:
    maker, expected = CASES[name]()
    assert body(maker) == expected


def outputs(bpftool: str, path: Path, *arguments: str) -> bytes:
    done = subprocess.run([bpftool, "btf", "dump", "file", path, *arguments], capture_output=True, check=True)
    return done.stdout


@pytest.mark.parametrize("name", CASES)
def test_bpftool_agrees(name: str, bpftool: str, tmp_path: Path) -> None:
    maker, _ = CASES[name]()
    path = tmp_path / "case.btf"
    path.write_bytes(maker.data())
    reader = BtfReader(maker.data())
    assert CDumper(reader).header() == outputs(bpftool, path, "format", "c")
    assert CDumper(reader).header(sort=False) == outputs(bpftool, path, "format", "c", "unsorted")
    roots = [type_id for type_id in (4, 5, 6) if type_id < len(reader)]
    words = [word for root in roots for word in ("root_id", str(root))]
    assert CDumper(reader).header(roots=roots) == outputs(bpftool, path, "format", "c", *words)


def test_sorted_by_rank_and_name() -> None:
    maker, _, integer, _ = basic()
    maker.typedef("z_of_int", integer)
    maker.struct("b", 4, [("i", integer, 0)])
    maker.struct("a", 4, [("i", integer, 0)])
    maker.enum("c", [("C", 0)])
    maker.enum("", [("A", 0)])
    maker.enum("", [("B", 0)])
    # The first in order starts nothing, as in bpftool: here that is the enumeration of A.
    order = [body(maker, sort=True).index(word) for word in ("B = 0", "enum c", "z_of_int", "struct a", "struct b")]
    assert order == sorted(order)
    assert "A = 0" not in body(maker, sort=True)
    assert "A = 0" in body(maker)


def test_types_of_one_name_are_ordered_by_their_members() -> None:
    def header(first: str, second: str) -> str:
        maker, _, integer, _ = basic()
        maker.enum("", [("FIRST", 0)])
        maker.struct("s", 4, [(first, integer, 0)])
        maker.struct("s", 4, [(second, integer, 0)])
        return body(maker, sort=True)

    assert header("one", "two") == header("two", "one")


def test_kfuncs_have_prototypes() -> None:
    maker, _, integer, _ = basic()
    for name in ("second", "first"):
        function = maker.func(name, maker.func_proto(integer, [("x", integer)]))
        maker.decl_tag("bpf_kfunc", function)
    maker.decl_tag("bpf_fastcall", function)
    maker.func("other", maker.func_proto(0))
    text = CDumper(BtfReader(maker.data())).header().decode()
    assert (
        "\n/* BPF kfuncs */\n#ifndef BPF_NO_KFUNC_PROTOTYPES\n"
        "extern __bpf_fastcall int first(int x) __weak __ksym;\n"
        "extern int second(int x) __weak __ksym;\n#endif\n\n"
    ) in text
    assert "other" not in text


class TestExcerpt:
    """The header of a few types: cut out of the whole one."""

    def make(self) -> BtfMaker:
        maker, _, integer, _ = basic()
        maker.struct("s", 4, [("unwanted", integer, 0)])
        maker.struct("s", 8, [("p", maker.next_id + 1, 0)])  # s___2
        maker.ptr(maker.next_id + 2)
        maker.struct("far", 8, [("big", maker.integer("long long", 8), 0)])
        maker.typedef("s_t", 5)
        maker.struct("user", 8, [("s", maker.next_id - 1, 0)])
        return maker

    def test_names_are_those_of_the_whole(self) -> None:
        reader = BtfReader(self.make().data())
        text = CDumper(reader).excerpt(reader.find(b"user"), sort=False).decode()
        assert text.endswith("#endif /* __VMLINUX_H__ */\n")
        assert (
            "struct far;\n\nstruct s___2 {\n\tstruct far *p;\n};\n\ntypedef struct s___2 s_t;\n\n"
            "struct user {\n\ts_t s;\n};\n\n#ifndef"
        ) in text
        assert "unwanted" not in text
        assert "kfuncs" not in text

    def test_all_types_are_the_whole(self) -> None:
        for make, _ in (CASES[name]() for name in CASES):
            reader = BtfReader(make.data())
            for sort in (True, False):
                whole = set(CDumper(reader).header(sort=sort).split(b"\n\n"))
                some = set(CDumper(reader).excerpt(range(1, len(reader)), sort=sort).split(b"\n\n"))
                assert some - whole <= {b""}

    def test_a_kfunc_brings_its_prototype(self) -> None:
        maker = self.make()
        function = maker.func("work", maker.func_proto(0, [("u", maker.ptr(maker.next_id - 1))]))
        maker.decl_tag("bpf_kfunc", function)
        text = CDumper(BtfReader(maker.data())).excerpt([function]).decode()
        assert "struct user;\n\n\n/* BPF kfuncs */" in text
        assert "extern void work(struct user *u) __weak __ksym;\n" in text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda maker: maker.ptr(1), r"type \[1\]: reference cycle"),
        (lambda maker: maker.typedef("t", 1), r"type \[1\]: reference cycle"),
        (lambda maker: maker.const(maker.volatile(1) - 1), r"type \[\d\]: reference cycle"),
        (lambda maker: maker.array(1, 2), r"type \[1\]: reference cycle"),
        (lambda maker: maker.struct("s", 4, [("s", 1, 0)]), r"type \[1\]: contains itself"),
        (lambda maker: maker.struct("", 8, [("p", maker.ptr(2) + 1, 0)]), r"type \[2\]: contains itself"),
        (lambda maker: maker.func_proto(1), r"type \[1\]: contains itself"),
        (lambda maker: maker.struct("s", 1 << 31, []), r"type \[1\]: text of more than \d+ MiB"),
    ],
)
def test_what_c_cannot_say_is_an_error(make: Callable[[BtfMaker], object], message: str) -> None:
    maker = BtfMaker()
    make(maker)
    maker.enum("", [("FIRST", 0)])  # see test_sorted_by_rank_and_name
    with pytest.raises(FormatError, match=message):
        CDumper(BtfReader(maker.data())).header()
    with pytest.raises(FormatError, match=message):
        CDumper(BtfReader(maker.data())).header(sort=False)


def test_types_that_double_at_each_level_are_an_error() -> None:
    maker = BtfMaker()
    inner = maker.integer("int")
    for _ in range(60):
        inner = maker.struct("", 4, [("a", inner, 0), ("b", inner, 0)])
    maker.struct("s", 4, [("x", inner, 0)])
    with pytest.raises(FormatError, match=r"type \[\d+\]: (types share|text of more)"):
        CDumper(BtfReader(maker.data())).header()


def test_nesting_has_a_bound() -> None:
    maker = BtfMaker()
    inner = maker.integer("int")
    for _ in range(100_000):
        inner = maker.struct("", 4, [("a", inner, 0)])
    maker.struct("s", 4, [("a", inner, 0)])
    maker.struct("t", 4, [("a", inner, 0)])
    with pytest.raises(FormatError, match=r"type \[\d+\]: contains itself, or is inside more than 1024 others"):
        CDumper(BtfReader(maker.data())).header()


SOURCE = r"""
#include <stddef.h>
struct list { struct list *next, **prev; };
struct aligned { char c; struct list l __attribute__((aligned(64))); int tail; };
struct bits { unsigned a:3, :5, b:7; long long c:40; char d; unsigned e:1; };
struct packed { char c; long l; short s; } __attribute__((packed));
struct holder { char c; struct packed p; union { int i; struct { char x, y; }; } u[3]; };
struct ops { int (*call)(struct ops *, const char *, ...); void (*table[3])(int); int (*(*get)(void))(long); };
typedef struct { int n; char data[]; } flexible;
enum level { LOW = -5, HIGH = 7 };
struct user { enum level level; flexible *f; volatile const int *restrict q; char grid[2][3]; };
struct aligned a; struct bits b; struct holder h; struct ops o; struct user u;
"""
STRUCTS = ("list", "aligned", "bits", "packed", "holder", "ops", "user")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    clang = tool("clang")
    folder = tmp_path_factory.mktemp("bpf")
    (folder / "source.c").write_text(SOURCE)
    command = [clang, "--target=bpf", "-g", "-O2", "-c", "source.c", "-o", "source.o"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"clang does not make BPF objects: {done.stderr.splitlines()[:1]}")
    return folder / "source.o"


@pytest.mark.parametrize("command", [["clang", "--target=bpf"], ["clang"], ["gcc"]])
def test_what_was_compiled_compiles_again_to_the_same_sizes(compiled: Path, command: list[str], tmp_path: Path) -> None:
    tool(command[0])
    reader = load(str(compiled))
    (tmp_path / "vmlinux.h").write_bytes(CDumper(reader).header())
    checks = ['#include "vmlinux.h"']
    for name in STRUCTS:
        (found,) = [type_id for type_id in reader.find(name.encode()) if reader.kind(type_id) == 4]
        checks.append(f'_Static_assert(sizeof(struct {name}) == {reader.record(found)[4]}, "{name}");')
    (tmp_path / "check.c").write_text("\n".join(checks) + "\n")
    done = subprocess.run(
        [*command, "-g", "-O2", "-c", "check.c", "-o", "check.o"], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_bpftool_agrees_on_what_was_compiled(compiled: Path, bpftool: str) -> None:
    assert CDumper(load(str(compiled))).header() == outputs(bpftool, compiled, "format", "c")
