# SPDX-License-Identifier: GPL-2.0-only
"""Small C sources, and the BTF that comes of them.

``tests/cases/*.c`` hold sources with what they become beside them, in comments
(types are spelled as `btfview` spells them)::

    //= LINE            there is such a line with the default features
    //=2 LINE           as often as that; 0: none that starts so
    //=1 [LIST] LINE    the same with these features
    //---               here another unit begins
    //: compilers clang   only this compiler knows what the case is about

``@*`` stands for any offset.  Where the reference is present, each case also
has to give the reference's bytes, feature list by feature list.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

import btfstep
from btfstep.cli import main
from btfstep.elf.image import ElfImage
from btfstep.encode.settings import EncodeSettings
from btfview import view
from conftest import LINK, Build, tool

CASES = Path(__file__).parent / "cases"

DWARF = ("-gdwarf-4", "-gdwarf-5")

FEATURES = ("", "default", "default,global_var", "default,true_signature", "default,attributes", "all")

# A vmlinux keeps per-CPU data by itself; the linker's own script would not.
# As in a kernel: per-CPU variables are at 0, and BTF is loaded, and comes before them.
LOADED = """
__asm__(".pushsection .BTF, \\"a\\"; .zero 64; .popsection");
#define PER_CPU __attribute__((section(".data..percpu")))
struct state { int runs; } first PER_CPU, state PER_CPU;
struct state *current_state(void) { return &state; }
"""
PERCPU = "SECTIONS { .data..percpu : { *(.data..percpu) } } INSERT AFTER .data;\n"

# gcc's names of integers, and clang's.
_SPELLINGS = {
    "long long unsigned int": "unsigned long long",
    "long unsigned int": "unsigned long",
    "short unsigned int": "unsigned short",
    "__int128 unsigned": "unsigned __int128",
    "long long int": "long long",
    "long int": "long",
    "short int": "short",
}
_SPELLING = re.compile("|".join(rf"\b{name}\b" for name in _SPELLINGS))


@dataclass(frozen=True)
class Expectation:
    """One of a case's comments."""

    count: int | None
    features: str
    text: str

    def check(self, lines: list[str]) -> None:
        found = [line for line in lines if (line.startswith(self.text) if self.count == 0 else line == self.text)]
        assert len(found) == self.count if self.count is not None else found, "\n".join(
            [self.text, "is not in", *lines]
        )


@dataclass(frozen=True)
class Case:
    """One file of tests/cases."""

    name: str
    units: list[str]
    compilers: list[str]
    expected: list[Expectation]

    @classmethod
    def read(cls, path: Path) -> Case:
        text = path.read_text()
        compilers = re.search(r"^//: compilers (.*)$", text, re.MULTILINE)
        return cls(
            name=path.stem,
            units=re.split(r"^//---$", text, flags=re.MULTILINE),
            compilers=compilers[1].split() if compilers else ["gcc", "clang"],
            expected=[
                Expectation(int(count) if count else None, features or "default", line)
                for count, features, line in re.findall(r"^//=(\d*)(?: \[(.*?)\])? (.*)$", text, re.MULTILINE)
            ],
        )


ALL = [Case.read(path) for path in sorted(CASES.glob("*.c"))]
BY_COMPILER = [
    pytest.param(case, compiler, id=f"{case.name}-{compiler}") for case in ALL for compiler in case.compilers
]


def lines_of(data: bytes) -> list[str]:
    """What `data` says, whatever compiler named the types."""
    return [
        re.sub(r"^(var .* in [^ ]+) @\d+", r"\1 @*", _SPELLING.sub(lambda match: _SPELLINGS[match[0]], line))
        for line in view(data)
    ]


def check(case: Case, path: Path) -> None:
    """Compare what `path` becomes with the comments of the case."""
    for features in {one.features for one in case.expected}:
        lines = lines_of(btfstep.encode(path, features=features))
        for one in case.expected:
            if one.features == features:
                one.check(lines)


