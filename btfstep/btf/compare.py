# SPDX-License-Identifier: GPL-2.0-only
"""What differs between two BTFs: definitions by name, whatever their type ids and their order.

Of split BTF, its own definitions are compared. Two signatures tell whether a definition changed
(`btfstep.btf.signature`), and only those that did are looked into.
"""

from __future__ import annotations

from btfstep.btf.entries import (
    DATASEC,
    FUNC,
    STRUCT,
    TYPEDEF,
    UNION,
    VAR,
    entry_name,
    enumerators,
    is_enumeration,
    kind_word,
)
from btfstep.btf.reader import KINDS, BtfReader
from btfstep.btf.signature import Signer
from btfstep.btf.spelling import Budget, fields, spell
from btfstep.errors import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple

    class Detail(NamedTuple):
        """One thing that changed in a definition.

        ``what`` is size, member, value, type, linkage, encoding, bits, variable, or other; ``name`` that of the member,
        value or variable. ``old`` and ``new`` are None where there is none; a member is a Field, a variable a tuple
        of offset and size in bytes, everything else a number or a text.
        """

        what: str
        name: str
        old: Any
        new: Any
else:
    from btfstep.elf.tuples import named_tuple

    Detail = named_tuple(__name__, "Detail", "what name old new")

_DECL_TAG, _INT, _FLOAT = (KINDS.index(kind) for kind in ("DECL_TAG", "INT", "FLOAT"))
_SIZED = frozenset((STRUCT, UNION, _INT, _FLOAT, DATASEC, *(KINDS.index(kind) for kind in ("ENUM", "ENUM64"))))
BUDGET = 1 << 20
"""Some five times what is spelled out of kernels 6.1 and 6.12."""

_ENCODINGS = {0: "unsigned", 1: "signed", 2: "char", 4: "bool"}
_LINKAGES = {0: "static", 1: "global", 2: "extern"}


class Comparison:
    """The differences between `old` and `new`, found when this is made.

    Attributes:
        added: ids in `new` of the definitions that only it has.
        removed: ids in `old` of those that only that has.
        changed: ids in both of those that differ.

    All in order of the first id in each. After `budget` members and types no more details are found. Raises FormatError
    for types that are endless.
    """

    def __init__(self, old: BtfReader, new: BtfReader, *, budget: int = BUDGET) -> None:
        self.old = old
        self.new = new
        self._budget = Budget(budget)
        old_signatures, new_signatures = Signer(old).own(), Signer(new).own()
        left = _only(old, old_signatures, new_signatures)
        right = _only(new, new_signatures, old_signatures)
        # Several of one name are told apart by their order only.
        rest: dict[tuple[str, str, str], list[int]] = {}
        for type_id in reversed(right):
            rest.setdefault(_key(new, type_id), []).append(type_id)
        self.removed: list[int] = []
        self.changed: list[tuple[int, int]] = []
        for type_id in left:
            same = rest.get(_key(old, type_id))
            if same:
                self.changed.append((type_id, same.pop()))
            else:
                self.removed.append(type_id)
        self.added = sorted(type_id for ids in rest.values() for type_id in ids)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def details(self, old_id: int, new_id: int) -> list[Detail]:
        """What changed in one of `changed`, in the order of the definition; at least one."""
        old, new = self.old, self.new
        sides = ((old, old_id), (new, new_id))
        kind = old.kind(old_id)
        found = _single("size", _size(old, old_id), _size(new, new_id))
        if kind in (STRUCT, UNION):
            before, after = ({field.name: field for field in fields(*side, self._budget)} for side in sides)
            # Halves of something would look like a change of their own.
            found += _by_name("member", before, after) if self._budget.left >= 0 else []
        elif is_enumeration(old, old_id):
            before_values = {printable(name.decode("utf-8", "surrogateescape")): v for name, v in _values(old, old_id)}
            after_values = {printable(name.decode("utf-8", "surrogateescape")): v for name, v in _values(new, new_id)}
            found += _by_name("value", before_values, after_values)
        elif kind == DATASEC:
            found += _by_name("variable", _variables(old, old_id), _variables(new, new_id))
        elif kind in (TYPEDEF, VAR, FUNC):
            found += _single("type", *(spell(side, side.record(at)[4], self._budget) for side, at in sides))
            found += _single("linkage", _linkage(old, old_id), _linkage(new, new_id))
        elif kind == _INT:
            before_word, after_word = old.record(old_id)[5][0], new.record(new_id)[5][0]
            found += _single("encoding", _encoding(before_word), _encoding(after_word))
            found += _single("bits", before_word & 0xFF, after_word & 0xFF)
        return found or [Detail("other", "", None, None)]

    def describe(self, reader: BtfReader, type_id: int) -> dict[str, Any]:
        """The kind and name of a definition in one of the two; its size in bytes, its type, and what a tag is on."""
        entry: dict[str, Any] = {"kind": kind_word(reader, type_id), "name": entry_name(reader, type_id)}
        kind = reader.kind(type_id)
        size = _size(reader, type_id)
        if size is not None:
            entry["size"] = size
        if kind in (TYPEDEF, VAR, FUNC):
            entry["type"] = spell(reader, reader.record(type_id)[4], self._budget)
        elif kind == _DECL_TAG:
            entry["of"] = _tagged(reader, type_id)
        return entry


