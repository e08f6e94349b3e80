# SPDX-License-Identifier: GPL-2.0-only
"""A small reader of BTF that shares no code with btfstep: what the bytes say, by name and never by id.

A type reads from left to right, what it is made of first: ``char const *`` is
a pointer to const char, ``int * [2]`` an array of two pointers, and
``int (int, ...) *`` a pointer to a function.  Named types stand as their
names; their definitions are lines of their own::

    struct s { int a @0; unsigned int b:3 @32; char [2][3] c @40 } size 16
    union u { int a @0; float b @0 } size 4
    fwd struct t
    typedef u64: unsigned long long
    enum e:4 { A=0, B=1 }
    enum signed f:4 { M=-1 }
    enum64 g:8 { B=4294967296 }
    int unsigned int: 32 bits
    float double: 8 bytes
    func int f(struct s * p, ...)
    var static int counter in .data..percpu @8 size 4
    decl_tag "x" on struct s member 1

An anonymous definition stands where it is used.  `@` counts bits in structs
and bytes in sections.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

# fmt: off
_KINDS = (
    "void", "int", "ptr", "array", "struct", "union", "enum", "fwd", "typedef", "volatile", "const", "restrict",
    "func", "func_proto", "var", "datasec", "float", "decl_tag", "type_tag", "enum64",
)
# fmt: on
_ENCODINGS = {0: "", 1: " signed", 2: " char", 4: " bool"}


@dataclass
class Type:
    """One type: the fixed part, and what follows it as tuples of 32-bit words."""

    kind: str
    name: str
    flag: bool
    word: int
    """The size or the type that it refers to."""
    rows: list[tuple[int, ...]] = field(default_factory=list)


# Words that follow a type: (in all, for each of its members).
_TAIL = {
    "int": (1, 0),
    "array": (3, 0),
    "struct": (0, 3),
    "union": (0, 3),
    "enum": (0, 2),
    "func_proto": (0, 2),
    "var": (1, 0),
    "datasec": (0, 3),
    "decl_tag": (1, 0),
    "enum64": (0, 3),
}


class Btf:
    """The types of a ``.BTF`` section's bytes; asserts that the section is well-formed."""

    def __init__(self, data: bytes) -> None:
        self.order = "<" if data[:2] == b"\x9f\xeb" else ">"
        magic, version, _flags, header, types, types_len, strings, strings_len = struct.unpack_from(
            f"{self.order}HBBIIIII", data
        )
        assert (magic, version) == (0xEB9F, 1)
        assert len(data) >= header + strings + strings_len
        self._strings = data[header + strings :][:strings_len]
        assert self._strings.startswith(b"\0")
        assert self._strings.endswith(b"\0")
        self.types = [Type("void", "void", False, 0)]
        self._read(data[header + types :][:types_len])

    def _name(self, offset: int) -> str:
        return self._strings[offset : self._strings.index(b"\0", offset)].decode()

    def _read(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            name, info, word = struct.unpack_from(f"{self.order}III", data, at)
            at += 12
            one = Type(_KINDS[info >> 24 & 0x1F], self._name(name), bool(info >> 31), word)
            once, each = _TAIL.get(one.kind, (0, 0))
            for words in [once] * bool(once) + [each] * ((info & 0xFFFF) if each else 0):
                one.rows.append(struct.unpack_from(f"{self.order}{words}I", data, at))
                at += 4 * words
            self.types.append(one)
        assert at == len(data)

    def spell(self, number: int) -> str:
        """A type as it stands in other types."""
        one = self.types[number]
        kind = one.kind
        if kind in ("void", "int", "float", "typedef"):
            return one.name
        if kind in ("struct", "union", "enum", "enum64", "fwd"):
            if not one.name:
                return self.define(number)
            return f"{self._keyword(one)} {one.name}"
        if kind == "ptr":
            return f"{self.spell(one.word)} *"
        if kind in ("const", "volatile", "restrict"):
            return f"{self.spell(one.word)} {kind}"
        if kind == "type_tag":
            return f"{self.spell(one.word)} {'attribute' if one.flag else 'tag'}({one.name})"
        if kind == "array":
            dimensions = ""
            while one.kind == "array":
                number, _, count = one.rows[0]
                dimensions += f"[{count}]"
                one = self.types[number]
            return f"{self.spell(number)} {dimensions}"
        assert kind == "func_proto", kind
        return f"{self.spell(one.word)} ({self._parameters(one)})"

    @staticmethod
    def _keyword(one: Type) -> str:
        if one.kind == "fwd":
            return "union" if one.flag else "struct"
        return "enum" if one.kind == "enum64" else one.kind

    def _parameters(self, prototype: Type) -> str:
        texts = []
        for position, (name, number) in enumerate(prototype.rows):
            last = position == len(prototype.rows) - 1
            texts.append("..." if last and not number else f"{self.spell(number)} {self._name(name)}".strip())
        return ", ".join(texts)

    def define(self, number: int) -> str:
        """The line that defines a type."""
        one = self.types[number]
        kind, name = one.kind, one.name
        if kind in ("struct", "union"):
            members = "; ".join(self._member(one, row) for row in one.rows)
            return f"{f'{kind} {name}'.strip()} {{ {members} }} size {one.word}".replace("{  }", "{ }")
        if kind in ("enum", "enum64"):
            text = f"{kind}{' signed' if one.flag else ''} {name}:{one.word}".replace(" :", ":")
            values = ", ".join(self._enumerator(one, row) for row in one.rows)
            return f"{text} {{ {values} }}".replace("{  }", "{ }")
        if kind == "fwd":
            return f"fwd {self._keyword(one)} {name}"
        if kind == "typedef":
            return f"typedef {name}: {self.spell(one.word)}"
        if kind == "int":
            (word,) = one.rows[0]
            assert word >> 16 & 0xFF == 0, "offsets of integers are obsolete"
            assert one.word == (word & 0xFF) + 7 >> 3
            return f"int {name}: {word & 0xFF} bits{_ENCODINGS[word >> 24]}"
        if kind == "float":
            return f"float {name}: {one.word} bytes"
        if kind == "func":
            prototype = self.types[one.word]
            assert prototype.kind == "func_proto"
            return f"func {self.spell(prototype.word)} {name}({self._parameters(prototype)})"
        if kind == "decl_tag":
            (component,) = one.rows[0]
            what = self.types[one.word]
            part = ""
            if component != 0xFFFFFFFF:
                part = f" {'parameter' if what.kind == 'func' else 'member'} {component}"
            text = f"{self._keyword(what)} {what.name or '(anonymous)'}"
            return f'decl_{"attribute" if one.flag else "tag"} "{name}" on {text}{part}'
        return self.spell(number)

    def _member(self, one: Type, row: tuple[int, ...]) -> str:
        name, number, place = row
        bits = f":{place >> 24}" if one.flag and place >> 24 else ""
        offset = place & 0xFFFFFF if one.flag else place
        return f"{self.spell(number)} {self._name(name)}".rstrip() + f"{bits} @{offset}"

    def _enumerator(self, one: Type, row: tuple[int, ...]) -> str:
        value = row[1] | row[2] << 32 if one.kind == "enum64" else row[1]
        width = 64 if one.kind == "enum64" else 32
        if one.flag and value >> width - 1:
            value -= 1 << width
        return f"{self._name(row[0])}={value}"

    def lines(self) -> list[str]:
        """A line for each named definition and for each variable, in the order of the types."""
        found = []
        for number, one in enumerate(self.types):
            if one.kind == "datasec":
                found += [self._variable(one, row) for row in one.rows]
            elif one.kind == "decl_tag" or (one.name and one.kind not in ("void", "var", "type_tag")):
                found.append(self.define(number))
        return found

    def _variable(self, section: Type, row: tuple[int, ...]) -> str:
        number, offset, size = row
        one = self.types[number]
        assert one.kind == "var"
        linkage = {0: "static ", 1: "", 2: "extern "}[one.rows[0][0]]
        return f"var {linkage}{self.spell(one.word)} {one.name} in {section.name} @{offset} size {size}"


def view(data: bytes) -> list[str]:
    """The lines of :meth:`Btf.lines`."""
    return Btf(data).lines()
