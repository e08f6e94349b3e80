# SPDX-License-Identifier: GPL-2.0-only
from btfstep.btf.base import PreparedBase
from btfstep.btf.strings import StringPool
from btfstep.dwarf.sections import DebugSections
from btfstep.dwarf.unit import UnitList
from btfstep.elf.image import ElfImage
from btfstep.elf.symbols import SymbolTable
from btfstep.encode.settings import EncodeSettings

class EncodeContext:
    """Everything that is known before the first unit is read; all workers share it."""

    sections: DebugSections
    units: UnitList
    strings: StringPool
    merge_units: bool
    """Units refer to each other's DIEs and are read as one."""

    has_skeletons: bool
    """Some unit that was read has its DIEs in another file (-gsplit-dwarf)."""

    def __init__(
        self, image: ElfImage, settings: EncodeSettings, symbols: SymbolTable, base: PreparedBase | None = None
    ) -> None:
        """Raises FormatError for malformed headers."""
