# SPDX-License-Identifier: GPL-2.0-only
"""What a BPF object needs of the kernel's BTF: types and symbols by name, each with the reason.

- Types that its CO-RE records name: those are what its instructions were compiled for.
- What it takes by name: ``.ksyms`` externs, and what its programs attach to.
- What it defines itself by value, or takes as an argument, from its own BTF: that leaves no record.
- Constants of enumerations, from its DWARF: BTF does not say which were used, and DWARF has all that might.

An object without any CO-RE record was compiled for fixed layouts. Then each type that its debug
information defines counts.
"""

from __future__ import annotations

from btfstep.bpf.records import SECTION, core_records
from btfstep.btf.entries import (
    DATASEC,
    FUNC,
    PTR,
    STRUCT,
    VAR,
    closure,
    entry_name,
    enumerators,
    is_enumeration,
    kind_word,
    resolved,
)
from btfstep.btf.load import load
from btfstep.btf.reader import BtfReader
from btfstep.elf.constants import SHT_NOBITS
from btfstep.elf.image import ElfImage
from btfstep.errors import FormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from btfstep.bpf.source import Source

SHF_EXECINSTR = 0x4
_EXTERN = 2  # the linkage of a function or variable that is elsewhere
_TYPES = frozenset(("struct", "union", "enum", "typedef"))

# The first part of a section's name, and what of the kernel's BTF a program there attaches to.
_ATTACH = {
    **dict.fromkeys(("fentry", "fexit", "fmod_ret", "fentry.s", "fexit.s", "fmod_ret.s"), ("func", "{}")),
    **dict.fromkeys(("fsession", "fsession.s"), ("func", "{}")),
    **dict.fromkeys(("lsm", "lsm.s", "lsm_cgroup"), ("func", "bpf_lsm_{}")),
    **dict.fromkeys(("iter", "iter.s"), ("func", "bpf_iter_{}")),
    "tp_btf": ("typedef", "btf_trace_{}"),
}


class Needs:
    """What one object, or several, need.

    Attributes:
        by_record: (kind, name) to the reason; flavors are alike, and that there is none is worth knowing.
        by_name: (kind, name) to the reason; of the kernel only if it has such a type, since the object may define its
            own.
        constants: the name of an enumeration to those of its constants, where only values count.
    """

    def __init__(self) -> None:
        self.by_record: dict[tuple[str, bytes], str] = {}
        self.by_name: dict[tuple[str, bytes], str] = {}
        self.constants: dict[str, set[bytes]] = {}

    def add(self, path: str, *, everything: bool | None = None) -> None:
        """Add those of the BPF object at `path`.

        `everything`: all types that it defines; None for that if it has no CO-RE records.

        Raises FormatError if it has no BTF, or what it has is malformed, EncodeError if BTF cannot express its DWARF,
        BtfstepError if it cannot be read.
        """
        with ElfImage.open(path) as image:
            if image.section(".BTF") is None:
                raise FormatError("has no .BTF section; is it a BPF object, compiled with -g?", path=path)
            ext = image.section(SECTION)
            records = b"" if ext is None or ext.type == SHT_NOBITS else bytes(image.contents(ext))
            programs = [section.name for section in image.sections if section.flags & SHF_EXECINSTR and section.size]
            dwarf = image.section(".debug_info") is not None
        btf = load(path)
        recorded = self._add_records(btf, records, path) if records else False
        self._add_programs(programs)
        self._add_symbols(btf)
        debug = _dwarf(path) if dwarf else None
        if everything or (everything is None and not recorded):
            self._add_types(btf, range(1, len(btf)), "defined")
            if debug is not None:
                self._add_types(debug, range(1, len(debug)), "defined")
        else:
            self._add_types(btf, _held(btf), "held by value")
        if debug is not None:
            self._add_constants(debug)

    def limit(self, source: Source) -> None:
        """Drop constants that the programs' source does not name, and add the types that it does: those leave no
        trace in an object."""
        for kind, name in source.types:
            self.by_name.setdefault((kind, name), "named in the source")
        limited = {enumeration: names & source.words for enumeration, names in self.constants.items()}
        self.constants = {enumeration: names for enumeration, names in limited.items() if names}

    def add_type(self, name: str) -> None:
        """Add every type of a name that the caller knows of."""
        for kind in _TYPES:
            self.by_name.setdefault((kind, name.encode("utf-8", "surrogateescape")), "named")

    def _add_records(self, btf: BtfReader, data: bytes, path: str) -> bool:
        found = False
        for type_id, kind in core_records(data, path):
            if type_id >= len(btf):
                raise FormatError(f"CO-RE record of type {type_id}, and there are {len(btf)}", path=path)
            if kind == "local_type_id":
                continue
            found = True
            self._need(btf, resolved(btf, type_id), f"CO-RE {kind}")
        return found

    def _need(self, btf: BtfReader, type_id: int, why: str) -> None:
        name = btf.name(type_id)
        kind = kind_word(btf, type_id)
        if kind == "fwd":
            kind = "union" if btf.record(type_id)[3] else "struct"
        if name and kind in (*_TYPES, "int", "float"):
            self.by_record.setdefault((kind, essential(name)), why)

    def _add_programs(self, sections: Iterable[str]) -> None:
        for section in sections:
            kind, _, target = section.removeprefix("?").partition("/")
            if kind in _ATTACH and target:
                sort, pattern = _ATTACH[kind]
                name = pattern.format(target.rpartition(":")[2])  # MODULE:FUNCTION is a function of a module
                self.by_record.setdefault((sort, name.encode("utf-8", "surrogateescape")), f"SEC({section})")

    def _add_symbols(self, btf: BtfReader) -> None:
        for section, type_id in _variables(btf):
            target = btf.record(type_id)[4]
            if section == b".ksyms":
                kind = btf.kind(type_id)
                # A variable of type void is an address, which is no matter of BTF.
                if kind == FUNC or (kind == VAR and resolved(btf, target)):
                    self.by_record.setdefault((kind_word(btf, type_id), essential(btf.name(type_id))), "extern")
            elif section.removeprefix(b"?") in (b".struct_ops", b".struct_ops.link"):
                target = resolved(btf, target)
                if btf.kind(target) == STRUCT and btf.name(target):
                    name = essential(btf.name(target))
                    self.by_record.setdefault(("struct", name), "struct_ops")
                    self.by_record.setdefault(("struct", b"bpf_struct_ops_" + name), "struct_ops")

    def _add_types(self, btf: BtfReader, ids: Iterable[int], why: str) -> None:
        for type_id in ids:
            kind, name = kind_word(btf, type_id), btf.name(type_id)
            if name and kind in _TYPES:
                self.by_name.setdefault((kind, name), why)

    def _add_constants(self, btf: BtfReader) -> None:
        for type_id in range(1, len(btf)):
            if is_enumeration(btf, type_id):
                names = self.constants.setdefault(entry_name(btf, type_id), set())
                names.update(name for name, _ in enumerators(btf, type_id))


