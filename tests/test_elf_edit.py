# SPDX-License-Identifier: GPL-2.0-only
"""Sections are added and replaced in place, other tools accept the result, and no kill spoils the file."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btfstep.elf.edit import set_section, set_sections
from btfstep.elf.image import ElfImage, Section
from btfstep.errors import BtfstepError, FormatError
from elfmaker import ET_EXEC, SHF_ALLOC, SHF_COMPRESSED, SHT_NOBITS, SHT_STRTAB, ElfMaker

KINDS = [(64, False), (64, True), (32, False), (32, True)]
kinds = pytest.mark.parametrize(("bits", "big"), KINDS, ids=["64le", "64be", "32le", "32be"])
Sections = dict[str, bytes | None]
LONG_AGO = 1_000_000_000 * 10**9  # a file time, in ns
BTF_ADDR = 0x2000


def small(bits: int = 64, big: bool = False, count: int = 0) -> bytes:
    """A relocatable file with code, symbols, and *count* empty sections more."""
    maker = ElfMaker(bits=bits, big_endian=big, machine={64: 62, 32: 3}[bits] if not big else {64: 21, 32: 20}[bits])
    text = maker.section(".text", b"\x90" * 16, flags=SHF_ALLOC | 4, align=16)
    for number in range(count):
        maker.section(f".t.{number}")
    maker.symbol("start", value=4, size=8, shndx=text)
    return maker.build()


def linked(contents: bytes, bits: int = 64, big: bool = False) -> bytes:
    """An executable with its BTF in a loaded segment, and more loaded bytes after it."""
    maker = ElfMaker(bits=bits, big_endian=big, type=ET_EXEC)
    maker.section(".text", b"\x90" * 16, flags=SHF_ALLOC | 4, addr=0x1000)
    maker.load(maker.section(".BTF", contents, flags=SHF_ALLOC, addr=BTF_ADDR))
    maker.section(".BTF_ids", b"ids!", flags=SHF_ALLOC, addr=BTF_ADDR + len(contents))
    return maker.build()


def saved(tmp_path: Path, data: bytes, name: str = "file.o") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    return path


def everything(path: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Type, flags, address and contents of every section by name, but for the names themselves."""
    with ElfImage.open(path) as image:
        return {
            section.name: (section.type, section.flags, section.addr, bytes(image.raw_contents(section)))
            for section in image.sections
            if section.name not in ("", ".shstrtab")
        }


def one(path: Path, name: str) -> tuple[Section, bytes]:
    with ElfImage.open(path) as image:
        section = image.section(name)
        assert section is not None
        return section, bytes(image.raw_contents(section))


def run(*command: str | Path) -> str:
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"no {command[0]}")
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def objcopy() -> str:
    """An objcopy that knows every target."""
    for name in ("llvm-objcopy", *(f"llvm-objcopy-{n}" for n in range(22, 12, -1))):
        if shutil.which(name):
            return name
    pytest.skip("no llvm-objcopy")


# What it does


@kinds
def test_adds_a_section_and_leaves_the_others(tmp_path: Path, bits: int, big: bool) -> None:
    path = saved(tmp_path, small(bits, big))
    before = everything(path)
    assert set_section(path, ".BTF", b"types") is True
    assert everything(path) == {**before, ".BTF": (1, 0, 0, b"types")}
    section, _ = one(path, ".BTF")
    assert (section.addralign, section.link, section.info, section.entsize) == (1, 0, 0, 0)
    assert path.stat().st_mtime_ns > LONG_AGO
    assert " .BTF " in run("readelf", "-S", "-s", "-W", path)


def test_a_new_section_looks_as_objcopy_makes_it(tmp_path: Path) -> None:
    ours, theirs = saved(tmp_path, small()), tmp_path / "theirs.o"
    payload = saved(tmp_path, b"types", "payload")
    run(objcopy(), f"--add-section=.BTF={payload}", ours, theirs)
    set_section(ours, ".BTF", b"types")
    (mine, _), (other, _) = one(ours, ".BTF"), one(theirs, ".BTF")
    assert mine._replace(offset=0) == other._replace(offset=0)