def _only(reader: BtfReader, signatures: list[int], others: list[int]) -> list[int]:
    """The ids of the definitions that the other BTF does not have like that."""
    known = set(others)
    known.add(0)  # what defines nothing
    return [type_id for type_id, signature in enumerate(signatures, reader.start_id) if signature not in known]


def _key(reader: BtfReader, type_id: int) -> tuple[str, str, str]:
    """What a definition is found by in the other BTF."""
    of = _tagged(reader, type_id) if reader.kind(type_id) == _DECL_TAG else ""
    return kind_word(reader, type_id), entry_name(reader, type_id), of


def _tagged(reader: BtfReader, type_id: int) -> str:
    """What a declaration tag is on: ``func f``, ``struct s, 2`` for the third member."""
    _, _, _, _, target, (component,) = reader.record(type_id)
    of = f"{kind_word(reader, target)} {entry_name(reader, target)}"
    return of if component == 0xFFFFFFFF else f"{of}, {component}"


def _size(reader: BtfReader, type_id: int) -> int | None:
    _, kind, _, _, size, _ = reader.record(type_id)
    return size if kind in _SIZED else None


def _linkage(reader: BtfReader, type_id: int) -> str:
    _, kind, vlen, _, _, rest = reader.record(type_id)
    number = vlen if kind == FUNC else rest[0] if kind == VAR else 0
    return _LINKAGES.get(number, str(number))


def _encoding(word: int) -> str:
    return _ENCODINGS.get(word >> 24, str(word >> 24))


def _values(reader: BtfReader, type_id: int) -> list[tuple[bytes, int]]:
    """The constants of an enumeration, with their signs."""
    _, kind, _, signed, _, _ = reader.record(type_id)
    top = 1 << (63 if KINDS[kind] == "ENUM64" else 31)
    return [(name, v - 2 * top if signed and v >= top else v) for name, v in enumerators(reader, type_id)]


def _variables(reader: BtfReader, type_id: int) -> dict[str, tuple[int, int]]:
    rest = reader.record(type_id)[5]
    return {
        entry_name(reader, variable): (offset, size)
        for variable, offset, size in zip(rest[0::3], rest[1::3], rest[2::3], strict=True)
    }


def _single(what: str, old: Any, new: Any) -> list[Detail]:
    return [] if old == new else [Detail(what, "", old, new)]


def _by_name(what: str, old: dict[str, Any], new: dict[str, Any]) -> list[Detail]:
    """The differences of two lists of named things, in the new order; what is gone comes where it was."""
    found = []
    places = {name: at for at, name in enumerate(old)}
    names = list(old)
    at = 0  # all before have been told about
    for name, value in new.items():
        place = places.get(name)
        while at < len(names) and names[at] not in new and (place is None or at < place):
            found.append(Detail(what, names[at], old[names[at]], None))
            at += 1
        if place is not None:
            found += [Detail(what, gone, old[gone], None) for gone in names[at:place] if gone not in new]
            at = max(at, place + 1)
        if place is None or old[name] != value:
            found.append(Detail(what, name, old.get(name), value))
    return found + [Detail(what, gone, old[gone], None) for gone in names[at:] if gone not in new]
