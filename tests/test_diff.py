# SPDX-License-Identifier: GPL-2.0-only
"""What two BTFs do not have in common, for people and for scripts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import btfstep
from btfmaker import BOOL, BtfMaker
from btfstep.btf.compare import Comparison
from btfstep.btf.reader import BtfReader
from conftest import Build

OLD = """
struct inner { int x; };
struct gone { char c; };
struct task { int pid; struct inner in; struct gone *gone; long last; union { int a; long b; }; unsigned f:3, g:5; };
enum state { STOPPED, RUNNING = 7, ENDED };
enum { LOW = 1, HIGH = 2 } limits;
typedef int word_t;
struct task task;
enum state state;
word_t word;
int work(struct task *task, int (*then)(void)) { return 0; }
int leave(void) { return 0; }
"""
NEW = """
struct inner { int x; int y; };
struct fresh { long l; };
struct task {
    long pid; struct inner in; struct fresh *fresh; long last; union { int a; long b; char *c; }; unsigned f:4, g:5;
};
enum state { STOPPED, RUNNING = -8, SLEEPING };
enum { LOW = 1, HIGH = 3 } limits;
typedef unsigned word_t;
struct task task;
enum state state;
word_t word;
int work(struct task *task, const char *s, int (*then)(void)) { return 0; }
void arrive(struct fresh *fresh, ...) { }
"""
TEXT = """\
removed  struct gone, 1 bytes
removed  func leave: int (void)
added    struct fresh, 8 bytes
added    func arrive: void (struct fresh *fresh, ...)
changed  struct inner: 4 -> 8 bytes
           + int y at 4
changed  struct task: 40 -> 48 bytes
           pid: int -> long int
           in moved by +4 bytes, 4 -> 8
           - struct gone *gone at 8
           + struct fresh *fresh at 16
           last ... b (3) moved by +8 bytes
           + char *c at 32
           f: 3 -> 4 bits, 32.0 -> 40.0
           g moved by +65 bits, 32.3 -> 40.4
changed  enum state
           RUNNING: 7 -> -8
           - ENDED = 8
           + SLEEPING = -7
changed  enum {LOW}
           HIGH: 2 -> 3
changed  typedef word_t
           type: int -> unsigned int
changed  func work
           type: int (struct task *task, int (*then)(void)) -> int (struct task *task, const char *s, int (*then)(void))
2 added, 2 removed, 6 changed
"""


def run(*arguments: object, status: int) -> str:
    """Run ``btfstep diff``; return its output, or the one line that it complains with if the status is 2."""
    done = subprocess.run(
        [sys.executable, "-m", "btfstep", "diff", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    if status == 2:
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        return done.stderr
    assert done.stderr == ""
    return done.stdout


def save(path: Path, maker: BtfMaker) -> Path:
    path.write_bytes(maker.data())
    return path


def report(tmp_path: Path, old: BtfMaker, new: BtfMaker) -> dict[str, Any]:
    """What the script's form says of two BTFs, without their paths."""
    paths = [save(tmp_path / "old", old), save(tmp_path / "new", new)]
    done = subprocess.run(
        [sys.executable, "-m", "btfstep", "diff", *map(str, paths), "--format=json"],
        capture_output=True,
        check=False,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found.pop("old"), found.pop("new")) == tuple(map(str, paths))
    assert done.returncode == (found != {"added": [], "removed": [], "changed": []})
    return found


def test_text_for_people(build: Build, tmp_path: Path) -> None:
    old, new = build(OLD, name="old"), build(NEW, name="new")
    text = run(old, new, status=1)
    assert text.splitlines() == TEXT.splitlines()
    # Raw BTF says the same as the DWARF that it was made from.
    raw = tmp_path / "raw.btf"
    raw.write_bytes(btfstep.encode(new))
    assert run(old, raw, "-j2", "--btf_features=default", status=1) == text


def test_the_same_types_in_other_places_are_no_difference(build: Build) -> None:
    other = "struct gone { char c; }; struct gone *earlier(void) { return 0; }"
    one, two = build([OLD, other], name="one"), build([other, OLD], name="two")
    assert btfstep.encode(one) != btfstep.encode(two)
    assert run(one, two, status=0) == ""


def test_quiet_is_the_status_alone(build: Build) -> None:
    old, new = build(OLD, name="old"), build(NEW, name="new")
    assert run("-q", old, old, status=0) == ""
    assert run("-q", old, new, status=1) == ""