@kinds
def test_replaces_a_section(tmp_path: Path, bits: int, big: bool) -> None:
    path = saved(tmp_path, small(bits, big))
    before = everything(path)
    for contents in (b"first", b"second, which is longer", b"3rd", b""):
        assert set_section(path, ".BTF", contents) is True
        assert everything(path) == {**before, ".BTF": (1, 0, 0, contents)}
        run("readelf", "-S", "-s", "-W", path)


def test_sets_several_sections_at_once(tmp_path: Path) -> None:
    path = saved(tmp_path, small())
    assert set_sections(path, {".BTF": b"split", ".BTF.base": bytearray(b"base")}) is True
    assert one(path, ".BTF")[1] == b"split"
    assert one(path, ".BTF.base")[1] == b"base"
    assert set_sections(path, {".BTF": memoryview(b"split"), ".BTF.base": b"base, again"}) is True
    assert one(path, ".BTF.base")[1] == b"base, again"
    assert set_sections(path, {}) is False


@kinds
def test_removes_a_section_and_leaves_the_others(tmp_path: Path, bits: int, big: bool) -> None:
    path = saved(tmp_path, small(bits, big, count=1))
    set_sections(path, {".BTF.base": b"base", ".BTF": b"split"})
    before = everything(path)
    symbols = run("readelf", "-s", "-W", path)
    assert set_sections(path, {".BTF.base": None, ".BTF": b"split"}) is True
    assert everything(path) == {name: value for name, value in before.items() if name != ".BTF.base"}
    assert run("readelf", "-s", "-W", path) == symbols
    assert ".BTF.base" not in run("readelf", "-S", "-W", path)
    assert set_sections(path, {".BTF.base": None, ".BTF": b"split"}) is False
    assert set_sections(path, {".t.0": None, ".BTF.base": b"base"}) is True
    assert everything(path) == {name: value for name, value in before.items() if name != ".t.0"}


def test_a_loaded_section_is_removed_from_the_table_alone(tmp_path: Path) -> None:
    path = saved(tmp_path, linked(b"types"))
    before = everything(path)
    set_sections(path, {".BTF": None})
    assert everything(path) == {name: value for name, value in before.items() if name != ".BTF"}
    with ElfImage.open(path) as image:
        assert b"types" in bytes(image.data)


def test_removing_and_adding_again_and_again_does_not_grow_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path, small())
    sizes = []
    for _ in range(20):
        set_sections(path, {".BTF": b"split", ".BTF.base": b"base" * 100})
        sizes.append(path.stat().st_size)
        set_sections(path, {".BTF": b"split", ".BTF.base": None})
    assert max(sizes[2:]) <= sizes[1]


@pytest.mark.parametrize("data", [small(), linked(b"types")], ids=["relocatable", "linked"])
def test_the_same_bytes_are_not_written(tmp_path: Path, data: bytes) -> None:
    path = saved(tmp_path, data)
    set_section(path, ".BTF", b"types")
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    before, inode = path.read_bytes(), path.stat().st_ino

    assert set_section(path, ".BTF", b"types", touch=False) is False
    assert path.stat().st_mtime_ns == LONG_AGO
    assert set_section(path, ".BTF", b"types") is False
    assert path.stat().st_mtime_ns > LONG_AGO
    assert (path.read_bytes(), path.stat().st_ino) == (before, inode)


def test_a_touched_file_is_not_newer_than_one_made_next(tmp_path: Path) -> None:
    path, following = saved(tmp_path, linked(b"types")), tmp_path / "next"
    for _ in range(200):
        set_section(path, ".BTF", b"types")
        following.write_bytes(b"")
        assert path.stat().st_mtime_ns <= following.stat().st_mtime_ns
        following.unlink()


