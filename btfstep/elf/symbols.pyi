# SPDX-License-Identifier: GPL-2.0-only
from btfstep.elf.image import ElfImage

class SymbolTable:
    """The table named ``.symtab`` of an ELF file."""

    path: str
    count: int
    """Entries of the table; 0 when the file has none."""
    nr_functions: int

    def __init__(self, image: ElfImage) -> None:
        """Raises FormatError when the table is malformed."""
    def collect_functions(self) -> None:
        """Gather the functions, by their names up to the first dot."""
    def in_section(self, section: int) -> list[tuple[bytes, int, int]]:
        """(name, value, size) of each symbol defined in the section with this index."""
    def mark_kfunc(self, name: bytes, flags: int) -> bool:
        """Note that the function of this name is a kfunc; False when there is none."""
