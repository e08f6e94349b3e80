# SPDX-License-Identifier: GPL-2.0-only
"""BTF as definitions by name, where type ids do not count: what has a name, and what is inside of what.

An entry is a type that something can be named after: anything with a name but a tag on a
reference, and an anonymous enumeration, which goes by its first constant.
"""

from __future__ import annotations

from btfstep.btf.reader import KINDS, BtfReader
from btfstep.errors import FormatError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF = (
    KINDS.index(kind) for kind in ("PTR", "ARRAY", "STRUCT", "UNION", "ENUM", "FWD", "TYPEDEF")
)
FUNC, FUNC_PROTO, VAR, DATASEC, ENUM64 = (
    KINDS.index(kind) for kind in ("FUNC", "FUNC_PROTO", "VAR", "DATASEC", "ENUM64")
)
QUALIFIERS = frozenset(KINDS.index(kind) for kind in ("VOLATILE", "CONST", "RESTRICT", "TYPE_TAG"))
_ALIASES = QUALIFIERS | {TYPEDEF, FUNC, VAR, KINDS.index("DECL_TAG")}
_WHOLE = frozenset((STRUCT, UNION))
_ENUMS = frozenset((ENUM, ENUM64))
_NAMED = _ENUMS | {TYPEDEF, KINDS.index("INT"), KINDS.index("FLOAT")}
_CHAIN_MAX = 100


def kind_word(reader: BtfReader, type_id: int) -> str:
    """The kind as a person writes it: ``struct``, ``func``, ...; ``enum`` for both sorts of enumeration."""
    kind = reader.kind(type_id)
    return "enum" if kind == ENUM64 else KINDS[kind if kind < len(KINDS) else 0].lower()


def entry_name(reader: BtfReader, type_id: int) -> str:
    """The name that an entry goes by, in printable letters; ``{RED}`` for an anonymous enumeration of RED and more."""
    name = reader.name(type_id)
    if not name and reader.kind(type_id) in _ENUMS:
        rest = reader.record(type_id)[5]
        return "{" + _text(reader.text_at(rest[0]) if rest else b"") + "}"
    return _text(name)


def closure(reader: BtfReader, roots: Iterable[int]) -> dict[int, int]:
    """The entries that `roots` hold by value, directly or not: from the entry's id to that of an entry that holds it.

    Those are numbers, typedefs, enumerations, and named structs and unions; what is only pointed to is not among them.
    """
    held: dict[int, int] = {}
    todo = [(root, root) for root in roots]
    seen = {root for root, _ in todo}
    while todo:
        type_id, holder = todo.pop()
        for part in _parts(reader, type_id):
            if part in seen:
                continue
            seen.add(part)
            kind = reader.kind(part)
            if kind in _NAMED or (kind in _WHOLE and reader.name(part)):
                held[part] = holder
                todo.append((part, part))
            else:
                todo.append((part, holder))
    return held


def resolved(reader: BtfReader, type_id: int) -> int:
    """The type without its qualifiers and tags. Raises FormatError if there are only those."""
    for _ in range(_CHAIN_MAX):
        if reader.kind(type_id) not in QUALIFIERS:
            return type_id
        type_id = reader.record(type_id)[4]
    raise FormatError(f"type [{type_id}]: reference cycle", path=reader.path, section=reader.section)


def enumerators(reader: BtfReader, type_id: int) -> Iterator[tuple[bytes, int]]:
    """The constants of an enumeration: the name, and the value as its bits, without a sign."""
    _, kind, _, _, _, rest = reader.record(type_id)
    if kind == ENUM:
        for name, value in zip(rest[0::2], rest[1::2], strict=True):
            yield reader.text_at(name), value
    elif kind == ENUM64:
        for name, low, high in zip(rest[0::3], rest[1::3], rest[2::3], strict=True):
            yield reader.text_at(name), high << 32 | low


def is_enumeration(reader: BtfReader, type_id: int) -> bool:
    """Whether a type is an enumeration, of either sort."""
    return reader.kind(type_id) in _ENUMS


def _parts(reader: BtfReader, type_id: int) -> tuple[int, ...]:
    """The types that one consists of, or stands for."""
    _, kind, _, _, target, rest = reader.record(type_id)
    if kind in _WHOLE:
        return rest[1::3]
    if kind == ARRAY:
        return (rest[0],)
    if kind == FUNC_PROTO:
        return (target, *rest[1::2])
    if kind == DATASEC:
        return rest[0::3]
    return (target,) if kind in _ALIASES else ()


def _text(name: bytes) -> str:
    return printable(name.decode("utf-8", "surrogateescape"))