@kinds
def test_loaded_bytes_of_the_same_size_are_replaced_where_they_are(tmp_path: Path, bits: int, big: bool) -> None:
    path = saved(tmp_path, linked(b"types", bits, big))
    path.chmod(0o751)
    before, size = everything(path), path.stat().st_size
    link = tmp_path / "link"
    link.symlink_to(path)
    assert set_section(link, ".BTF", b"TYPES") is True
    assert everything(path) == {**before, ".BTF": (1, SHF_ALLOC, BTF_ADDR, b"TYPES")}
    assert (path.stat().st_size, path.stat().st_mode & 0o777) == (size, 0o751)
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["file.o", "link"]


@kinds
def test_loaded_bytes_of_another_size_are_detached(tmp_path: Path, bits: int, big: bool) -> None:
    path = saved(tmp_path, linked(b"types", bits, big))
    before = everything(path)
    with ElfImage.open(path) as image:
        segments = [(segment, bytes(image.data[segment.offset :][: segment.filesz])) for segment in image.segments()]
    set_section(path, ".BTF", b"more types")
    behind = BTF_ADDR + 16  # five bytes of types and four of .BTF_ids, to the next eight
    assert everything(path) == {**before, ".BTF": (1, 0, behind, b"more types")}
    with ElfImage.open(path) as image:
        assert segments == [
            (segment, bytes(image.data[segment.offset :][: segment.filesz])) for segment in image.segments()
        ]
    run("readelf", "-S", "-l", "-W", path)


def test_an_alloc_section_of_a_relocatable_file_stays_one(tmp_path: Path) -> None:
    maker = ElfMaker()
    maker.section(".BTF", b"types", flags=SHF_ALLOC, align=4)
    path = saved(tmp_path, maker.build())
    set_section(path, ".BTF", b"more types")
    section, contents = one(path, ".BTF")
    assert (section.flags, section.addralign, contents) == (SHF_ALLOC, 4, b"more types")


def test_odd_old_sections(tmp_path: Path) -> None:
    maker = ElfMaker()
    maker.section(".BTF", type=SHT_NOBITS, size=5)
    maker.section(".BTF.base", maker.chdr(1, 5) + b"packed", flags=SHF_COMPRESSED)
    path = saved(tmp_path, maker.build())
    set_sections(path, {".BTF": b"types", ".BTF.base": b"base"})
    assert everything(path) == {".BTF": (1, 0, 0, b"types"), ".BTF.base": (1, 0, 0, b"base")}


def test_names_that_share_the_symbols_string_table(tmp_path: Path) -> None:
    """clang keeps both in .strtab."""
    maker = ElfMaker()
    text = maker.section(".text", b"code")
    maker.symbol("start", shndx=text)
    data = bytearray(maker.build())
    path = saved(tmp_path, bytes(data))
    with ElfImage.open(path) as image:
        strtab, names = image.sections[-2], image.sections[-1]
        both = bytes(image.contents(strtab)) + bytes(image.contents(names))
        grown = maker_with_shared_table(image, both, len(image.contents(strtab)))
    path.write_bytes(grown)
    before = everything(path)
    set_section(path, ".BTF", b"types")
    after = everything(path)
    assert after[".text"] == before[".text"]
    assert after[".BTF"][3] == b"types"
    assert after[".strtab"][3] == both + b".BTF\0"
    assert " start" in run("readelf", "-s", "-W", path)


def maker_with_shared_table(image: ElfImage, both: bytes, shift: int) -> bytes:
    """The file with *both* string tables in .strtab, the names *shift* bytes in; .shstrtab gone."""
    record = image.layout.shdr
    sections = image.sections[:-1]
    table = bytearray()
    for section in sections:
        sh_name = record.unpack_from(image.data, image.shoff + len(table))[0]
        if section.name == ".strtab":
            section = section._replace(offset=len(image.data), size=len(both))
        table += record.pack(sh_name + shift if section.index else 0, *section[2:])
    header = list(image.layout.ehdr.unpack_from(image.data))
    header[6], header[12], header[13] = len(image.data) + len(both), len(sections), len(sections) - 1
    packed = image.layout.ehdr.pack(*header)
    return packed + bytes(image.data[len(packed) :]) + both + bytes(table)


