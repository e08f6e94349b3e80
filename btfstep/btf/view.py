# SPDX-License-Identifier: GPL-2.0-only
"""BTF as Python objects: types with their names, members and sizes, and their text.

    import btfstep

    btf = btfstep.open_btf("vmlinux")
    task = btf.find("task_struct", "struct")
    print(task.size, [(member.name, member.offset) for member in task.members])
    print(task.c)

Objects are made when they are asked for, and hold no more than a type id.
"""

from __future__ import annotations

from btfstep.btf import rawdump
from btfstep.btf.cdump import CDumper
from btfstep.btf.reader import KINDS, BtfReader
from btfstep.elf.tuples import named_tuple
from btfstep.errors import FormatError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import NamedTuple

    class Member(NamedTuple):
        """A member of a struct or union. ``bit_offset`` and ``bit_size`` are in bits; ``bit_size`` is 0 unless it is a
        bit-field. ``name`` is empty for an anonymous member."""

        name: str
        type: BtfType
        bit_offset: int
        bit_size: int

    class Parameter(NamedTuple):
        """A parameter of a prototype. A last one of type void and without a name is the ellipsis."""

        name: str
        type: BtfType

    class Enumerator(NamedTuple):
        """A constant of an enumeration."""

        name: str
        value: int

    class Variable(NamedTuple):
        """Where a variable is in its section; ``offset`` and ``size`` are in bytes."""

        type: BtfType
        offset: int
        size: int
else:
    Member = named_tuple(__name__, "Member", "name type bit_offset bit_size")
    Parameter = named_tuple(__name__, "Parameter", "name type")
    Enumerator = named_tuple(__name__, "Enumerator", "name value")
    Variable = named_tuple(__name__, "Variable", "type offset size")

_KIND_NAMES = tuple(kind.lower() for kind in KINDS)
_SIZED = frozenset(("int", "struct", "union", "enum", "enum64", "float", "datasec"))
_REFERENCES = frozenset(
    ("ptr", "typedef", "volatile", "const", "restrict", "func", "var", "decl_tag", "type_tag", "func_proto")
)
_ALIASES = frozenset(("typedef", "volatile", "const", "restrict", "type_tag", "var"))
_NAMED_IN_C = frozenset(("struct", "union", "enum", "enum64", "fwd", "typedef", "func"))
_CHAIN_MAX = 1024


class Btf:
    """The types of one BTF and its base, by id.

    A sequence: ``btf[id]`` is a type, id 0 is void, ``len(btf)`` is one more
    than the largest id, and iterating yields all types, void and the base's
    included.
    """

    def __init__(self, reader: BtfReader) -> None:
        self.reader = reader
        self._dumper: CDumper | None = None

    def __len__(self) -> int:
        return len(self.reader)

    def __getitem__(self, type_id: int) -> BtfType:
        if not 0 <= type_id < len(self.reader):
            raise IndexError(f"no type {type_id}: ids are below {len(self.reader)}")
        return BtfType(self, type_id)

    def __iter__(self) -> Iterator[BtfType]:
        return (BtfType(self, type_id) for type_id in range(len(self.reader)))

    @property
    def own(self) -> Iterator[BtfType]:
        """The types that are not the base's."""
        return (BtfType(self, type_id) for type_id in range(self.reader.start_id, len(self.reader)))

    @property
    def address_size(self) -> int:
        """Bytes in a pointer."""
        return self.reader.address_size

    def find_all(self, name: str, kind: str | None = None) -> list[BtfType]:
        """All types of this name, in order of ids; of one kind only, if it is given (as ``BtfType.kind`` has it)."""
        found = (BtfType(self, type_id) for type_id in self.reader.find(_encoded(name)))
        return [found_type for found_type in found if kind is None or found_type.kind == kind]

    def find(self, name: str, kind: str | None = None) -> BtfType:
        """The first of ``find_all``. Raises KeyError if there is none."""
        found = self.find_all(name, kind)
        if not found:
            raise KeyError(name)
        return found[0]

    def header(self, *, sort: bool = True, root_ids: Sequence[int] = (), only: Sequence[str] = ()) -> bytes:
        """A C header, as ``bpftool btf dump file FILE format c`` prints it; `sort` False is its ``unsorted``.

        `root_ids` limits it to these types and what they need, as ``root_id``
        does. `only` does the same by name (of structs, unions, enums, typedefs
        or functions; shell patterns are allowed), and keeps the text and the
        order of the whole header.

        Raises FormatError if C cannot express the types, UsageError if no type
        is so named or numbered.
        """
        if root_ids and only:
            raise UsageError("types are chosen either by id or by name")
        if only:
            return CDumper(self.reader).excerpt(self._named(only), sort=sort)
        self._check_ids(root_ids)
        return CDumper(self.reader).header(sort=sort, roots=tuple(root_ids))

    def raw(self, root_ids: Sequence[int] = ()) -> bytes:
        """The text of ``bpftool btf dump file FILE format raw``. Raises as `header`."""
        self._check_ids(root_ids)
        return rawdump.raw(self.reader, tuple(root_ids))

    def json(self, root_ids: Sequence[int] = (), *, pretty: bool = False) -> bytes:
        """The text of ``bpftool -j btf dump file FILE``, or with ``-p`` if `pretty`. Raises as `header`."""
        self._check_ids(root_ids)
        return rawdump.json(self.reader, tuple(root_ids), pretty=pretty)

    def _check_ids(self, ids: Sequence[int]) -> None:
        for type_id in ids:
            if not 0 <= type_id < len(self):
                raise UsageError(f"invalid root ID: {type_id} (there are {len(self)} types)")

    def _named(self, names: Sequence[str]) -> list[int]:
        found: set[int] = set()
        for name in names:
            matches = [
                type_id for type_id in self._matching(name) if _KIND_NAMES[self.reader.kind(type_id)] in _NAMED_IN_C
            ]
            if not matches:
                raise UsageError(f"no struct, union, enum, typedef or function is named '{name}'")
            found.update(matches)
        return sorted(found)

    def _matching(self, name: str) -> list[int]:
        if not any(letter in name for letter in "*?["):
            return self.reader.find(_encoded(name)) if name else []
        import re
        from fnmatch import translate

        matches = re.compile(translate(name).encode("utf-8", "surrogateescape")).match
        return [type_id for type_id in range(1, len(self)) if (text := self.reader.name(type_id)) and matches(text)]

    def _text(self, type_id: int) -> bytes:
        if self._dumper is None:
            self._dumper = CDumper(self.reader)
        return self._dumper.text(type_id)