@pytest.fixture
def build_case(build: Build, tmp_path: Path) -> Callable[..., Path]:
    """``build_case(case, *flags, cc="gcc")``: build as `build` does, with per-CPU data in a section of its own."""
    (tmp_path / "percpu.lds").write_text(PERCPU)

    def build_units(case: Case, *flags: str, cc: str = "gcc") -> Path:
        return build(case.units, "-w", *flags, "-Wl,-T,percpu.lds", cc=cc, name=case.name)

    return build_units


@pytest.fixture
def same_as_reference(reference: str, tmp_path: Path) -> Callable[..., None]:
    """``same_as_reference(path, features...)``: the reference writes the bytes that btfstep gives."""

    def compare(path: Path, features: Iterable[str] = FEATURES) -> None:
        for one in features:
            output = tmp_path / "reference.btf"
            output.unlink(missing_ok=True)
            command = [reference, "-J", "-j1", f"--btf_features={one}", f"--btf_encode_detached={output}", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            assert output.exists(), done.stderr
            ours, theirs = btfstep.encode(path, features=one), output.read_bytes()
            if ours != theirs:
                assert view(ours) == view(theirs), f"with features {one!r}"
                raise AssertionError(f"same lines, but other bytes, with features {one!r}")

    return compare


def accepts(cc: str, *flags: str) -> bool:
    """Whether a compiler knows these options and has what they need."""
    command = [tool(cc), *flags, *LINK, "-x", "c", "-", "-o", "/dev/null"]
    return subprocess.run(command, input="int x;", text=True, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("dwarf", DWARF)
@pytest.mark.parametrize(("case", "cc"), BY_COMPILER)
def test_a_case_says_what_its_comments_say(case: Case, cc: str, dwarf: str, build_case: Callable[..., Path]) -> None:
    check(case, build_case(case, dwarf, cc=cc))


@pytest.mark.parametrize("dwarf", DWARF)
@pytest.mark.parametrize(("case", "cc"), BY_COMPILER)
def test_a_case_gives_the_bytes_of_the_reference(
    case: Case, cc: str, dwarf: str, build_case: Callable[..., Path], same_as_reference: Callable[..., None]
) -> None:
    same_as_reference(build_case(case, dwarf, cc=cc))


# Ways to say the same in DWARF, and other optimizations: (compiler, options, do the comments hold, cases).
LAYOUT = ("aggregates", "bitfields", "enums", "numbers", "pointers", "units")
CODE = ("functions", "inlined", "twice", "variables")
FEW = ("functions", "units")
WAYS = [
    ("gcc", "-gdwarf-3 -gstrict-dwarf", False, LAYOUT),  # bit fields by DW_AT_bit_offset; no types of enumerations
    ("clang", "-gdwarf-3", True, LAYOUT),
    ("gcc", "-O0", False, CODE),
    ("gcc", "-O1", False, CODE),
    ("gcc", "-O3", False, CODE),
    ("gcc", "-Os", False, CODE),
    ("clang", "-O3", False, CODE),
    ("gcc", "-flto", False, (*LAYOUT, *CODE)),  # references between units
    ("gcc", "-gdwarf64", True, FEW),
    ("gcc", "-gz=zlib", True, FEW),
    ("gcc", "-gz=zlib-gnu", True, FEW),
    ("gcc", "-gz=zstd", True, FEW),
    ("clang", "-fdebug-types-section", True, FEW),
    ("gcc", "-ffunction-sections -fdata-sections", True, FEW),
]


@pytest.mark.parametrize(
    ("case", "cc", "flags", "exact"),
    [
        pytest.param(case, cc, flags, exact, id=f"{case.name}-{cc}{flags.replace(' ', '')}")
        for cc, flags, exact, names in WAYS
        for case in ALL
        if case.name in names
    ],
)
def test_other_ways_to_compile(
    case: Case, cc: str, flags: str, exact: bool, build_case: Callable[..., Path], request: pytest.FixtureRequest
) -> None:
    """The comments where they have to hold; the reference's bytes everywhere."""
    if not accepts(cc, *flags.split()):
        pytest.skip(f"{cc} does not take {flags}")
    path = build_case(case, *flags.split(), cc=cc)
    if exact:
        check(case, path)
    else:
        assert view(btfstep.encode(path))
    request.getfixturevalue("same_as_reference")(path, ("", "all"))


# Another word size, byte order, number of argument registers. True: as large as on x86-64.
MACHINES = [
    ("aarch64-linux-gnu-gcc", True),
    ("s390x-linux-gnu-gcc", True),
    ("powerpc64-linux-gnu-gcc", True),
    ("powerpc64le-linux-gnu-gcc", True),
    ("riscv64-linux-gnu-gcc", True),
    ("i686-linux-gnu-gcc", False),
    ("arm-linux-gnueabihf-gcc", False),
    ("mips-linux-gnu-gcc", False),
]


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name) for case in ALL if case.name in (*LAYOUT, "functions", "kfuncs", "variables")],
)
@pytest.mark.parametrize(("cc", "same_sizes"), MACHINES)
def test_other_machines(
    case: Case, cc: str, same_sizes: bool, build_case: Callable[..., Path], request: pytest.FixtureRequest
) -> None:
    path = build_case(case, cc=cc)
    if same_sizes and case.name in ("aggregates", "pointers", "units"):
        check(case, path)
    request.getfixturevalue("same_as_reference")(path, ("", "all"))


