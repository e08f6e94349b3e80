# SPDX-License-Identifier: GPL-2.0-only
"""Fit split BTF that came with a distilled base to the base that is really there.

A module built apart from its kernel carries ``.BTF.base``: a name, a kind and a
size for each type of the kernel that it refers to. Here each of them is looked
up in the kernel's BTF, and the module's BTF is written anew with the ids that
it finds, as the kernel does when it loads the module.
"""

from __future__ import annotations

from struct import pack

from btfstep.btf.reader import KINDS, BtfReader
from btfstep.errors import FormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    Type = tuple[int, int, int, bool, int, tuple[int, ...]]

INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD = (
    KINDS.index(kind) for kind in ("INT", "PTR", "ARRAY", "STRUCT", "UNION", "ENUM", "FWD")
)
FLOAT, ENUM64, FUNC_PROTO, DATASEC = (KINDS.index(kind) for kind in ("FLOAT", "ENUM64", "FUNC_PROTO", "DATASEC"))
REFERENCES = frozenset(
    KINDS.index(kind)
    for kind in ("PTR", "TYPEDEF", "VOLATILE", "CONST", "RESTRICT", "FUNC", "VAR", "DECL_TAG", "TYPE_TAG")
)
# References that a struct's size reaches through.
EMBEDDING = frozenset(KINDS.index(kind) for kind in ("TYPEDEF", "VOLATILE", "CONST", "RESTRICT", "TYPE_TAG"))
DISTILLED = frozenset((INT, FLOAT, ENUM, STRUCT, UNION, FWD))

# (words in an element, which of them is a string offset, which is a type id); -1: none
ELEMENTS = {
    STRUCT: (3, 0, 1),
    UNION: (3, 0, 1),
    ENUM: (2, 0, -1),
    ENUM64: (3, 0, -1),
    FUNC_PROTO: (2, 0, 1),
    DATASEC: (3, -1, 0),
}
CHAIN_MAX = 1024
# A base has a few types of a name; what has more is made to take forever.
COMPARISONS_MAX = 1 << 20
TEXT_MAX = 1 << 24


def relocate(split: BtfReader, base: BtfReader) -> BtfReader:
    """The types of `split`, whose base is a distilled one, as split from `base`.

    Raises FormatError if `base` has no such type, or several that cannot be
    told apart.
    """
    distilled = split.base
    assert distilled is not None
    ids, names = _match(split, distilled, base)
    shift = len(base) - len(distilled)
    ids.update({type_id: type_id + shift for type_id in range(len(distilled), len(split))})
    ids[0] = 0
    text_shift = base.text_size - distilled.text_size

    def new_name(type_id: int, offset: int) -> int:
        if offset >= distilled.text_size:
            return offset + text_shift
        if offset and offset not in names:
            raise _error(split, f"type [{type_id}]: string {offset:#x} of .BTF.base is no type's name")
        return names.get(offset, 0)

    words: list[int] = []
    for type_id in range(len(distilled), len(split)):
        name, kind, vlen, kind_flag, target, rest = split.record(type_id)
        if not 0 < kind < len(KINDS):
            raise _error(split, f"type [{type_id}]: unknown kind {kind}, which cannot be fitted to another base")
        if kind in REFERENCES or kind == FUNC_PROTO:
            target = ids[target]
        if kind == ARRAY:
            rest = (ids[rest[0]], ids[rest[1]], rest[2])
        elif kind in ELEMENTS:
            size, name_at, id_at = ELEMENTS[kind]
            changed = list(rest)
            for at in range(0, vlen * size, size):
                if name_at >= 0:
                    changed[at + name_at] = new_name(type_id, changed[at + name_at])
                if id_at >= 0:
                    changed[at + id_at] = ids[changed[at + id_at]]
            rest = tuple(changed)
        words += (new_name(type_id, name), int(kind_flag) << 31 | kind << 24 | vlen, target, *rest)
    types = pack(f"={len(words)}I", *words)
    layout = split.layout or b""
    strings = split.strings
    header = pack(
        "=HBBIIIIIII", 0xEB9F, 1, 0, 32, 0, len(types), len(types) + len(layout), len(strings), len(types), len(layout)
    )
    return BtfReader(
        header + types + layout + strings,
        base,
        path=split.path,
        section=split.section,
        address_size=split.address_size,
    )