def test_json_for_scripts(tmp_path: Path) -> None:
    old, new = BtfMaker(), BtfMaker()
    for maker in (old, new):
        maker.integer("int")
    old.struct("s", 4, [("a", 1, 0)])
    new.struct("s", 12, [("a", 1, 0), ("b", 1, 32), ("flag", 1, 64, 1)])
    old.func("f", old.func_proto(0, [("x", 1)]))
    new.decl_tag("kfunc", new.func("g", new.func_proto(1, [("", new.ptr(2)), ("", 0)])))
    assert report(tmp_path, old, new) == {
        "added": [
            {"kind": "func", "name": "g", "type": "int (struct s *, ...)"},
            {"kind": "decl_tag", "name": "kfunc", "of": "func g"},
        ],
        "removed": [{"kind": "func", "name": "f", "type": "void (int x)"}],
        "changed": [
            {
                "kind": "struct",
                "name": "s",
                "changes": [
                    {"what": "size", "name": "", "old": 4, "new": 12},
                    {
                        "what": "member",
                        "name": "b",
                        "old": None,
                        "new": {"type": "int", "bit_offset": 32, "bit_size": 0},
                    },
                    {
                        "what": "member",
                        "name": "flag",
                        "old": None,
                        "new": {"type": "int", "bit_offset": 64, "bit_size": 1},
                    },
                ],
            }
        ],
    }
    assert report(tmp_path, old, old) == {"added": [], "removed": [], "changed": []}


def changes(tmp_path: Path, old: BtfMaker, new: BtfMaker) -> dict[str, list[tuple[str, str, Any, Any]]]:
    """What changed in each definition, if nothing was added or removed."""
    found = report(tmp_path, old, new)
    assert found["added"] == found["removed"] == []
    return {
        f"{entry['kind']} {entry['name']}": [tuple(change.values()) for change in entry["changes"]]
        for entry in found["changed"]
    }


def test_numbers_variables_sections_and_declarations(tmp_path: Path) -> None:
    makers = BtfMaker(), BtfMaker()
    for new, maker in enumerate(makers):
        number = maker.integer("n", 1, BOOL if new else 0)
        maker.floating("f", 8 if new else 4)
        one = maker.var("one", maker.ptr(number) if new else number, new)
        two = maker.var("two", number)
        maker.datasec(".data", 16, [(one, 8 if new else 0, 8 if new else 1), (two, 4, 1)])
        maker.fwd("s", union=bool(new))
    assert changes(tmp_path, *makers) == {
        "int n": [("encoding", "", "unsigned", "bool")],
        "float f": [("size", "", 4, 8)],
        "var one": [("type", "", "n", "n *"), ("linkage", "", "static", "global")],
        "datasec .data": [("variable", "one", {"offset": 0, "size": 1}, {"offset": 8, "size": 8})],
        "fwd s": [("other", "", None, None)],
    }


def test_enumerations_of_64_bits(tmp_path: Path) -> None:
    old, new = BtfMaker(), BtfMaker()
    old.enum64("e", [("A", 1 << 40), ("B", -1)], signed=True)
    new.enum64("e", [("A", 1 << 41), ("B", -1), ("C", 2)], signed=True)
    assert changes(tmp_path, old, new) == {"enum e": [("value", "A", 1 << 40, 1 << 41), ("value", "C", None, 2)]}
    narrow = BtfMaker()
    narrow.enum("e", [("A", 1), ("B", -1)], signed=True)
    assert changes(tmp_path, old, narrow) == {"enum e": [("size", "", 8, 4), ("value", "A", 1 << 40, 1)]}


def test_a_change_inside_of_what_has_no_name_is_one_of_the_type_that_has_it(tmp_path: Path) -> None:
    makers = BtfMaker(), BtfMaker()
    for new, maker in enumerate(makers):
        number = maker.integer("int")
        inner = maker.struct("", 8, [("a", number, 0), ("b" if new else "c", number, 32)])
        maker.typedef("t", inner)
        maker.struct("s", 8, [("", inner, 0)])
        maker.struct("p", 8, [("p", maker.ptr(maker.array(inner, 3)), 0)])
    assert set(changes(tmp_path, *makers)) == {"typedef t", "struct s", "struct p"}
    assert changes(tmp_path, *makers)["struct p"] == [
        (
            *("member", "p"),
            {"type": "struct { int a; int c; } (*)[3]", "bit_offset": 0, "bit_size": 0},
            {"type": "struct { int a; int b; } (*)[3]", "bit_offset": 0, "bit_size": 0},
        )
    ]