def essential(name: bytes) -> bytes:
    """A name without its flavor, which is what follows the last three underscores inside of it: ``a___b`` is ``a``."""
    at = name.rfind(b"___")
    while at > 0:
        if name[at - 1 : at] != b"_" and name[at + 3 : at + 4] not in (b"_", b""):
            return name[:at]
        at = name.rfind(b"___", 0, at + 2)
    return name


def _dwarf(path: str) -> BtfReader | None:
    """The types of an object's DWARF, which has more of them than its BTF."""
    from btfstep.encode.api import encode_file
    from btfstep.encode.settings import EncodeSettings
    from btfstep.features import parse_features

    data = encode_file(path, jobs=1, options=EncodeSettings(features=parse_features("default")))
    return None if data is None else BtfReader(data, path=path)


def _variables(btf: BtfReader) -> list[tuple[bytes, int]]:
    """The names of sections, and the variables and functions in them."""
    return [
        (btf.name(section), type_id)
        for section in range(1, len(btf))
        if btf.kind(section) == DATASEC
        for type_id in btf.record(section)[5][0::3]
        if btf.kind(type_id) in (VAR, FUNC)
    ]


def _held(btf: BtfReader) -> set[int]:
    """The entries of an object's BTF that it holds by value, or is given a pointer to: variables, maps, arguments."""
    roots: list[int] = []
    for section, type_id in _variables(btf):
        target = resolved(btf, btf.record(type_id)[4])
        if section == b".maps" and btf.kind(target) == STRUCT:
            # A map's key and value are members that point to them.
            roots += [_pointee(btf, member) for member in btf.record(target)[5][1::3]]
        elif section not in (b".ksyms", b".kconfig"):
            roots.append(target)
    for type_id in range(1, len(btf)):
        _, kind, linkage, _, prototype, _ = btf.record(type_id)
        if kind == FUNC and linkage != _EXTERN:
            _, _, _, _, result, rest = btf.record(prototype)
            roots += [_pointee(btf, part) for part in (result, *rest[1::2])]
    return {*roots, *closure(btf, roots)}


def _pointee(btf: BtfReader, type_id: int) -> int:
    """What a pointer points to, or else the type itself."""
    target = resolved(btf, type_id)
    return resolved(btf, btf.record(target)[4]) if btf.kind(target) == PTR else target