def test_bit_fields_on_a_big_endian_machine(build: Build) -> None:
    """They count from the most significant bit, in both styles."""
    source = "struct s { char c; unsigned a : 3; int b : 7; unsigned long d : 40; } s;"
    for dwarf in (("-gdwarf-5",), ("-gdwarf-3", "-gstrict-dwarf")):
        path = build(source, *dwarf, cc="s390x-linux-gnu-gcc")
        line = "struct s { char c @0; unsigned int a:3 @8; int b:7 @11; unsigned long d:40 @18 } size 8"
        assert line in lines_of(btfstep.encode(path))


# Enumerations that units define differently. Those are rare enough to have cases of their own.

KEEP = "-fno-eliminate-unused-debug-types"


@pytest.mark.xfail(reason="structs of merged units are compared by what they were merged with", strict=True)
def test_a_struct_is_compared_with_what_its_own_unit_says(build: Build, gcc: str) -> None:
    """The second unit's `b` refers to that unit's `a`, in which the enumeration is only declared and fits any."""
    units = [
        "enum e { A = 2 }; struct a { enum e *e; struct b *b; } a1; enum e e1;",
        "enum e; struct b { struct a *a; } b2; struct a { enum e *e; struct b *b; } a2;",
        "enum e { A = 0 }; struct b { struct a *a; } b3; struct a { enum e *e; struct b *b; } a3; enum e e3;",
    ]
    lines = view(btfstep.encode(build(units, "-O0", KEEP, cc=gcc)))
    assert len([line for line in lines if line.startswith("struct")]) == 2


@pytest.mark.xfail(reason="prototypes are compared after declarations have met their definitions", strict=True)
def test_prototypes_are_compared_as_each_unit_has_them(build: Build) -> None:
    """Where an enumeration is only declared, it is a narrow one."""
    wide = [
        "enum e; int f(enum e *p) { return p != 0; } int last(void) { return 1; }",
        "enum e { B = 1ULL << 40 }; static inline int f(enum e *p) { return *p; } int b(enum e *p) { return f(p); }",
    ]
    narrow = [
        "enum e; int f(enum e *p) { return p != 0; } int last(void) { return 1; }",
        "enum e { B = 1 }; static inline int f(enum e *p) { return *p; } int b(enum e *p) { return f(p); }",
        "enum e { B = 1ULL << 40 } e;",
    ]
    assert "func int f(enum e * p)" in view(btfstep.encode(build(narrow)))
    assert "func int f(enum e * p)" not in view(btfstep.encode(build(wide)))


def test_names_of_variables_end_at_128_characters(build: Build) -> None:
    source = "".join(f"int {letter * length} = 1;" for letter, length in (("a", 127), ("b", 128), ("c", 129)))
    lines = view(btfstep.encode(build(source), features="global_var,encode_force"))
    assert {line.split()[2][0] for line in lines if line.startswith("var")} == {"a", "b"}


# Functions that gcc changes