def test_a_struct_is_not_changed_by_what_it_refers_to(tmp_path: Path) -> None:
    makers = BtfMaker(), BtfMaker()
    for new, maker in enumerate(makers):
        inner = maker.struct("inner", 8 if new else 4) if new else maker.fwd("inner")
        maker.typedef("holder_t", maker.struct("holder", 8, [("p", maker.ptr(inner), 0)]))
    found = report(tmp_path, *makers)
    assert [entry["kind"] for entry in found["added"] + found["removed"]] == ["struct", "fwd"]
    assert found["changed"] == []


def test_several_of_one_name_are_matched_as_far_as_they_are_the_same(tmp_path: Path) -> None:
    old, new = BtfMaker(), BtfMaker()
    for size in (4, 8, 16):
        old.struct("s", size)
    for size in (16, 5, 4):
        new.struct("s", size)
    assert changes(tmp_path, old, new) == {"struct s": [("size", "", 8, 5)]}


def test_split_btf_is_compared_without_its_base(tmp_path: Path) -> None:
    base, other_base = BtfMaker(), BtfMaker()
    other_base.struct("first", 4)
    modules = []
    for maker in (base, other_base):
        maker.struct("inner", 4, [("x", maker.integer("int"), 0)])
        module = BtfMaker(maker)
        module.struct("mine", 4, [("in", maker.next_id - 1, 0)])
        modules.append(module)
    paths = [
        *(save(tmp_path / name, maker) for name, maker in zip("ab", modules, strict=True)),
        *(save(tmp_path / name, maker) for name, maker in zip("AB", (base, other_base), strict=True)),
    ]
    assert run(paths[0], paths[1], "-B", paths[2], "-B", paths[3], status=0) == ""
    assert run(paths[0], paths[0], "-B", paths[2], status=0) == ""
    assert "added    struct first, 4 bytes" in run(paths[2], paths[3], status=1)
    assert "give its base" in run(paths[0], paths[1], status=2)
    assert "-B is given once" in run(paths[0], paths[1], *["-B", paths[2]] * 3, status=2)


def test_trouble_is_status_2(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    good = save(tmp_path / "good", BtfMaker())
    assert "text: is neither an ELF file nor raw BTF" in run(good, tmp_path / "text", status=2)
    assert "No such file" in run(tmp_path / "missing", good, status=2)
    assert "2 are compared" in run(good, status=2).replace("two inputs", "2")
    assert "unknown format 'xml'" in run(good, good, "-f", "xml", status=2)
    assert "unrecognized option" in run(good, good, "--no-such", status=2)


def test_types_without_end_are_trouble(tmp_path: Path) -> None:
    endless = BtfMaker()
    endless.ptr(1)
    endless.struct("s", 8, [("p", 1, 0)])
    good, bad = save(tmp_path / "good", BtfMaker()), save(tmp_path / "bad", endless)
    assert "bad: type [1]: reference cycle" in run(good, bad, status=2)


def test_members_without_number_are_cut_short(tmp_path: Path) -> None:
    readers = []
    for last in (4, 8):
        maker = BtfMaker()
        inner = maker.struct("", last, [("x", maker.integer("int"), 0)])
        for _ in range(100):  # each holds the one before it twice
            inner = maker.struct("", 8, [("a", inner, 0), ("b", inner, 0)])
        maker.struct("s", 8, [("", inner, 0), ("p", maker.ptr(inner), 0)])
        readers.append(BtfReader(maker.data()))
    comparison = Comparison(readers[0], readers[1], budget=10_000)
    ((old, new),) = comparison.changed
    assert [detail.what for detail in comparison.details(old, new)] == ["other"]
    assert comparison.describe(readers[1], new) == {"kind": "struct", "name": "s", "size": 8}


def test_help() -> None:
    text = run("--help", status=0)
    assert all(word in text for word in ("--format", "--quiet", "--base", "Exit status: 0"))


@pytest.mark.parametrize("name", ["old", "new"])
def test_dwarf_that_is_not_there(build: Build, tmp_path: Path, name: str) -> None:
    elf = build("int x;", "-g0", name=name)
    assert f"{name}.elf: has neither a .BTF section nor DWARF" in run(elf, elf, status=2)
