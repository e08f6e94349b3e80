# SPDX-License-Identifier: GPL-2.0-only
"""Make BTF by hand, well formed or not."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack

KINDS = (
    *("unknown", "int", "ptr", "array", "struct", "union", "enum", "fwd", "typedef", "volatile", "const", "restrict"),
    *("func", "func_proto", "var", "datasec", "float", "decl_tag", "type_tag", "enum64"),
)
SIGNED, CHAR, BOOL = 1, 2, 4
MAGIC = 0xEB9F

Members = Sequence[tuple[str, int, int] | tuple[str, int, int, int]]


class BtfMaker:
    """Types are numbered from 1, or after those of `base`. Every method that adds one returns its id.

    `order` is ``<`` or ``>``. Strings are kept once; `base` is a maker whose
    types and strings come first.
    """

    def __init__(self, base: BtfMaker | None = None, *, order: str = "<") -> None:
        self.order = order
        self.base = base
        self.first = 1 if base is None else base.next_id
        self.text_start: int = 0 if base is None else base.text_start + len(base.text)
        self.text: bytes = b"\0" if base is None else b""
        self.strings: dict[str, int] = {"": 0} if base is None else dict(base.strings)
        self.types: list[bytes] = []
        self.layout = b""

    @property
    def next_id(self) -> int:
        return self.first + len(self.types)

    def string(self, text: str) -> int:
        if text not in self.strings:
            self.strings[text] = self.text_start + len(self.text)
            self.text += text.encode("utf-8", "surrogateescape") + b"\0"
        return self.strings[text]

    def words(self, *words: int) -> bytes:
        return pack(f"{self.order}{len(words)}I", *(word & 0xFFFFFFFF for word in words))

    def add(self, kind: str | int, name: str | int, target: int, *rest: int, vlen: int = 0, flag: bool = False) -> int:
        """Any type: `rest` are the words after the first three; a name or a kind may be a number."""
        number = kind if isinstance(kind, int) else KINDS.index(kind)
        name_off = name if isinstance(name, int) else self.string(name)
        self.types.append(self.words(name_off, flag << 31 | number << 24 | vlen, target, *rest))
        return self.next_id - 1

    def integer(self, name: str, size: int = 4, encoding: int = SIGNED) -> int:
        return self.add("int", name, size, encoding << 24 | (size * 8 & 0xFF))

    def floating(self, name: str, size: int) -> int:
        return self.add("float", name, size)

    def ptr(self, target: int) -> int:
        return self.add("ptr", "", target)

    def const(self, target: int) -> int:
        return self.add("const", "", target)

    def volatile(self, target: int) -> int:
        return self.add("volatile", "", target)

    def restrict(self, target: int) -> int:
        return self.add("restrict", "", target)

    def typedef(self, name: str, target: int) -> int:
        return self.add("typedef", name, target)

    def type_tag(self, name: str, target: int, *, attribute: bool = False) -> int:
        return self.add("type_tag", name, target, flag=attribute)

    def decl_tag(self, name: str, target: int, component: int = -1) -> int:
        return self.add("decl_tag", name, target, component)

    def array(self, element: int, length: int, index: int = 0) -> int:
        return self.add("array", "", 0, element, index, length)

    def struct(self, name: str, size: int, members: Members = (), *, kind: str = "struct") -> int:
        """Members are (name, type, offset in bits), and for a bit-field its width."""
        bitfields = any(len(member) == 4 for member in members)
        rest: list[int] = []
        for member in members:
            width = member[3] if len(member) == 4 else 0
            rest += (self.string(member[0]), member[1], width << 24 | member[2])
        return self.add(kind, name, size, *rest, vlen=len(members), flag=bitfields)

    def union(self, name: str, size: int, members: Members = ()) -> int:
        return self.struct(name, size, members, kind="union")

    def fwd(self, name: str, *, union: bool = False) -> int:
        return self.add("fwd", name, 0, flag=union)

    def enum(self, name: str, values: Sequence[tuple[str, int]], size: int = 4, *, signed: bool = False) -> int:
        rest = [word for text, value in values for word in (self.string(text), value)]
        return self.add("enum", name, size, *rest, vlen=len(values), flag=signed)

    def enum64(self, name: str, values: Sequence[tuple[str, int]], size: int = 8, *, signed: bool = False) -> int:
        rest = [word for text, value in values for word in (self.string(text), value, value >> 32)]
        return self.add("enum64", name, size, *rest, vlen=len(values), flag=signed)

    def func_proto(self, result: int, parameters: Sequence[tuple[str, int]] = ()) -> int:
        rest = [word for text, target in parameters for word in (self.string(text), target)]
        return self.add("func_proto", "", result, *rest, vlen=len(parameters))

    def func(self, name: str, prototype: int, linkage: int = 0) -> int:
        return self.add("func", name, prototype, vlen=linkage)

    def var(self, name: str, target: int, linkage: int = 1) -> int:
        return self.add("var", name, target, linkage)

    def datasec(self, name: str, size: int, variables: Sequence[tuple[int, int, int]]) -> int:
        return self.add("datasec", name, size, *(word for entry in variables for word in entry), vlen=len(variables))

    def data(self, *, header: int = 24, type_len: int | None = None, str_len: int | None = None) -> bytes:
        """The BTF. A header of 32 bytes or more is needed for a layout section; the lengths may lie."""
        types = b"".join(self.types)
        at_text = len(types) + len(self.layout)
        start = pack(f"{self.order}HBB", MAGIC, 1, 0) + self.words(
            header,
            0,
            len(types) if type_len is None else type_len,
            at_text,
            len(self.text) if str_len is None else str_len,
            len(types),
            len(self.layout),
        )
        return start[:header].ljust(header, b"\0") + types + self.layout + self.text