def symbols(path: Path) -> set[str]:
    done = subprocess.run([tool("nm"), str(path)], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


CHANGED = """
int sink;
struct s { int a, b; };
static __attribute__((noinline)) int scalar(struct s *s) { return sink += s->a; }
static __attribute__((noinline)) int constant(int a, int b) { for (int i = 0; i < a; i++) sink += b; return sink; }
static __attribute__((noinline)) int whole(int a, int b) { return sink += a * b; }
int f(struct s *s, int n) { return scalar(s) + scalar(s + 1) + constant(n, 3) + constant(n + 1, 3) + whole(n, n + 1); }
"""


def test_a_function_that_lost_parameters_is_left_out(build: Build) -> None:
    path = build(CHANGED)
    names = symbols(path)
    if not {"scalar.isra.0", "constant.constprop.0"} <= names:
        pytest.skip("this gcc leaves the functions as they are")
    for features in ("default", "optimized_func,consistent_func", ""):
        lines = view(btfstep.encode(path, features=features))
        assert [line for line in lines if "func" in line] == [
            "func int f(struct s * s, int n)",
            "func int whole(int a, int b)",
        ]


def test_a_true_signature_is_what_the_code_takes(build: Build) -> None:
    path = build(CHANGED)
    if "constant.constprop.0" not in symbols(path):
        pytest.skip("this gcc leaves the functions as they are")
    lines = view(btfstep.encode(path, features="default,true_signature"))
    assert any(line.startswith("func int constant.constprop.0(int a") for line in lines)
    assert "func int whole(int a, int b)" in lines


def test_true_signatures_are_those_of_the_reference(build: Build, same_as_reference: Callable[..., None]) -> None:
    for optimize in ("-O1", "-O2", "-O3", "-Os"):
        same_as_reference(build(CHANGED, optimize))


# Where the DWARF is, and what else is in it


@pytest.mark.parametrize("how", ["zlib", "zlib-gnu", "zstd"])
def test_sections_that_objcopy_compressed(build: Build, how: str, tmp_path: Path) -> None:
    path = build("struct s { int a; } s; int f(struct s *s) { return s->a; }")
    expected = btfstep.encode(path)
    packed = tmp_path / "packed.elf"
    done = subprocess.run(
        [tool("objcopy"), f"--compress-debug-sections={how}", str(path), str(packed)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"objcopy does not know {how}: {done.stderr.strip()}")
    assert btfstep.encode(packed) == expected


@pytest.mark.xfail(reason="stubs of types, with DW_AT_signature alone, become structs without a name", strict=True)
def test_units_of_types_are_joined_with_their_users(gcc: str, build: Build) -> None:
    """One copy a type for all units. (The reference loses these types.)"""
    source = "struct s { int a; struct s *next; } s%d; int f%d(struct s *s) { return s->a; }"
    units = [source % (i, i) for i in (1, 2)]
    plain = view(btfstep.encode(build(units)))
    for dwarf in DWARF:
        assert set(view(btfstep.encode(build(units, dwarf, "-fdebug-types-section", cc=gcc)))) == set(plain)


@pytest.mark.parametrize("dwarf", DWARF)
def test_an_assembler_unit_adds_no_types(build: Build, dwarf: str, tmp_path: Path) -> None:
    (tmp_path / "code.S").write_text(".text\n.globl a\n.type a, @function\na: ret\n.size a, .-a\n")
    lines = view(btfstep.encode(build("int c(int x) { return x; }", dwarf, "code.S")))
    # Some assemblers describe functions, without what they take and return.
    assert [line for line in lines if line != "func void a()"] == ["int int: 32 bits signed", "func int c(int x)"]


@pytest.mark.parametrize("dwarf", DWARF)
def test_dwarf_that_is_elsewhere_is_refused(compiler: str, dwarf: str, build: Build) -> None:
    """A skeleton unit only says in which other file the types are."""
    with pytest.raises(btfstep.BtfstepError):
        btfstep.encode(build("struct s { int a; } s;", dwarf, "-gsplit-dwarf", cc=compiler))


def test_a_unit_without_types_or_functions_gives_no_types(build: Build) -> None:
    assert view(btfstep.encode(build("void f(void) { }"))) == ["func void f()"]


def test_a_file_without_dwarf_is_refused(build: Build) -> None:
    with pytest.raises(btfstep.FormatError, match="has no DWARF"):
        btfstep.encode(build("int x;", "-g0"))


def test_merging_units_changes_nothing_where_they_agree(build: Build) -> None:
    units = ["struct s { int a; } s1; int f(struct s *s) { return s->a; }", "struct s { int a; } s2;"]
    path = build(units)
    assert set(view(btfstep.encode(path, features="default,force_cu_merging"))) == set(view(btfstep.encode(path)))


# What BTF cannot say


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("_Complex double c;", "complex floating point"),
        ("struct s { _Atomic(long) a; } s;", "kind that BTF does not have"),
        ("struct s { char pad[0x400000]; unsigned b : 3; } *s;", "bit field"),
    ],
)
def test_types_that_btf_does_not_have_are_refused(source: str, message: str, compiler: str, build: Build) -> None:
    """As the reference does, which then ends without output."""
    with pytest.raises(btfstep.BtfstepError, match=message):
        btfstep.encode(build(source, cc=compiler))