def test_real_files_link_and_run_as_before(tmp_path: Path) -> None:
    source = saved(tmp_path, b"int x = 1; int main(void) { return x; }", "a.c")
    object_file, program = tmp_path / "a.o", tmp_path / "a"
    run("gcc", "-g", "-c", source, "-o", object_file)
    set_sections(object_file, {".BTF": b"types", ".BTF.base": b"base"})
    run("gcc", object_file, "-o", program)
    assert subprocess.run([program]).returncode == 1
    set_section(program, ".BTF", b"another")
    assert subprocess.run([program]).returncode == 1
    set_section(program, ".BTF", b"a third, of another size")
    assert subprocess.run([program]).returncode == 1
    run("strip", "--strip-debug", program)
    assert one(program, ".BTF")[1] == b"a third, of another size"


@pytest.mark.parametrize("libelf_lays_out", [True, False])
def test_libelf_may_patch_the_result_in_place(tmp_path: Path, libelf_lays_out: bool) -> None:
    """As resolve_btfids of the kernel does with .BTF_ids of a module, right after BTF is added."""
    source = saved(tmp_path, LIBELF_PATCH.encode(), "patch.c")
    patch = tmp_path / "patch"
    if (
        shutil.which("gcc") is None
        or subprocess.run(["gcc", source, "-o", patch, "-lelf"], stderr=subprocess.DEVNULL).returncode
    ):
        pytest.skip("no gcc with libelf")
    path = saved(tmp_path, small())
    for size in (500, 600, 700):
        set_sections(path, {".BTF": b"t" * size, ".BTF.base": b"b" * size})
    before = everything(path)
    run(patch, path, ".text", *(["layout"] if libelf_lays_out else []))
    kind, flags, addr, text = before[".text"]
    assert everything(path) == {**before, ".text": (kind, flags, addr, b"!" + text[1:])}


LIBELF_PATCH = r"""
#include <fcntl.h>
#include <gelf.h>
#include <string.h>

int main(int argc, char **argv)
{
	size_t names;
	GElf_Shdr header;
	Elf_Scn *section = 0;

	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(open(argv[1], O_RDWR), ELF_C_RDWR_MMAP, 0);
	elf_getshdrstrndx(elf, &names);
	if (argc < 4)
		elf_flagelf(elf, ELF_C_SET, ELF_F_LAYOUT);
	while ((section = elf_nextscn(elf, section))) {
		gelf_getshdr(section, &header);
		if (!strcmp(elf_strptr(elf, names, header.sh_name), argv[2])) {
			Elf_Data *data = elf_getdata(section, 0);

			*(char *)data->d_buf = '!';
			elf_flagdata(data, ELF_C_SET, ELF_F_DIRTY);
		}
	}
	return elf_update(elf, ELF_C_WRITE) < 0 || elf_end(elf);
}
"""


# Many sections


def test_crossing_the_number_of_sections_that_a_header_counts(tmp_path: Path) -> None:
    for extra in (0xFF00 - 6, 0xFF00 - 5, 66_000):
        path = saved(tmp_path, small(count=extra))
        before = everything(path)
        with ElfImage.open(path) as image:
            count = len(image.sections)
        set_sections(path, {".BTF": b"types"})
        set_sections(path, {".BTF": b"types again"})
        assert everything(path) == {**before, ".BTF": (1, 0, 0, b"types again")}
        with ElfImage.open(path) as image:
            assert len(image.sections) == count + 1
            assert (image._shnum == 0) == (count + 1 >= 0xFF00)
        assert " .BTF " in run("readelf", "-S", "-W", path)
    run("readelf", "-s", "-W", path)


