# SPDX-License-Identifier: GPL-2.0-only
"""Finds the kernel functions that BPF programs may call (kfuncs).

The kernel lists them in sets in ``.BTF_ids``: a set is a symbol
``__BTF_ID__set8__NAME`` that spans a count, flags, and pairs of an id and the
function's flags; a pair is a symbol ``__BTF_ID__func__FUNCTION__N``.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from itertools import accumulate

from btfstep.errors import FormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from btfstep.elf.image import ElfImage
    from btfstep.elf.symbols import SymbolTable

_SET = b"__BTF_ID__set8__"
_FUNCTION = b"__BTF_ID__func__"
_KFUNCS = 1  # BTF_SET8_KFUNCS


def mark_kfuncs(image: ElfImage, symbols: SymbolTable) -> None:
    """Mark the kfuncs of `image` in its table of functions.

    Raises FormatError when ``.BTF_ids`` is malformed.
    """
    section = image.section(".BTF_ids")
    if section is None:
        return
    contents = image.contents(section)
    words = struct.Struct(">II" if image.big_endian else "<II")

    def pair(address: int, what: str) -> tuple[int, int]:
        offset = address - section.addr
        if not 0 <= offset <= len(contents) - words.size:
            raise FormatError(f"{what} lies outside of the section", path=image.path, section=".BTF_ids")
        first, second = words.unpack_from(contents, offset)
        return first, second

    entries = symbols.in_section(section.index)
    sets = []
    for name, value, size in entries:
        if name.startswith(_SET) and pair(value, name.decode(errors="replace"))[1] & _KFUNCS:
            sets.append((value, value + size))
    sets.sort()
    starts = [start for start, _ in sets]
    # The furthest end of each set and those before it: they may overlap.
    ends = list(accumulate((end for _, end in sets), max))
    for name, value, _ in entries:
        function = _function_name(name)
        before = bisect_right(starts, value)
        if function is not None and before and value < ends[before - 1]:
            symbols.mark_kfunc(function, pair(value, name.decode(errors="replace"))[1])


def _function_name(symbol: bytes) -> bytes | None:
    """The function of a symbol ``__BTF_ID__func__FUNCTION__N``; None for others."""
    if not symbol.startswith(_FUNCTION):
        return None
    function, separator, number = symbol[len(_FUNCTION) :].rpartition(b"__")
    if not separator or b"_" in number:
        return None
    return function