def test_complex_numbers_are_integers_without_the_float_feature(compiler: str, build: Build) -> None:
    lines = lines_of(btfstep.encode(build("_Complex float c;", cc=compiler), features=""))
    assert [line for line in lines if "64 bits" in line]


# C++: units in it are either left out or have to be like C


@pytest.fixture
def mixed(build: Build, tmp_path: Path) -> Callable[[str], Path]:
    """``mixed(text)``: a file of one C unit and one C++ unit."""
    tool("g++")

    def build_mixed(text: str) -> Path:
        (tmp_path / "other.cc").write_text(text)
        return build("struct c { int a; } c; int in_c(struct c *c) { return c->a; }", "-xc++", "other.cc", "-xc")

    return build_mixed


PLAIN_CPP = """
namespace n { struct s { int a; }; enum class e : char { A, B }; int nested(s *s) { return s->a; } }
struct base { int a; };
struct derived : base { int b; int method() { return b; } };
extern "C" int in_cpp(n::s *s, n::e e, derived *d) { return s->a + d->method(); }
"""


def test_cpp_that_is_like_c(mixed: Callable[[str], Path]) -> None:
    lines = view(btfstep.encode(mixed(PLAIN_CPP)))
    assert "struct s { int a @0 } size 4" in lines
    assert "func int in_cpp(struct s * s, enum e e, struct derived * d)" in lines


def test_cpp_with_references_is_refused(mixed: Callable[[str], Path]) -> None:
    with pytest.raises(btfstep.BtfstepError, match="kind that BTF does not have"):
        btfstep.encode(mixed("int f(int &x) { return x; }"))


def test_an_excluded_language_is_not_read(mixed: Callable[[str], Path]) -> None:
    from btfstep.encode.api import encode_file

    path = mixed("int f(int &x) { return x; }")
    cpp = frozenset((0x04, 0x1A, 0x21, 0x2B, 0x3A))
    data = encode_file(
        str(path), jobs=1, options=EncodeSettings(features=btfstep.parse_features("default"), lang_exclude=cpp)
    )
    assert data is not None
    assert [line for line in view(data) if "func" in line] == ["func int in_c(struct c * c)"]


def test_encoding_in_place_again_and_again_makes_the_same(build: Build, tmp_path: Path) -> None:
    """Also where the old BTF was loaded, and the new one cannot be: it covers no address of a variable's."""
    (tmp_path / "percpu.lds").write_text(PERCPU.replace(" :", " 0 :"))
    elf = build(LOADED, "-Wl,-T,percpu.lds")
    out = tmp_path / "out.btf"
    lists = ["default", "default,layout"]
    wanted = {}
    for features in lists:
        assert main([f"--btf_features={features}", f"--btf_encode_detached={out}", str(elf)]) == 0
        wanted[features] = out.read_bytes()
        assert b"\0.data..percpu\0" in wanted[features]
    for features in lists * 2:
        assert main(["-J", f"--btf_features={features}", str(elf)]) == 0
        with ElfImage.open(elf) as image:
            section = image.section(".BTF")
            assert section is not None
            assert bytes(image.contents(section)) == wanted[features]