# What tools make of it


@kinds
@pytest.mark.parametrize("count", [0, 66_000], ids=["few", "many"])
def test_the_kernels_objcopy_call(tmp_path: Path, bits: int, big: bool, count: int) -> None:
    path, out = saved(tmp_path, small(bits, big, count)), tmp_path / "btf.o"
    set_section(path, ".BTF", b"types")
    set_section(path, ".BTF", b"other types")
    flags = "--set-section-flags=.BTF=alloc,readonly"
    run(objcopy(), "--only-section=.BTF", flags, "--strip-all", path, out)
    section, contents = one(out, ".BTF")
    assert (contents, section.flags & SHF_ALLOC) == (b"other types", SHF_ALLOC)
    run("readelf", "-S", "-W", path)


@pytest.mark.parametrize("command", ["objcopy {} {}", "strip -g {} -o {}", "ld -r {} -o {}"])
def test_gnu_tools_keep_it(tmp_path: Path, command: str) -> None:
    path, out = saved(tmp_path, small()), tmp_path / "out.o"
    for contents in (b"types", b"types of another size", b"last"):
        set_sections(path, {".BTF": contents, ".BTF.base": contents * 2})
    run(*command.format(path, out).split())
    assert one(out, ".BTF")[1] == b"last"
    assert one(out, ".BTF.base")[1] == b"lastlast"


# Dead bytes


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.dictionaries(st.sampled_from([".BTF", ".BTF.base"]), st.none() | st.binary(max_size=3000), min_size=1),
        max_size=12,
    )
)
def test_any_sequence_of_changes(tmp_path_factory: pytest.TempPathFactory, steps: list[Sections]) -> None:
    path = saved(tmp_path_factory.getbasetemp(), small(), "sequence.o")
    expected = everything(path)
    for step in steps:
        set_sections(path, step)
        for name, contents in step.items():
            if contents is not None:
                expected[name] = (1, 0, 0, contents)
            else:
                expected.pop(name, None)
        assert everything(path) == expected


def test_replacing_again_and_again_does_not_grow_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path, small())
    start, sizes = path.stat().st_size, []
    for number in range(40):
        set_section(path, ".BTF", os.urandom(10_000 + number % 3))
        sizes.append(path.stat().st_size)
    assert max(sizes) < start + 3 * 11_000
    assert min(sizes[-4:]) < start + 11_000


def test_bytes_after_the_file_survive_a_failure(tmp_path: Path) -> None:
    """A signature that somebody appended may be overwritten by a success only."""
    path = saved(tmp_path, small() + b"signature")
    before = path.read_bytes()
    assert killed_before(3, path, {".BTF": b"types"})
    assert path.read_bytes()[: len(before)] == before


# Kills and failures


def killed_before(nth: int, path: Path, sections: Sections, *, torn: bool = False) -> bool:
    """Run set_sections in a child that SIGKILL ends at its *nth* change of a file; whether it came so far.

    With *torn*, half of the bytes of that change are still written, unless it is the
    switch of the header: no kill divides a write of 64 bytes.
    """
    child = os.fork()
    if child == 0:
        try:
            _kill_at(nth, torn)
            set_sections(path, sections)
        except BaseException:
            os._exit(2)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.waitstatus_to_exitcode(status) == 0
    return False


