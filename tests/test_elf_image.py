# SPDX-License-Identifier: GPL-2.0-only
"""ElfImage reads what other ELF readers read, and refuses what is not there."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btfstep.elf.compress import decompress
from btfstep.elf.constants import ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, EM_S390, machine_name
from btfstep.elf.image import ElfImage
from btfstep.elf.notes import lto_note, notes_of
from btfstep.errors import BtfstepError, FormatError
from elfmaker import ET_EXEC, SHF_ALLOC, SHF_COMPRESSED, SHT_NOBITS, SHT_NOTE, SHT_STRTAB, ElfMaker

KINDS = [(64, False), (64, True), (32, False), (32, True)]
kinds = pytest.mark.parametrize(("bits", "big"), KINDS, ids=["64le", "64be", "32le", "32be"])

C_SOURCE = "struct s { int a; char b[100]; } x; int f(struct s *p) { return p->a + x.a; }\n"


def saved(tmp_path: Path, data: bytes, name: str = "file.o") -> str:
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def compiled(tmp_path: Path, *flags: str) -> str:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    source = tmp_path / "a.c"
    source.write_text(C_SOURCE)
    target = str(tmp_path / "a.o")
    done = subprocess.run(["gcc", "-c", *flags, "-o", target, str(source)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"gcc {' '.join(flags)}: {done.stderr.splitlines()[0]}")
    return target


def zstd_compress(data: bytes) -> bytes:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    compressed: bytes = pytest.importorskip(name).compress(data)
    return compressed


def same_as_pyelftools(path: str) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    with ElfImage.open(path) as image, open(path, "rb") as stream:
        other = elffile.ELFFile(stream)
        assert image.is64 == (other.elfclass == 64)
        assert image.big_endian == (not other.little_endian)
        assert len(image.sections) == other.num_sections()
        assert image.shstrndx == other.get_shstrndx()
        for ours, theirs in zip(image.sections, other.iter_sections(), strict=True):
            header = theirs.header
            assert ours.name == theirs.name
            assert ours[3:] == (
                *(header.sh_flags, header.sh_addr, header.sh_offset, header.sh_size),
                *(header.sh_link, header.sh_info, header.sh_addralign, header.sh_entsize),
            )
            if ours.type not in (0, SHT_NOBITS):
                assert bytes(image.contents(ours)) == theirs.data()
        for segment, theirs in zip(image.segments(), other.iter_segments(), strict=True):
            header = theirs.header
            assert segment[1:] == (
                *(header.p_flags, header.p_offset, header.p_vaddr, header.p_paddr),
                *(header.p_filesz, header.p_memsz, header.p_align),
            )


# What it reads


@kinds
def test_header_and_sections_of_every_class_and_byte_order(tmp_path: Path, bits: int, big: bool) -> None:
    maker = ElfMaker(bits=bits, big_endian=big, machine=EM_S390, type=ET_EXEC)
    text = maker.section(".text", b"code", flags=SHF_ALLOC, addr=0x1000, align=16)
    maker.section(".bss", type=SHT_NOBITS, size=1 << 30, flags=SHF_ALLOC)
    maker.load(text)
    maker.symbol("start", shndx=text)
    path = saved(tmp_path, maker.build())
    with ElfImage.open(path) as image:
        assert (image.is64, image.big_endian, image.address_size) == (bits == 64, big, bits // 8)
        assert (image.type, machine_name(image.machine)) == (ET_EXEC, "s390")
        section = image.section(".text")
        assert section is not None
        assert (section.index, section.addr, section.addralign) == (text, 0x1000, 16)
        assert bytes(image.contents(section)) == b"code"
        assert [segment.vaddr for segment in image.segments()] == [0x1000]
        bss = image.section(".bss")
        assert bss is not None
        assert len(image.contents(bss)) == 0
        assert image.section(".none") is None
    same_as_pyelftools(path)


@pytest.mark.parametrize("flags", [["-g"], ["-g", "-gz=zlib"], ["-g", "-m32"], ["-ffunction-sections"]])
def test_agrees_with_pyelftools_on_what_gcc_writes(tmp_path: Path, flags: list[str]) -> None:
    same_as_pyelftools(compiled(tmp_path, *flags))


def test_agrees_with_pyelftools_on_an_executable() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("no ELF executables")
    same_as_pyelftools(os.path.realpath(sys.executable))


@kinds
def test_more_sections_than_the_header_can_count(tmp_path: Path, bits: int, big: bool) -> None:
    maker = ElfMaker(bits=bits, big_endian=big)
    for number in range(70_000):
        maker.section(f".text.{number}")
    maker.section(".last", b"contents")
    with ElfImage.open(saved(tmp_path, maker.build())) as image:
        assert len(image.sections) == 70_003
        assert image.sections[66_000].name == ".text.65999"
        last = image.section(".last")
        assert last is not None
        assert last.index == 70_001
        assert bytes(image.contents(last)) == b"contents"


def test_the_first_of_equal_names_is_found(tmp_path: Path) -> None:
    maker = ElfMaker()
    first = maker.section(".group", b"1")
    maker.section(".group", b"2")
    with ElfImage.open(saved(tmp_path, maker.build())) as image:
        section = image.section(".group")
        assert section is not None
        assert section.index == first


def test_names_are_any_bytes(tmp_path: Path) -> None:
    maker = ElfMaker()
    maker.section("\udcff")
    with ElfImage.open(saved(tmp_path, maker.build())) as image:
        assert image.sections[1].name == b"\xff".decode("utf-8", "surrogateescape")


def test_contents_are_not_copied_and_outlive_the_image(tmp_path: Path) -> None:
    maker = ElfMaker()
    maker.section(".data", b"contents")
    with ElfImage.open(saved(tmp_path, maker.build())) as image:
        section = image.section(".data")
        assert section is not None
        view = image.contents(section)
        assert view.obj is image.data.obj
        assert view.readonly
    assert bytes(view) == b"contents"


def test_sections_are_plain_values(tmp_path: Path) -> None:
    maker = ElfMaker()
    maker.section(".data", b"contents", addr=8)
    with ElfImage.open(saved(tmp_path, maker.build())) as image:
        section = image.sections[1]
    assert pickle.loads(pickle.dumps(section)) == section
    assert repr(section).startswith("Section(index=1, name='.data', type=1, flags=0, addr=8, ")
    assert section._replace(size=3).size == 3
    with pytest.raises(TypeError, match="no field 'length'"):
        section._replace(length=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="11 fields, not 2"):
        type(section)(1, ".data")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        section.size = 3  # type: ignore[misc]


def test_start_up_imports_little() -> None:
    slow = {"typing", "re", "collections", "dataclasses", "zlib", "tempfile"}
    modules = "btfstep.elf.image, btfstep.elf.edit, btfstep.elf.notes, btfstep.build.write"
    code = f"import sys, {modules}; print(*{slow} & set(sys.modules))"
    env = {"PYTHONPATH": str(Path(sys.modules["btfstep.elf"].__file__ or "").parents[2])}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# Compressed sections


@kinds
@pytest.mark.parametrize("kind", [ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD], ids=["zlib", "zstd"])
def test_compressed_contents(tmp_path: Path, bits: int, big: bool, kind: int) -> None:
    plain = b"debug information " * 200_000
    packed = zlib.compress(plain) if kind == ELFCOMPRESS_ZLIB else zstd_compress(plain)
    maker = ElfMaker(bits=bits, big_endian=big)
    maker.section(".debug_info", maker.chdr(kind, len(plain)) + packed, flags=SHF_COMPRESSED)
    with ElfImage.open(saved(tmp_path, maker.build())) as image:
        view = image.debug_section(".debug_info")
        assert view is not None
        assert view.readonly
        assert bytes(view) == plain


@pytest.mark.parametrize("style", ["zlib", "zlib-gnu", "zstd"])
def test_what_objcopy_compresses(tmp_path: Path, style: str) -> None:
    plain = compiled(tmp_path, "-g")
    packed = str(tmp_path / "packed.o")
    command = ["objcopy", f"--compress-debug-sections={style}", plain, packed]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip(f"objcopy does not compress with {style}")
    if style == "zstd":
        zstd_compress(b"")
    with ElfImage.open(plain) as one, ElfImage.open(packed) as other:
        for name in (".debug_info", ".debug_abbrev", ".debug_str"):
            assert bytes(one.debug_section(name) or b"") == bytes(other.debug_section(name) or b"") != b""


def test_absent_debug_sections(tmp_path: Path) -> None:
    maker = ElfMaker()
    maker.section(".debug_str", type=SHT_NOBITS, size=100)
    with ElfImage.open(saved(tmp_path, maker.build())) as image:
        assert image.debug_section(".debug_info") is None
        assert image.debug_section(".debug_str") is None


@pytest.mark.parametrize("kind", [ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD], ids=["zlib", "zstd"])
def test_decompression_yields_the_declared_size_or_nothing(kind: int) -> None:
    compress = zlib.compress if kind == ELFCOMPRESS_ZLIB else zstd_compress
    plain = os.urandom(3_000_000)
    stream = compress(plain)
    assert bytes(decompress(kind, memoryview(stream), len(plain))) == plain
    assert bytes(decompress(kind, memoryview(compress(b"")), 0)) == b""
    halves = compress(plain[:1_000_000]) + compress(plain[1_000_000:])
    assert bytes(decompress(kind, memoryview(halves), len(plain))) == plain
    for size, data, message in [
        (len(plain) - 1, stream, "more than"),
        (0, stream, "more than"),
        (len(plain) + 1, stream, "but declares"),
        (len(plain), stream[:-1], "ends too early"),
        (len(plain), b"", "cannot hold"),
        (0, b"", "too early"),
        (len(plain), b"rubbish" + stream, "corrupt"),
        (1 << 62, stream, "cannot hold"),
        (1 << 40, compress(bytes(1 << 20)), "cannot hold"),
    ]:
        with pytest.raises(FormatError, match=message):
            decompress(kind, memoryview(data), size)


@pytest.mark.parametrize("kind", [ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD], ids=["zlib", "zstd"])
def test_the_best_compression_there_is_stays_allowed(kind: int) -> None:
    size = 32 << 20
    compress = (lambda data: zlib.compress(data, 9)) if kind == ELFCOMPRESS_ZLIB else zstd_compress
    assert len(decompress(kind, memoryview(compress(bytes(size))), size)) == size


def test_very_many_tiny_streams_take_no_time_to_speak_of() -> None:
    stream = zlib.compress(b"") * 100_000
    assert len(decompress(ELFCOMPRESS_ZLIB, memoryview(stream), 0)) == 0


def test_unknown_compression_and_no_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FormatError, match="unknown compression type 3"):
        decompress(3, memoryview(b"x"), 1)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    with pytest.raises(BtfstepError, match=r"f: \.debug_info: .*install backports\.zstd"):
        decompress(ELFCOMPRESS_ZSTD, memoryview(b"x"), 1, path="f", section=".debug_info")


# Notes


@kinds
def test_lto_note(tmp_path: Path, bits: int, big: bool) -> None:
    for value in (0, 1):
        maker = ElfMaker(bits=bits, big_endian=big)
        desc = struct.pack(">I" if big else "<I", value)
        other = maker.note(b"GNU", 0x101, b"\1\2\3\4") + maker.note(b"Linux", 0x100, b"version")
        maker.section(".notes", other + maker.note(b"Linux", 0x101, desc), type=SHT_NOTE, align=4)
        with ElfImage.open(saved(tmp_path, maker.build())) as image:
            assert lto_note(image) == value
            section = image.section(".notes")
            assert section is not None
            assert [(note.owner, note.type, len(note.desc)) for note in notes_of(image, section)] == [
                *((b"GNU", 0x101, 4), (b"Linux", 0x100, 7), (b"Linux", 0x101, 4))
            ]


def test_no_lto_note(tmp_path: Path) -> None:
    with ElfImage.open(saved(tmp_path, ElfMaker().build())) as image:
        assert lto_note(image) is None


@pytest.mark.parametrize(("cut", "message"), [(10, "truncated"), (22, "past its section")])
def test_a_note_that_does_not_fit(tmp_path: Path, cut: int, message: str) -> None:
    maker = ElfMaker()
    maker.section(".notes", maker.note(b"Linux", 1, b"1234")[:cut], type=SHT_NOTE)
    maker.section(".notes.good", maker.note(b"Linux", 0x101, b"\1\0\0\0"), type=SHT_NOTE)
    with ElfImage.open(saved(tmp_path, maker.build())) as image:
        section = image.section(".notes")
        assert section is not None
        with pytest.raises(FormatError, match=message):
            list(notes_of(image, section))
        # It costs the file nothing but that section.
        assert lto_note(image) == 1


def test_note_sections_that_share_their_bytes(tmp_path: Path) -> None:
    # Each reader of one would be fast, and a file of many would take for ever.
    maker = ElfMaker()
    maker.section(".notes", maker.note(b"GNU", 1, b"") * 1000, type=SHT_NOTE)
    data = bytearray(maker.build())
    with ElfImage.open(saved(tmp_path, bytes(data))) as image:
        notes = image.section(".notes")
        assert notes is not None
        header = bytes(data[image.shoff + notes.index * 64 :][:64])
    struct.pack_into("<Q", data, 0x28, len(data))
    struct.pack_into("<H", data, 0x3C, 5)
    struct.pack_into("<H", data, 0x3E, 0)
    data += bytes(64) + header * 4
    with (
        ElfImage.open(saved(tmp_path, bytes(data))) as image,
        pytest.raises(FormatError, match="note sections come to more"),
    ):
        lto_note(image)


def test_sections_that_expand_to_too_much_together(tmp_path: Path) -> None:
    packed = zlib.compress(bytes(60 << 20))
    maker = ElfMaker()
    for name in (".debug_info", ".debug_str", ".debug_line", ".debug_types", ".debug_abbrev"):
        maker.section(name, maker.chdr(ELFCOMPRESS_ZLIB, 60 << 20) + packed, flags=SHF_COMPRESSED)
    with ElfImage.open(saved(tmp_path, maker.build())) as image:
        for name in (".debug_info", ".debug_str", ".debug_line", ".debug_types"):
            image.debug_section(name)
        with pytest.raises(FormatError, match="too much for a file"):
            image.debug_section(".debug_abbrev")


# What it refuses


def patched(data: bytes, at: int, form: str, value: int) -> bytes:
    out = bytearray(data)
    struct.pack_into(form, out, at, value)
    return bytes(out)


GOOD = ElfMaker().build()
SHOFF = struct.unpack_from("<Q", GOOD, 40)[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\x7fEL", "is not an ELF file"),
        (b"!<arch>\n" * 20, "is not an ELF file"),
        (GOOD[:10], "ends inside the ELF header"),
        (GOOD[:63], "ends inside the ELF header"),
        (patched(GOOD, 4, "B", 3), "unknown ELF class 3"),
        (patched(GOOD, 5, "B", 0), "unknown ELF byte order 0"),
        (patched(GOOD, 6, "B", 2), "unknown ELF version 2"),
        (patched(GOOD, 40, "<Q", 0), "no section header table"),
        (patched(GOOD, 40, "<Q", len(GOOD)), "past the end"),
        (patched(GOOD, 40, "<Q", 1 << 63), "past the end"),
        (GOOD[:-1], "of 2 sections past the end"),
        (patched(GOOD, 58, "<H", 40), "headers of 40 bytes, not 64"),
        (patched(GOOD, 58, "<H", 0), "headers of 0 bytes, not 64"),
        (patched(GOOD, 60, "<H", 3), "of 3 sections past the end"),
        (patched(patched(GOOD, 60, "<H", 0), SHOFF + 32, "<Q", 1 << 60), "past the end"),
        (patched(GOOD, 62, "<H", 2), "names are in section 2 of 2"),
        (patched(GOOD, SHOFF + 64 + 24, "<Q", 1 << 60), r"section \[1\] ends at"),
        (patched(GOOD, SHOFF + 64, "<I", 1 << 20), r"name of section \[1\] is not"),
    ],
)
def test_malformed_files(tmp_path: Path, data: bytes, message: str) -> None:
    path = saved(tmp_path, data)
    with pytest.raises(FormatError, match=message) as caught:
        ElfImage.open(path)
    assert str(caught.value).startswith(path + ": ")
    assert "\n" not in str(caught.value)


def test_a_bad_section_matters_only_to_who_reads_it(tmp_path: Path) -> None:
    maker = ElfMaker()
    maker.section(".bad", size=1 << 40)
    maker.section(".good", b"contents")
    path = saved(tmp_path, maker.build())
    with ElfImage.open(path) as image:
        good, bad = image.section(".good"), image.section(".bad")
        assert good is not None
        assert bad is not None
        assert bytes(image.contents(good)) == b"contents"
        with pytest.raises(FormatError, match=r"file\.o: \.bad: section \[1\] ends at 0x1000000"):
            image.contents(bad)


def test_names_that_overlap_to_more_than_memory_holds(tmp_path: Path) -> None:
    maker = ElfMaker()
    for _ in range(200):
        maker.section("", b"")
    table = maker.section("n", b"n" * 1_000_000 + b"\0", type=SHT_STRTAB)
    data = bytearray(maker.build())
    shoff = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<H", data, 62, table)
    for index in range(len(data[shoff:]) // 64):
        struct.pack_into("<I", data, shoff + 64 * index, index)
    with pytest.raises(FormatError, match="absurd"):
        ElfImage.open(saved(tmp_path, bytes(data)))


def test_not_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is a directory"):
        ElfImage.open(tmp_path)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(FormatError, match="not a regular file"):
        ElfImage.open(fifo)
    with pytest.raises(FormatError, match="not a regular file"):
        ElfImage.open("/dev/null")
    with pytest.raises(BtfstepError, match="No such file"):
        ElfImage.open(tmp_path / "absent")
    with pytest.raises(BtfstepError, match="null"):
        ElfImage.open("a\0b")


def _specimen(bits: int, big: bool) -> bytes:
    maker = ElfMaker(bits=bits, big_endian=big, type=ET_EXEC)
    text = maker.section(".text", b"code" * 4, flags=SHF_ALLOC, addr=0x1000)
    maker.load(text)
    packed = zlib.compress(b"debug " * 100)
    maker.section(".debug_info", maker.chdr(1, 600) + packed, flags=SHF_COMPRESSED)
    maker.section(".zdebug_str", b"ZLIB" + struct.pack(">Q", 600) + packed)
    maker.section(".notes", maker.note(b"Linux", 0x101, b"\0\0\0\1") * 2, type=SHT_NOTE, align=4)
    maker.symbol("f", shndx=text)
    return maker.build()


SPECIMENS = [_specimen(bits, big) for bits, big in KINDS]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """One of the specimens, cut short or not, a few of its bytes replaced; headers are hit most."""
    data = bytearray(draw(st.sampled_from(SPECIMENS)))
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    table = len(data) - min(len(data), 64 * 8)
    near = st.integers(0, 63) | st.integers(table, max(table, len(data) - 1)) | st.integers(0, 1 << 16)
    for at, value in draw(st.lists(st.tuples(near, st.integers(0, 255)), max_size=8)):
        if at < len(data):
            data[at] = value
    return bytes(data)


@settings(deadline=2000, max_examples=300)
@given(damaged())
def test_damage_raises_nothing_but_our_errors(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.o"
    path.write_bytes(data)

    with suppress(BtfstepError), ElfImage.open(path) as image:
        for section in image.sections:
            for read in (image.contents, image.raw_contents):
                with suppress(BtfstepError):
                    assert len(read(section)) <= 1 << 20
        with suppress(BtfstepError):
            image.segments()
        with suppress(BtfstepError):
            lto_note(image)
        for name in (".debug_info", ".debug_str"):
            with suppress(BtfstepError):
                image.debug_section(name)


def test_the_specimens_are_good(tmp_path: Path) -> None:
    for data in SPECIMENS:
        with ElfImage.open(saved(tmp_path, data)) as image:
            assert bytes(image.debug_section(".debug_info") or b"") == b"debug " * 100
            assert bytes(image.debug_section(".debug_str") or b"") == b"debug " * 100
            assert lto_note(image) in (1, 1 << 24)
        elffile = pytest.importorskip("elftools.elf.elffile")
        assert elffile.ELFFile(io.BytesIO(data)).num_sections() == 8
