# SPDX-License-Identifier: GPL-2.0-only
"""Relocates the debug sections of relocatable files."""

from .image import ElfImage
from .placement import Placement

class Relocator:
    """Applies the relocations of an ElfImage to the contents of its debug sections."""

    placement: Placement
    path: str

    def __init__(self, image: ElfImage, placement: Placement) -> None:
        """Read which sections relocate which; raises nothing that `image` did not."""

    def __call__(self, name: str, contents: memoryview) -> memoryview | bytearray:
        """The bytes of the debug section `name`, relocated; `contents` itself where nothing relocates it.

        Raises FormatError for malformed tables, and for types and machines that are not supported.
        """