def _kill_at(nth: int, torn: bool) -> None:
    calls = 0
    originals = {name: getattr(os, name) for name in ("write", "pwrite", "ftruncate", "replace", "fchmod", "utime")}

    def counted(name: str) -> Callable[..., object]:
        def call(*args: object, **keywords: object) -> object:
            nonlocal calls
            calls += 1
            if calls == nth:
                if torn and name in ("write", "pwrite") and len(args[1]) > 64:  # type: ignore[arg-type]
                    originals[name](args[0], args[1][: len(args[1]) // 2], *args[2:])  # type: ignore[arg-type,index]
                os.kill(os.getpid(), signal.SIGKILL)
            return originals[name](*args, **keywords)

        return call

    for name in originals:
        setattr(os, name, counted(name))


SCENES: dict[str, tuple[Callable[[], bytes], list[Sections]]] = {
    "first": (small, [{".BTF": b"A" * 500}]),
    "second, appended": (small, [{".BTF": b"A" * 500}, {".BTF": b"B" * 600}]),
    "third, into the gap": (small, [{".BTF": b"A" * 500}, {".BTF": b"B" * 600}, {".BTF": b"C" * 400}]),
    "two at once": (small, [{".BTF": b"A" * 500}, {".BTF": b"B" * 500, ".BTF.base": b"C" * 500}]),
    "one for the other": (small, [{".BTF.base": b"A" * 500}, {".BTF": b"B" * 500, ".BTF.base": None}]),
    "detached": (lambda: linked(b"A" * 500), [{".BTF": b"B" * 600}]),
    "in its segment": (lambda: linked(b"A" * 500), [{".BTF": b"B" * 500}]),
    "both": (lambda: linked(b"A" * 500), [{".BTF": b"B" * 500, ".BTF.base": b"C" * 100}]),
    "32 bits, big-endian": (lambda: small(32, True), [{".BTF": b"A" * 500}, {".BTF": b"B" * 600}]),
    "past the limit": (lambda: small(count=0xFF00 - 5), [{".BTF": b"A" * 500}]),
}


@pytest.mark.parametrize("torn", [False, True], ids=["between", "inside"])
@pytest.mark.parametrize("scene", SCENES)
def test_a_kill_at_any_write_leaves_the_old_file_or_the_new_one(tmp_path: Path, scene: str, torn: bool) -> None:
    make, steps = SCENES[scene]
    path = saved(tmp_path, make())
    for step in steps[:-1]:
        set_sections(path, step)
    start, old = path.read_bytes(), everything(path)
    set_sections(path, steps[-1])
    new = everything(path)
    assert old != new

    outcomes = []
    for nth in range(1, 20):
        path.write_bytes(start)
        finished = not killed_before(nth, path, steps[-1], torn=torn)
        found = everything(path)
        assert found in (old, new)
        run("readelf", "-S", "-W", path)
        outcomes.append(found == new)
        if not finished:
            set_sections(path, steps[-1])  # the next build
            assert everything(path) == new
            for beside in set(os.listdir(tmp_path)) - {"file.o"}:
                assert beside.startswith(".file.o.")
                os.unlink(tmp_path / beside)
        else:
            break
    assert finished
    assert nth > 3
    assert outcomes == sorted(outcomes)
    assert (outcomes[0], outcomes[-1]) == (False, True)


@pytest.mark.parametrize("room", [0, 100, 3000, 5100, 5400])
@pytest.mark.parametrize("scene", ["append", "copy"])
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, scene: str, room: int) -> None:
    path = saved(tmp_path, small() if scene == "append" else linked(b"A" * 5000))
    before = path.read_bytes()
    limit = len(before) + room if scene == "append" else min(room, len(before) - 1)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            set_section(path, ".BTF", b"B" * 5000)
        except BtfstepError as error:
            os._exit(0 if str(error) == f"{path}: cannot write: {os.strerror(errno.EFBIG)}" else 2)
        except BaseException:
            os._exit(3)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["file.o"]


@pytest.mark.parametrize("nth", range(1, 5))
def test_an_interrupt_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int) -> None:
    path = saved(tmp_path, small())
    before, pwrite, calls = path.read_bytes(), os.pwrite, 0

    def interrupted(fd: int, data: memoryview, offset: int) -> int:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise KeyboardInterrupt
        return pwrite(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", interrupted)
    with pytest.raises(KeyboardInterrupt):
        set_section(path, ".BTF", b"types")
    assert path.read_bytes() == before


def test_an_interrupt_after_the_switch_keeps_the_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, small())
    pwrite = os.pwrite

    def interrupted(fd: int, data: memoryview, offset: int) -> int:
        written = pwrite(fd, data, offset)
        if offset == 0:
            raise KeyboardInterrupt
        return written

    monkeypatch.setattr(os, "pwrite", interrupted)
    with pytest.raises(KeyboardInterrupt):
        set_section(path, ".BTF", b"types")
    assert one(path, ".BTF")[1] == b"types"


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, small())
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, data[:64], offset))
    set_section(path, ".BTF", b"types" * 100)
    assert one(path, ".BTF")[1] == b"types" * 100


