# SPDX-License-Identifier: GPL-2.0-only
"""The distilled base: as much of a base as split BTF needs to find its way in another one.

A module that is built apart from its kernel cannot know the ids that the
kernel's types will have.  It takes along, as ``.BTF.base``, what it refers to:
integers, floats and forward declarations as they are, named structs, unions
and enumerations by name and size alone.  Everything else that it used of the
base (pointers, arrays, anonymous structs, ...) moves into the split part.
The result is that of libbpf's btf__distill_base.
"""

from __future__ import annotations

import struct

from btfstep.btf.reader import BtfReader
from btfstep.errors import EncodeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

(_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _FWD, _TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _FUNC, _FUNC_PROTO) = range(
    1, 14
)
_VAR, _DATASEC, _FLOAT, _DECL_TAG, _TYPE_TAG, _ENUM64 = range(14, 20)

_AS_THEY_ARE = (_INT, _FLOAT, _FWD)
_BY_NAME = (_STRUCT, _UNION, _ENUM, _ENUM64)
_ALLOWED = (
    *_AS_THEY_ARE,
    *_BY_NAME,
    *(_PTR, _ARRAY, _TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _FUNC_PROTO, _TYPE_TAG),
)


def distill(split: BtfReader) -> tuple[bytes, bytes]:
    """What ``.BTF`` and ``.BTF.base`` of a module hold, from BTF that is split from a whole base.

    Raises EncodeError if `split` refers to something of its base that cannot move.
    """
    if split.base is None:
        raise ValueError("BTF without a base has nothing to distill")
    start = split.start_id
    used = _used(split)
    base = _Builder(split, None)
    ids = {}  # old type_id -> new type_id
    moved = []
    for type_id in sorted(used):
        name_off, kind, _, _, size, _ = split.record(type_id)
        if kind in _AS_THEY_ARE:
            ids[type_id] = base.copy(type_id)
        elif kind in _BY_NAME and name_off:
            ids[type_id] = base.add([base.string(name_off), (_ENUM if kind == _ENUM64 else kind) << 24, size])
        else:
            moved.append(type_id)
    ours = _Builder(split, base)
    for type_id in range(start, split.total):
        ours.copy(type_id)
    for type_id in moved:
        ids[type_id] = ours.copy(type_id)
    # Our own types keep their order behind a base that is now smaller.
    shift = start - base.next_id
    ours.renumber(lambda type_id: ids[type_id] if type_id in ids else type_id - shift if type_id >= start else type_id)
    return ours.write(), base.write()


def _used(split: BtfReader) -> set[int]:
    """The types of the base that the split part refers to, and what they need."""
    used: set[int] = set()
    todo = list(range(split.start_id, split.total))
    while todo:
        type_id = todo.pop()
        record = _words(split, type_id)
        for at in _id_places(record):
            other = record[at]
            if other == 0 or other >= split.start_id or other in used:
                continue
            name_off, kind, *_ = split.record(other)
            if kind not in _ALLOWED:
                raise EncodeError(f"type [{type_id}] refers to type [{other}] of the base, which cannot be distilled")
            used.add(other)
            # A named struct or union goes by its name, whatever is in it.
            if not (kind in (_STRUCT, _UNION) and name_off):
                todo.append(other)
    return used


def _words(btf: BtfReader, type_id: int) -> list[int]:
    """The record of a type as the words that the format has: name_off, info, size or type, the rest."""
    name_off, kind, vlen, kind_flag, size_or_type, rest = btf.record(type_id)
    return [name_off, int(kind_flag) << 31 | kind << 24 | vlen, size_or_type, *rest]


def _kind(record: list[int]) -> int:
    return record[1] >> 24 & 0x1F


def _id_places(record: list[int]) -> list[int]:
    """Where type ids stand in a record."""
    kind = _kind(record)
    if kind == _ARRAY:
        return [3, 4]
    if kind in (_STRUCT, _UNION):
        return list(range(4, len(record), 3))
    if kind == _FUNC_PROTO:
        return [2, *range(4, len(record), 2)]
    if kind == _DATASEC:
        return list(range(3, len(record), 3))
    if kind in (_INT, _FLOAT, _FWD, _ENUM, _ENUM64):
        return []
    return [2]


def _name_places(record: list[int]) -> list[int]:
    """Where string offsets stand in a record."""
    kind = _kind(record)
    if kind in (_STRUCT, _UNION, _ENUM64):
        return [0, *range(3, len(record), 3)]
    if kind in (_ENUM, _FUNC_PROTO):
        return [0, *range(3, len(record), 2)]
    return [0]


class _Builder:
    """New BTF from records of another one."""

    def __init__(self, source: BtfReader, base: _Builder | None) -> None:
        self._source = source
        self._base = base
        self._records: list[list[int]] = []
        self._strings = bytearray(b"" if base else b"\0")
        self._string_start = base.string_end if base else 0
        self._offsets: dict[int, int] = {0: 0}  # of the source's strings here
        self._first_id = base.next_id if base else 1

    @property
    def next_id(self) -> int:
        return self._first_id + len(self._records)

    @property
    def string_end(self) -> int:
        return self._string_start + len(self._strings)

    def string(self, offset: int) -> int:
        """The offset here of the source's string at `offset`."""
        known = self._offsets.get(offset)
        if known is None and self._base is not None:
            known = self._base._offsets.get(offset)
        if known is None:
            known = self.string_end
            self._strings += self._source.text_at(offset) + b"\0"
            self._offsets[offset] = known
        return known

    def add(self, record: list[int]) -> int:
        self._records.append(record)
        return self.next_id - 1

    def copy(self, type_id: int) -> int:
        """Add a type of the source; the ids in it are still the source's."""
        record = _words(self._source, type_id)
        for at in _name_places(record):
            record[at] = self.string(record[at])
        return self.add(record)

    def renumber(self, new_id: Callable[[int], int]) -> None:
        for record in self._records:
            for at in _id_places(record):
                record[at] = new_id(record[at])

    def write(self) -> bytes:
        order = ">" if self._source.big_endian else "<"
        words = [word for record in self._records for word in record]
        size = 4 * len(words)
        header = struct.pack(f"{order}HBBIIIII", 0xEB9F, 1, 0, 24, 0, size, size, len(self._strings))
        return header + struct.pack(f"{order}{len(words)}I", *words) + bytes(self._strings)
