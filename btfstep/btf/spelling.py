# SPDX-License-Identifier: GPL-2.0-only
"""Types as a person would write them in a declaration, on one line and of bounded length.

`btfstep.btf.cdump` writes C for compilers; this is for messages. Types go by name, and what has no
name is spelled out as far as that helps.
"""

from __future__ import annotations

from btfstep.btf.entries import (
    ARRAY,
    FUNC,
    FUNC_PROTO,
    PTR,
    QUALIFIERS,
    STRUCT,
    UNION,
    entry_name,
    kind_word,
)
from btfstep.btf.reader import KINDS, BtfReader
from btfstep.errors import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NamedTuple

    class Field(NamedTuple):
        """A member as programs name it, ``a.b`` for one inside of an anonymous struct; offset and width in bits.

        ``bit_size`` is 0 unless it is a bit-field.
        """

        name: str
        type: str
        bit_offset: int
        bit_size: int
else:
    from btfstep.elf.tuples import named_tuple

    Field = named_tuple(__name__, "Field", "name type bit_offset bit_size")

_TYPE_TAG = KINDS.index("TYPE_TAG")
_AGGREGATES = frozenset((STRUCT, UNION))
_STEPS = 512  # types in one spelling, or it ends in dots
_DEEPEST = 32  # anonymous structs and prototypes in each other


class Budget:
    """How many members and types are spelled out altogether. Crafted BTF has as many as it likes, in a few bytes."""

    def __init__(self, left: int) -> None:
        self.left = left


def spell(reader: BtfReader, type_id: int, budget: Budget, declared: str = "") -> str:
    """The declaration of something of a type: of `declared`, or the bare type."""
    return _Speller(reader, budget).start(type_id, declared)


def fields(reader: BtfReader, type_id: int, budget: Budget) -> list[Field]:
    """The members of a struct or union, with those of anonymous ones inside of it in their place."""
    found: list[Field] = []
    _add_fields(found, _Speller(reader, budget), type_id, "", 0, 0)
    return found


def _add_fields(found: list[Field], speller: _Speller, type_id: int, prefix: str, start: int, depth: int) -> None:
    reader = speller.reader
    for name, target, offset, width in members(reader, type_id):
        speller.budget.left -= 1
        if speller.budget.left < 0:
            return
        kind = reader.kind(target)
        if kind in _AGGREGATES and not reader.name(target):
            if name or depth == _DEEPEST:
                found.append(Field(prefix + name, f"{kind_word(reader, target)} {{...}}", start + offset, 0))
            if depth < _DEEPEST:
                inner = f"{prefix}{name}." if name else prefix
                _add_fields(found, speller, target, inner, start + offset, depth + 1)
        else:
            found.append(Field(prefix + name, speller.start(target), start + offset, width))


def members(reader: BtfReader, type_id: int) -> Iterator[tuple[str, int, int, int]]:
    """The members of a struct or union: name, type id, offset and width in bits."""
    _, kind, _, flag, _, rest = reader.record(type_id)
    if kind in _AGGREGATES:
        for name, target, at in zip(rest[0::3], rest[1::3], rest[2::3], strict=True):
            yield text_at(reader, name), target, at & 0xFFFFFF if flag else at, at >> 24 if flag else 0


def text_at(reader: BtfReader, offset: int) -> str:
    """A string, in printable letters."""
    return printable(reader.text_at(offset).decode("utf-8", "surrogateescape"))


class _Speller:
    def __init__(self, reader: BtfReader, budget: Budget) -> None:
        self.reader = reader
        self.budget = budget
        self._left = 0  # steps of this spelling

    def start(self, type_id: int, declared: str = "") -> str:
        """Spell one type."""
        self._left = given = max(min(_STEPS, self.budget.left), 0)
        spelled = self.spell(type_id, declared, 0)
        self.budget.left -= given - self._left
        return spelled

    def spell(self, type_id: int, declared: str, depth: int) -> str:
        reader = self.reader
        qualifiers: list[str] = []
        while True:
            self._left -= 1
            if self._left < 0:
                return _join("...", declared)
            name_off, kind, _, flag, target, rest = reader.record(type_id)
            if kind in QUALIFIERS:
                name = text_at(reader, name_off)
                tag = f"__attribute__(({name}))" if flag else f"__{name}"
                qualifiers.insert(0, tag if kind == _TYPE_TAG else KINDS[kind].lower())
            elif kind == PTR:
                declared = _join("*" + " ".join(qualifiers), declared) if qualifiers else "*" + declared
                qualifiers.clear()
            elif kind == ARRAY:
                declared = f"{_grouped(declared)}[{rest[2]}]"
                target = rest[0]
            elif kind == FUNC_PROTO:
                declared = f"{_grouped(declared)}({self._parameters(rest, depth)})"
            elif kind == FUNC:
                declared = declared or text_at(reader, name_off)
            else:
                return _join(" ".join([*qualifiers, self._base(type_id, depth)]), declared)
            type_id = target

    def _parameters(self, rest: tuple[int, ...], depth: int) -> str:
        if depth >= _DEEPEST:
            return "..."
        parameters = []
        for name, target in zip(rest[0::2], rest[1::2], strict=True):
            if target == 0 and name == 0:
                parameters.append("...")
            else:
                parameters.append(self.spell(target, text_at(self.reader, name), depth + 1))
            if self._left < 0:
                break
        return ", ".join(parameters) or "void"

    def _base(self, type_id: int, depth: int) -> str:
        reader = self.reader
        if type_id == 0:
            return "void"
        kind, name = kind_word(reader, type_id), entry_name(reader, type_id)
        if kind == "fwd":
            kind = "union" if reader.record(type_id)[3] else "struct"
        if kind not in ("struct", "union", "enum"):
            return name or kind
        if name:
            return f"{kind} {name}"
        if depth >= _DEEPEST:
            return f"{kind} {{...}}"
        parts = []
        for member, target, _, width in members(reader, type_id):
            parts.append(self.spell(target, member, depth + 1) + (f":{width}" if width else "") + ";")
            if self._left < 0:
                break
        return f"{kind} {{ {' '.join(parts)} }}"


def _grouped(declared: str) -> str:
    return f"({declared})" if declared.startswith("*") else declared


def _join(left: str, right: str) -> str:
    return left + right if right.startswith("[") else f"{left} {right}" if right else left