# What it refuses


def test_a_file_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, linked(b"types"))
    opened = os.open

    def denied(name: str, flags: int, *args: int) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(name, flags, *args)

    monkeypatch.setattr(os, "open", denied)  # file modes do not stop root, as whom tests may run
    with pytest.raises(BtfstepError) as caught:
        set_section(path, ".BTF", b"other types")
    assert str(caught.value) == f"{path}: cannot write: Permission denied"
    assert set_section(path, ".BTF", b"types") is False


def test_not_elf_files(tmp_path: Path) -> None:
    for path, message in [
        (tmp_path / "absent", "No such file"),
        (tmp_path, "s a directory"),
        (saved(tmp_path, b"", "empty"), "is empty"),
        (saved(tmp_path, b"text\n"), "not an ELF file"),
    ]:
        with pytest.raises(BtfstepError, match=message):
            set_section(path, ".BTF", b"types")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(FormatError, match="not a regular file"):
        set_section(fifo, ".BTF", b"types")


def test_files_without_usable_section_names(tmp_path: Path) -> None:
    data = bytearray(small())
    data[62:64] = b"\0\0"
    with pytest.raises(FormatError, match="has no section names"):
        set_section(saved(tmp_path, bytes(data)), ".BTF", b"types")

    maker = ElfMaker(type=ET_EXEC)
    names = maker.section(".names", b"\0.names\0", type=SHT_STRTAB, flags=SHF_ALLOC, addr=0x1000)
    maker.load(names)
    data = bytearray(maker.build())
    data[62:64] = names.to_bytes(2, "little")
    shoff = int.from_bytes(data[40:48], "little")
    for index in range(3):
        data[shoff + 64 * index : shoff + 64 * index + 4] = bytes(4)
    with pytest.raises(FormatError, match="in a loaded segment"):
        set_section(saved(tmp_path, bytes(data)), ".BTF", b"types")


def test_a_32_bit_file_that_would_outgrow_its_offsets(tmp_path: Path) -> None:
    path = saved(tmp_path, small(32))
    try:
        os.truncate(path, (1 << 32) - 100)
        with pytest.raises(FormatError, match="32-bit"):
            set_section(path, ".BTF", b"types" * 20)
        assert path.stat().st_size == (1 << 32) - 100
    except OSError as error:
        pytest.skip(f"no sparse file of 4 GiB: {error}")


@settings(deadline=2000, max_examples=200)
@given(
    st.sampled_from([small(), small(32, True), linked(b"types" * 10), linked(b"types" * 10, 32, True)]),
    st.lists(st.tuples(st.integers(0, 63) | st.integers(0, 1000), st.integers(0, 255)), max_size=6),
)
def test_a_damaged_file_is_refused_whole_or_edited_right(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, damage: list[tuple[int, int]]
) -> None:
    broken = bytearray(data)
    for at, value in damage:
        if at < len(broken):
            broken[at] = value
    path = saved(tmp_path_factory.getbasetemp(), bytes(broken), "damaged.o")
    try:
        set_section(path, ".BTF", b"other types")
    except BtfstepError:
        assert path.read_bytes() == broken
    else:
        assert one(path, ".BTF")[1] == b"other types"
