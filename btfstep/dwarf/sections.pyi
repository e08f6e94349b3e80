# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Callable

from btfstep.elf.image import ElfImage

class DebugSections:
    """The debug sections of an ELF image, decompressed where they were compressed."""

    path: str

    def __init__(
        self, image: ElfImage, relocate: Callable[[str, memoryview | bytes], memoryview | bytes] | None = None
    ) -> None:
        """`image` has to stay open as long as this object is used. Raises FormatError."""
    @property
    def has_dwarf(self) -> bool:
        """Whether the file holds any DIE at all."""
    def size(self, section: int) -> int:
        """Bytes of the section with this index of the section table."""
