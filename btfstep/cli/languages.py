# SPDX-License-Identifier: GPL-2.0-only
"""The languages that ``--lang`` and ``--lang_exclude`` know, as DW_LANG codes (DWARF 5, table 7.17)."""

from __future__ import annotations

from btfstep.errors import UsageError

CODES: dict[str, int] = {
    "c89": 0x01,
    "c": 0x02,
    "ada83": 0x03,
    "c++": 0x04,
    "cobol74": 0x05,
    "cobol85": 0x06,
    "fortran77": 0x07,
    "fortran90": 0x08,
    "pascal83": 0x09,
    "modula2": 0x0A,
    "java": 0x0B,
    "c99": 0x0C,
    "ada95": 0x0D,
    "fortran95": 0x0E,
    "pli": 0x0F,
    "objc": 0x10,
    "objc++": 0x11,
    "upc": 0x12,
    "d": 0x13,
    "python": 0x14,
    "opencl": 0x15,
    "go": 0x16,
    "modula3": 0x17,
    "haskell": 0x18,
    "c++03": 0x19,
    "c++11": 0x1A,
    "ocaml": 0x1B,
    "rust": 0x1C,
    "c11": 0x1D,
    "swift": 0x1E,
    "julia": 0x1F,
    "dylan": 0x20,
    "c++14": 0x21,
    "fortran03": 0x22,
    "fortran08": 0x23,
    "renderscript": 0x24,
    "bliss": 0x25,
    "asm": 0x8001,  # DW_LANG_Mips_Assembler, which assemblers use whatever the machine
}


def parse_languages(text: str) -> frozenset[int]:
    """Read a comma-separated list of language names, in any case, as DW_LANG codes.

    Raises UsageError for a name that is not known, the empty one included.
    """
    codes = set()
    for name in text.split(","):
        code = CODES.get(name.lower())
        if code is None:
            raise UsageError(f'unknown language "{name}"')
        codes.add(code)
    return frozenset(codes)
