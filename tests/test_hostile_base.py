# SPDX-License-Identifier: GPL-2.0-only
"""What modules are encoded with may be anything: bases, lists, records. An error or good BTF comes of it, soon."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btfmaker import BtfMaker
from btfstep.btf.distill import distill
from btfstep.btf.reader import BtfReader
from btfstep.btf.relocate import relocate
from btfstep.build import record
from btfstep.build.record import record_path, remember
from btfstep.cli import main
from btfstep.encode.api import encode_file
from btfstep.encode.settings import EncodeSettings
from btfstep.errors import BtfstepError, FormatError
from btfstep.features import parse_features
from conftest import tool

SOURCE = """
struct device; struct list { struct list *next; }; struct hidden;
struct widget { struct device *device; struct list list; struct hidden *hidden; long size[4]; } the_widget;
int use(struct widget *widget, unsigned long size) { return widget->size[0] + size; }
"""
SECONDS, MEMORY = 30, 1 << 30
SETTINGS = EncodeSettings(features=parse_features("all"))


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("module")
    (folder / "m.c").write_text(SOURCE)
    subprocess.run([tool("gcc"), "-g", "-O2", "-c", "-o", "m.ko", "m.c"], cwd=folder, check=True)
    return folder / "m.ko"


@pytest.fixture
def withstand(tmp_path: Path) -> Callable[..., str | None]:
    """``withstand(*arguments)``: run btfstep with little time and memory; the error line, None if it went well."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def run(*arguments: str | Path) -> str | None:
        command = [sys.executable, "-m", "btfstep", *map(str, arguments)]
        done = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, preexec_fn=limit
        )
        if done.returncode == 0:
            return None
        assert done.returncode == 1, (done.returncode, done.stderr)
        assert "internal error" not in done.stderr
        assert done.stderr.count("\n") == 1
        return done.stderr

    return run


def everything() -> BtfMaker:
    """A base with some of all that the module refers to."""
    maker = BtfMaker()
    integer = maker.integer("int")
    long_ = maker.integer("long int", 8)
    maker.integer("long unsigned int", 8, 0)
    maker.add("struct", "list", 8, maker.string("next"), maker.ptr(maker.next_id + 1), 0, vlen=1)
    maker.add("fwd", "hidden", 0)
    maker.add("array", "", 0, long_, integer, 4)
    maker.add("struct", "device", 4, maker.string("id"), integer, 0, vlen=1)
    maker.typedef("t", maker.const(integer))
    maker.add("enum", "e", 4, maker.string("A"), 0, vlen=1)
    maker.add("func_proto", "", integer, maker.string("widget"), maker.ptr(long_), vlen=1)
    return maker


@settings(max_examples=300, deadline=None)
@given(changes=st.lists(st.tuples(st.integers(24, 500), st.integers(0, 255)), max_size=8))
def test_any_change_to_a_base_gives_an_error_or_btf(module: Path, changes: list[tuple[int, int]]) -> None:
    data = bytearray(everything().data())
    for at, value in changes:
        data[at % len(data)] = value
    try:
        base = BtfReader(bytes(data), path="base")
        split = encode_file(str(module), jobs=1, options=SETTINGS, base=base)
        assert split is not None
        ours, small = distill(BtfReader(split, base))
        fitted = BtfReader(ours, BtfReader(small))
        relocate(fitted, base)
    except BtfstepError:
        pass


@pytest.mark.parametrize("kind", ["ptr", "const", "typedef", "volatile", "type_tag"])
def test_a_base_with_references_in_a_circle(
    kind: str, module: Path, tmp_path: Path, withstand: Callable[..., str | None]
) -> None:
    maker = everything()
    first = maker.next_id
    for target in (first + 1, first):
        maker.add(kind, "" if kind in ("ptr", "const", "volatile") else "round", target)
    maker.add("struct", "widget", 56, maker.string("device"), first, 0, vlen=1)
    (tmp_path / "base").write_bytes(maker.data())
    options = (f"--btf_base={tmp_path / 'base'}", f"--btf_encode_detached={tmp_path / 'out'}", "--no-record")
    withstand("-J", "--btf_features=all", *options, module)
    withstand("dump", tmp_path / "base", "--format", "c")