def _match(split: BtfReader, distilled: BtfReader, base: BtfReader) -> tuple[dict[int, int], dict[int, int]]:
    """Find the types of the distilled base in `base`: from id to id, and from string offset to string offset."""
    wanted: dict[bytes, list[int]] = {}
    text = 0
    for type_id in range(1, len(distilled)):
        name_off, kind, *_ = distilled.record(type_id)
        if kind not in DISTILLED or not name_off:
            raise _error(distilled, f"type [{type_id}]: not a named type of a kind that a distilled base has")
        name = distilled.name(type_id)
        text += len(name)
        if text > TEXT_MAX + distilled.text_size:
            raise _error(distilled, "names of types overlap too much")
        wanted.setdefault(name, []).append(type_id)
    embedded = _embedded(split, distilled)

    candidates = base.find_all(wanted)
    ids: dict[int, int] = {}
    names: dict[int, int] = {}
    comparisons = 0
    for name, distilled_ids in wanted.items():
        records = [(type_id, base.record(type_id)) for type_id in candidates[name]]
        comparisons += len(records) * len(distilled_ids)
        if comparisons > COMPARISONS_MAX:
            raise _error(distilled, "too many types of the same names")
        composites = sum(record[1] in (STRUCT, UNION) for _, record in records)
        for distilled_id in distilled_ids:
            old = distilled.record(distilled_id)
            fits = [
                (type_id, record)
                for type_id, record in records
                if _fits(old, record, same_size=composites > 1, embedded=distilled_id in embedded)
            ]
            if len(fits) > 1:  # a declaration beside its definition leaves no doubt
                fits = [(type_id, record) for type_id, record in fits if record[1] != FWD] or fits
            if len(fits) != 1:
                problem = (
                    "is not in the base" if not fits else f"could be any of types {[type_id for type_id, _ in fits]}"
                )
                shown = name.decode("utf-8", "surrogateescape")
                raise _error(distilled, f"type [{distilled_id}]: {KINDS[old[1]]} {shown} {problem}")
            ids[distilled_id] = fits[0][0]
            names[old[0]] = fits[0][1][0]
    return ids, names


def _fits(old: Type, new: Type, *, same_size: bool, embedded: bool) -> bool:
    """Whether a type of the base, of the same name, can be what the distilled base means."""
    kind, flag, size = old[1], old[3], old[4]
    new_kind, new_flag, new_size = new[1], new[3], new[4]
    if kind == FWD:
        if new_kind == FWD:
            return flag == new_flag
        # The kind flag of a struct says something else, but this is what the kernel looks at.
        return new_kind == (UNION if new_flag else STRUCT)
    if kind in (STRUCT, UNION):
        if new_kind not in (STRUCT, UNION, FWD):
            return False
        return size == new_size or not (embedded or (same_size and new_kind != FWD))
    if size != new_size:
        return False
    if kind == INT:
        return new_kind == INT and old[5][0] >> 24 == new[5][0] >> 24
    if kind == ENUM:
        return new_kind in (ENUM, ENUM64)
    return kind == new_kind


def _embedded(split: BtfReader, distilled: BtfReader) -> set[int]:
    """The types of the distilled base whose size counts, because a struct of the module embeds them."""
    found = set()
    ends: dict[int, int] = {}  # where the references from a type lead, if that was found out
    for type_id in range(len(distilled), len(split)):
        _, kind, _, _, _, rest = split.record(type_id)
        if kind not in (STRUCT, UNION):
            continue
        for member in rest[1::3]:
            target = member
            path: list[int] = []
            while target not in ends:
                _, kind, _, _, next_target, target_rest = split.record(target)
                if kind != ARRAY and kind not in EMBEDDING:
                    ends[target] = target
                    if kind in (STRUCT, UNION) and target < len(distilled):
                        found.add(target)
                    break
                if len(path) == CHAIN_MAX:
                    raise _error(
                        split, f"type [{type_id}]: reference cycle, or more than {CHAIN_MAX} references in a row"
                    )
                path.append(target)
                target = target_rest[0] if kind == ARRAY else next_target
            ends.update(dict.fromkeys(path, ends[target]))
    return found


def _error(reader: BtfReader, message: str) -> FormatError:
    return FormatError(message, path=reader.path, section=reader.section)
