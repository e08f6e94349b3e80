# SPDX-License-Identifier: GPL-2.0-only
"""The CO-RE records of a BPF object: which types its instructions were compiled for, from ``.BTF.ext``."""

from __future__ import annotations

from struct import Struct

from btfstep.errors import FormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SECTION = ".BTF.ext"
MAGIC = 0xEB9F
VERSION = 1

# enum bpf_core_relo_kind, in its order.
KINDS = (
    *("byte_off", "byte_sz", "field_exists", "signed", "lshift_u64", "rshift_u64"),
    *("local_type_id", "target_type_id", "type_exists", "type_size", "enumval_exists", "enumval_value", "type_matches"),
)

_CORE = 24  # where the header has the offset of the records, and their length; older ones end before
_HEADER_WITH_CORE = 32
_RECORD = 16


def core_records(data: bytes, path: str) -> Iterator[tuple[int, str]]:
    """The type id and the kind, one of KINDS, of each CO-RE record; ``kind N`` for kinds that are not known.

    `data` is the section ``.BTF.ext`` of the file `path`. Raises FormatError
    if it is malformed.
    """
    if len(data) < 8:
        raise _error(path, f"{len(data)} bytes, less than a header")
    order = ">" if data[:2] == MAGIC.to_bytes(2, "big") else "<"
    magic, version, _, header = Struct(order + "HBBI").unpack_from(data)
    if magic != MAGIC:
        raise _error(path, "does not start with the magic number of BTF")
    if version != VERSION:
        raise _error(path, f"version {version}; only {VERSION} is known")
    if header > len(data):
        raise _error(path, f"header of {header} bytes in {len(data)}")
    if header < _HEADER_WITH_CORE:
        return
    start, length = Struct(order + "II").unpack_from(data, _CORE)
    if length == 0:
        return
    at = header + start
    end = at + length
    if end > len(data):
        raise _error(path, f"CO-RE records of {length} bytes run past the end", at)
    if length < 4:
        raise _error(path, f"{length} bytes are no CO-RE records", at)
    word = Struct(order + "I")
    (size,) = word.unpack_from(data, at)
    if size < _RECORD or size % 4:
        raise _error(path, f"CO-RE records of {size} bytes each", at)
    at += 4
    record = Struct(order + "4xI4xI")  # of insn_off, type_id, access_str_off, kind
    section = Struct(order + "4xI")  # of sec_name_off, num_info
    while at < end:
        if end - at < section.size:
            raise _error(path, f"{end - at} bytes left, which name no section", at)
        (count,) = section.unpack_from(data, at)
        at += section.size
        if count * size > end - at:
            raise _error(path, f"{count} CO-RE records, with {end - at} bytes left", at)
        for place in range(at, at + count * size, size):
            type_id, kind = record.unpack_from(data, place)
            yield type_id, KINDS[kind] if kind < len(KINDS) else f"kind {kind}"
        at += count * size


def _error(path: str, message: str, offset: int | None = None) -> FormatError:
    return FormatError(message, path=path, section=SECTION, offset=offset)