def test_a_good_base_takes_little_memory(module: Path, tmp_path: Path, withstand: Callable[..., str | None]) -> None:
    (tmp_path / "base").write_bytes(everything().data())
    options = (f"--btf_base={tmp_path / 'base'}", f"--btf_encode_detached={tmp_path / 'out'}")
    assert withstand("-J", *options, module) is None
    assert withstand("dump", tmp_path / "base") is None


def overlapping(kind: str, count: int = 30_000) -> BtfMaker:
    """Types whose names are ends of one string: text without end, if each were taken for itself."""
    maker = BtfMaker()
    start = maker.string("a" * 1_000_000)
    for at in range(count):
        maker.add(kind, start + at, 4)
    return maker


def test_a_base_whose_names_overlap(module: Path, tmp_path: Path, withstand: Callable[..., str | None]) -> None:
    (tmp_path / "base").write_bytes(overlapping("struct").data())
    options = (f"--btf_base={tmp_path / 'base'}", f"--btf_encode_detached={tmp_path / 'out'}", "--no-record")
    assert "overlap too much" in (withstand("-J", "--btf_features=all", *options, module) or "")


@pytest.mark.parametrize("how", ["raw", "c", "json"])
def test_a_struct_whose_members_names_overlap(tmp_path: Path, withstand: Callable[..., str | None], how: str) -> None:
    maker = BtfMaker()
    integer = maker.integer("int")
    start = maker.string("a" * 1_000_000)
    words = [word for at in range(60_000) for word in (start + at, integer, at * 32)]
    maker.add("struct", "s", 240_000, *words, vlen=60_000)
    (tmp_path / "btf").write_bytes(maker.data())
    assert "text of more than" in (withstand("dump", tmp_path / "btf", "--format", how) or "")


def split_from(distilled: BtfMaker) -> BtfReader:
    """A module's BTF with this distilled base, of which it uses the first type."""
    maker = BtfMaker(distilled)
    maker.add("struct", "own", 4, maker.string("m"), 1, 0, vlen=1)
    return BtfReader(maker.data(), BtfReader(distilled.data()))


def test_a_distilled_base_whose_names_overlap() -> None:
    with pytest.raises(FormatError, match="overlap too much"):
        relocate(split_from(overlapping("struct")), BtfReader(everything().data()))


def test_a_distilled_base_for_a_base_whose_names_overlap() -> None:
    distilled = BtfMaker()
    distilled.add("struct", "a" * 500_000, 4)
    with pytest.raises(FormatError, match="overlap too much"):
        relocate(split_from(distilled), BtfReader(overlapping("struct").data()))


def test_distilled_types_of_one_name() -> None:
    distilled, base = BtfMaker(), BtfMaker()
    for _ in range(5000):
        distilled.add("struct", "same", 4)
        base.add("struct", "same", 4)
    with pytest.raises(FormatError, match="too many types of the same names"):
        relocate(split_from(distilled), BtfReader(base.data()))


def test_members_that_share_a_chain_of_references() -> None:
    """Each follows it once; together they would take forever."""
    distilled, base = BtfMaker(), BtfMaker()
    for maker in (distilled, base):
        maker.add("struct", "s", 4)
    split = BtfMaker(distilled)
    target = 1
    for _ in range(1000):
        target = split.const(target)
    words = [word for at in range(60_000) for word in (0, target, at)]
    for _ in range(4):
        split.add("struct", "own", 4, *words, vlen=60_000)
    assert len(relocate(BtfReader(split.data(), BtfReader(distilled.data())), BtfReader(base.data())))


