# SPDX-License-Identifier: GPL-2.0-only
"""The key under which the result of an encode is kept: a digest of all that the result depends on.

That is what encoding reads of the file, the base's BTF, the settings, and this program.
Taking it costs little more than reading the file: XXH3 of 128 bits is ten times as fast as a hash that withstands
whoever wants two inputs of one digest, and the digest of a file is only ever compared with what lies beside it.
"""

from __future__ import annotations

import marshal
import os

from xxhash import xxh3_128

from btfstep import __version__
from btfstep.elf.constants import SHT_NOBITS, SHT_NULL, SHT_REL, SHT_RELA, SHT_SYMTAB, SHT_SYMTAB_SHNDX
from btfstep.elf.image import ElfImage
from btfstep.elf.notes import lto_note
from btfstep.elf.symbols import SymbolTable
from btfstep.encode.kfuncs import mark_kfuncs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from btfstep.elf.image import Section
    from btfstep.encode.settings import EncodeSettings

OUTPUTS = (".BTF", ".BTF.base")


def result_parts(
    path: str, base_digest: bytes, options: EncodeSettings, distill: bool, held: dict[str, bytes] | None = None
) -> dict[str, str]:
    """What the result of encoding the file `path` with these depends on: digests, and what is short as it is, by name.

    `held` is filled with the results that the file holds now, by section name.

    Raises FormatError or BtfstepError if what encoding reads cannot be read.
    """
    # What is only about the place of the result, or about messages, is left out.
    names = [name for name in options.features.names() if name not in ("distilled_base", "reproducible_build")]
    lang = None if options.lang is None else sorted(options.lang)
    settings = (distill, lang, sorted(options.lang_exclude), options.cu_exclude, options.kabi_prefix)
    with ElfImage.open(path) as image:
        if held is not None:
            sections = [image.section(name) for name in OUTPUTS]
            held.update((section.name, bytes(image.contents(section))) for section in sections if section is not None)
        return {
            "program": xxh3_128(repr(program()).encode("utf-8", "surrogateescape")).hexdigest(),
            "features": ",".join(names),
            "settings": ascii(settings),
            "base": base_digest.hex(),
            **file_digests(image, kfuncs=options.features.decl_tag_kfuncs),
        }


def result_key(parts: Mapping[str, str]) -> bytes:
    """The key of what depends on these parts."""
    return xxh3_128(notes(parts)).digest()


def notes(parts: Mapping[str, str]) -> bytes:
    """The parts as text, for a record."""
    return "".join(f"{name} {value}\n" for name, value in parts.items()).encode()


def parts_of(text: bytes) -> dict[str, str]:
    """The parts from such a text."""
    lines = [line.partition(" ") for line in text.decode(errors="replace").splitlines()]
    return {name: value for name, _, value in lines}


def file_digests(image: ElfImage, *, kfuncs: bool) -> dict[str, str]:
    """Digests of what encoding reads of an ELF file, `kfuncs` if it reads those too.

    They are the same for a module before and after it gets its BTF, wherever its
    sections lie in the file.  Of ``.BTF_ids``, whose ids are patched later on,
    only the kfuncs and their flags count.

    Raises FormatError if a section is not inside the file.
    """
    # Placing the sections of a module, and finding those of variables, takes the headers of
    # all. The offset is not part of that, and names grow by those of the sections we add.
    headers = [
        (section.index, *section[1:5], *section[6:])
        for section in image.sections
        if section.type != SHT_NULL and section.name not in OUTPUTS and section.index != image.shstrndx
    ]
    found = None
    if kfuncs:
        recorder = _Kfuncs(image)
        mark_kfuncs(image, recorder)  # type: ignore[arg-type]  # as much of one as they need
        found = recorder.found
    facts = (image.is64, image.big_endian, image.type, image.machine, image.flags, lto_note(image), headers)
    debug, symbols = xxh3_128(), xxh3_128()
    for section, digest in _read(image, debug, symbols):
        if section.type != SHT_NOBITS:
            digest.update(image.raw_contents(section))
    return {
        "debug": debug.hexdigest(),
        "symbols": symbols.hexdigest(),
        "kfuncs": xxh3_128(marshal.dumps(found, 2)).hexdigest(),
        # (version 2 writes equal values the same, and several times sooner than repr)
        "headers": xxh3_128(marshal.dumps(facts, 2)).hexdigest(),
    }


def _read(image: ElfImage, debug: xxh3_128, symbols: xxh3_128) -> list[tuple[Section, xxh3_128]]:
    """The sections whose contents encoding reads, or may, each with the digest that it goes into.

    That is debug sections and their relocations, and symbols.
    """
    wanted: dict[int, xxh3_128] = {}
    for section in image.sections:
        if section.name.startswith((".debug_", ".zdebug_")):
            wanted[section.index] = debug
        elif section.name == ".symtab" or section.type in (SHT_SYMTAB, SHT_SYMTAB_SHNDX):
            wanted[section.index] = wanted[section.link] = symbols
    for section in image.sections:
        if section.type in (SHT_REL, SHT_RELA) and section.info in wanted:
            wanted[section.index] = wanted[section.info]
            wanted.setdefault(section.link, symbols)
    return [(section, wanted[section.index]) for section in image.sections if section.index in wanted]


class _Kfuncs:
    """A table of symbols to those who mark kfuncs; takes down what they read of ``.BTF_ids``."""

    def __init__(self, image: ElfImage) -> None:
        self.found: list[tuple[bytes, int]] = []
        self.in_section = SymbolTable(image).in_section

    def mark_kfunc(self, name: bytes, flags: int) -> bool:
        self.found.append((name, flags))
        return True


_program: tuple[object, ...] | None = None


def program() -> tuple[object, ...]:
    """What tells this program from another that may give other bytes: its version and the files it consists of.

    The version alone would not do for whoever changes the program.
    """
    global _program
    if _program is None:
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        files = []
        for folder in ("", "btf", "dwarf", "elf", "encode"):
            with os.scandir(os.path.join(root, folder)) as entries:
                for entry in entries:
                    if entry.name.endswith((".py", ".so")):
                        status = entry.stat()
                        files.append((folder, entry.name, status.st_size, status.st_mtime_ns))
        _program = (__version__, sorted(files))
    return _program