class BtfType:
    """One type. Two are equal if they are the same type of the same BTF."""

    __slots__ = ("btf", "id")

    def __init__(self, btf: Btf, type_id: int) -> None:
        self.btf = btf
        self.id = type_id

    @property
    def kind(self) -> str:
        """The kind in lower case: ``int``, ``ptr``, ``struct``, ``func_proto``, ...; ``void`` for type 0, and
        ``unknown`` for one that only a layout section describes."""
        if self.id == 0:
            return "void"
        kind = self.btf.reader.kind(self.id)
        return _KIND_NAMES[kind if kind < len(_KIND_NAMES) else 0]

    @property
    def name(self) -> str:
        """The name; empty for an anonymous type. Bytes that are no UTF-8 are surrogates, as in file names."""
        return _decoded(self.btf.reader.name(self.id))

    @property
    def kind_flag(self) -> bool:
        """The kind flag; for an enumeration, whether its values are signed."""
        return self._record[3]

    @property
    def type(self) -> BtfType | None:
        """What a reference refers to, the element of an array, the result of a prototype; None for other kinds."""
        kind = self.kind
        if kind == "array":
            return BtfType(self.btf, self._record[5][0])
        return BtfType(self.btf, self._record[4]) if kind in _REFERENCES else None

    @property
    def size(self) -> int | None:
        """In bytes, through typedefs and qualifiers; None for what has no size (void, functions, declarations).

        Raises FormatError if the type refers to itself.
        """
        count = 1
        at = self
        for _ in range(_CHAIN_MAX):
            kind = at.kind
            if kind in _SIZED:
                return count * at._record[4]
            if kind == "ptr":
                return count * self.btf.address_size
            if kind == "array":
                count *= at._record[5][2]
            elif kind not in _ALIASES:
                return None
            following = at.type
            assert following is not None
            at = following
        raise FormatError(
            f"type [{self.id}]: reference cycle, or more than {_CHAIN_MAX} references in a row",
            path=self.btf.reader.path,
            section=self.btf.reader.section,
        )

    @property
    def length(self) -> int | None:
        """The elements of an array; None for other kinds."""
        return self._record[5][2] if self.kind == "array" else None

    @property
    def members(self) -> tuple[Member, ...]:
        """Of a struct or union, in order; empty for other kinds."""
        if self.kind not in ("struct", "union"):
            return ()
        _, _, _, flag, _, rest = self._record
        return tuple(
            Member(self._text(name), BtfType(self.btf, target), at & 0xFFFFFF if flag else at, at >> 24 if flag else 0)
            for name, target, at in zip(rest[0::3], rest[1::3], rest[2::3], strict=True)
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Of a prototype, or of a function's prototype; empty for other kinds."""
        kind = self.kind
        if kind == "func":
            prototype = self.type
            return () if prototype is None else prototype.parameters
        if kind != "func_proto":
            return ()
        rest = self._record[5]
        return tuple(
            Parameter(self._text(name), BtfType(self.btf, target))
            for name, target in zip(rest[0::2], rest[1::2], strict=True)
        )

    @property
    def enumerators(self) -> tuple[Enumerator, ...]:
        """Of an enumeration; empty for other kinds."""
        kind = self.kind
        _, _, _, signed, _, rest = self._record
        if kind == "enum":
            pairs = zip(rest[0::2], rest[1::2], strict=True)
            top = 1 << 31
        elif kind == "enum64":
            values = (low | high << 32 for low, high in zip(rest[1::3], rest[2::3], strict=True))
            pairs = zip(rest[0::3], values, strict=True)
            top = 1 << 63
        else:
            return ()
        return tuple(
            Enumerator(self._text(name), value - 2 * top if signed and value >= top else value) for name, value in pairs
        )

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Of a data section; empty for other kinds."""
        if self.kind != "datasec":
            return ()
        rest = self._record[5]
        return tuple(
            Variable(BtfType(self.btf, target), offset, size)
            for target, offset, size in zip(rest[0::3], rest[1::3], rest[2::3], strict=True)
        )

    @property
    def c(self) -> str:
        """The C text: a definition or prototype with its semicolon, or how the type is written in a declaration.

        It stands alone: names are not made unique, and what the type needs is
        not in it. Raises FormatError if C cannot express the type.
        """
        return _decoded(self.btf._text(self.id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BtfType) and other.btf is self.btf and other.id == self.id

    def __hash__(self) -> int:
        return hash((id(self.btf), self.id))

    def __repr__(self) -> str:
        return f"<BtfType [{self.id}] {self.kind} {self.name!r}>"

    @property
    def _record(self) -> tuple[int, int, int, bool, int, tuple[int, ...]]:
        return self.btf.reader.record(self.id)

    def _text(self, offset: int) -> str:
        return _decoded(self.btf.reader.text_at(offset))


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