# Lists


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: os.mkfifo(path), "is not a regular file"),
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.write_bytes(b"\x7fELF\2\1\1" + bytes(100)), "is no list of modules"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
        (lambda path: path.write_bytes(b"") or path.open("r+").truncate(1 << 40), "is too long"),
        (lambda path: None, "No such file"),
    ],
    ids=["fifo", "directory", "binary", "device", "huge", "missing"],
)
def test_what_is_no_list(
    make: Callable[[Path], object], message: str, tmp_path: Path, withstand: Callable[..., str | None]
) -> None:
    make(tmp_path / "list")
    error = withstand("modules", "--base=nowhere", f"@{tmp_path / 'list'}")
    assert error is not None
    assert message in error


def test_names_in_a_list_may_be_anything(
    tmp_path: Path, module: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("base").write_bytes(everything().data())
    odd = [b"a b.ko", b"\xff.ko", b"$(x).ko", b"-j.ko", b"%s.ko", "\u00e4\x1b[2J.ko".encode(), b"x" * 200 + b".ko"]
    for name in odd:
        Path(os.fsdecode(name)).write_bytes(module.read_bytes())
    lines = [*odd, b"none.ko", b"/" * 5000, b"x" * 5000, b"  ", b"a b.ko"]
    Path("list").write_bytes(b"\r\n".join(lines))
    assert main(["modules", "--base=base", "--no-record", "@list"]) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == len(odd)
    assert len(err.splitlines()) == 3
    assert out.isascii() or "\x1b" not in out


def test_names_of_one_file_are_one_module(
    tmp_path: Path, module: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Threads that change it at once would lose what the other one did."""
    monkeypatch.chdir(tmp_path)
    Path("base").write_bytes(everything().data())
    Path("m.ko").write_bytes(module.read_bytes())
    Path("soft.ko").symlink_to("m.ko")
    Path("hard.ko").hardlink_to("m.ko")
    assert (
        main(["modules", "--base=base", "-j4", "m.ko", "./m.ko", "soft.ko", "hard.ko", str(Path("m.ko").resolve())])
        == 0
    )
    assert len(capsys.readouterr().out.splitlines()) == 1


# Records


def hostile_record(path: Path, key: bytes, rest: bytes) -> None:
    checksum = sha256(key + rest).digest()
    path.write_bytes(record._MAGIC + checksum + key + rest)


@settings(max_examples=100, deadline=None)
@given(rest=st.binary(max_size=64))
def test_a_record_with_a_good_checksum_may_hold_anything(tmp_path_factory: pytest.TempPathFactory, rest: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "a.ko"
    hostile_record(Path(record_path(str(path))), bytes(32), rest)
    found = record.recall(str(path), bytes(32))
    assert found is None or all(isinstance(value, bytes) for value in found.values())


@pytest.mark.parametrize("sections", [{".text": b"other code"}, {".BTF.base": b""}, {".BTF": b"", ".text": b""}])
def test_a_record_of_other_sections_is_not_used(
    sections: dict[str, bytes], tmp_path: Path, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("base").write_bytes(everything().data())
    Path("m.ko").write_bytes(module.read_bytes())
    assert main(["modules", "--base=base", "m.ko"]) == 0
    good = Path("m.ko").read_bytes()
    kept = Path(record_path("m.ko")).read_bytes()
    key = kept[len(record._MAGIC) + 32 :][:32]
    assert remember("m.ko", key, sections)
    assert main(["modules", "--base=base", "m.ko"]) == 0
    assert Path("m.ko").read_bytes() == good


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.mkdir(), lambda path: path.symlink_to("precious")])
def test_a_record_that_is_something_else_is_left_alone_or_replaced(
    make: Callable[[Path], object], tmp_path: Path, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("precious").write_text("not to be written")
    Path("base").write_bytes(everything().data())
    Path("m.ko").write_bytes(module.read_bytes())
    make(Path(record_path("m.ko")))
    assert main(["modules", "--base=base", "m.ko"]) == 0
    assert Path("precious").read_text() == "not to be written"
