# SPDX-License-Identifier: GPL-2.0-only
"""Where the sections of a file lie in memory, or are taken to lie while it has not been linked yet.

The sections of a relocatable file mostly start at 0, so the addresses in its debug
information say nothing until each section has a place of its own. pahole leaves the
placing to libdwfl, and its output depends on where that puts them: a variable belongs to
the first section that covers its address, and a function is compared with symbols, which
stay relative to their sections. The places are therefore libdwfl's, its handling of the
few sections that ``ld -r`` leaves with an address included. What is not loaded keeps the
address 0, and compressed debug sections count as large as they are when decompressed.
"""

from __future__ import annotations

from ..errors import FormatError
from .constants import ET_REL, SHF_ALLOC, SHF_COMPRESSED, SHT_NOBITS

TYPE_CHECKING = False  # typing itself is not imported: it costs a quarter of a bare start-up
if TYPE_CHECKING:
    from .image import ElfImage, Section

# Where placing starts.
FIRST_ADDRESS = 0x10000


class Placement:
    """Where the sections of one file are.

    Attributes:
        addresses, sizes: the address and the bytes of each section, by index, in which
            variables are looked up.
        bias: what relocation adds to the address of an allocated section besides: not 0 only
            if the file itself says where its first section is.

    Raises FormatError where an alignment is no power of two.
    """

    def __init__(self, image: ElfImage) -> None:
        self.addresses = [section.addr for section in image.sections]
        self.sizes = [_decompressed_size(image, section) for section in image.sections]
        self.bias = 0
        if image.type == ET_REL:
            allocated = [section for section in image.sections[1:] if section.flags & SHF_ALLOC]
            for section in allocated:
                if section.addralign & (section.addralign - 1):
                    raise FormatError(
                        f"alignment of {section.addralign}, no power of two", path=image.path, section=section.name
                    )
            self._place(allocated)
            # Sizes come from the file and may be absurd: addresses wrap.
            mask = image.layout.address_max
            self.addresses = [address & mask for address in self.addresses]
            self.bias &= mask

    def _place(self, sections: list[Section]) -> None:
        """Give each of these the next address that its alignment allows."""
        base = start = end = FIRST_ADDRESS
        lowest = 0
        for count, section in enumerate(sections):
            align = section.addralign or 1
            address = _aligned(end, align)
            given = section.addr
            # An address in the file holds from the start or not at all, unless by chance
            # the next section would begin right here, unpadded.
            if given and not (lowest == 0 and start < end != address):
                if count == 0 or end < given + section.size:
                    end = given + section.size
                if count == 0 or lowest > given:
                    lowest = given
                if (given - lowest + base) & (align - 1):
                    base = _aligned(base, align) + (lowest & (align - 1))
                continue
            if end == base:
                start = base = address
            elif base & (align - 1):
                # The whole should be aligned as its strictest section: start again from there.
                start = base = _aligned(base, align)
                end = self._replace(sections[: count + 1], base)
                continue
            self.addresses[section.index] = address
            end = address + section.size
        if lowest:
            self.bias = base - lowest

    def _replace(self, sections: list[Section], end: int) -> int:
        """Put these one after the other from `end` on, whatever address they had; return their end."""
        for section in sections:
            address = self.addresses[section.index] = _aligned(end, section.addralign or 1)
            end = address + section.size
        return end


def _decompressed_size(image: ElfImage, section: Section) -> int:
    """The bytes of a section, without decompressing it; as the header says where it is malformed."""
    old = section.name.startswith(".zdebug_")
    if section.type == SHT_NOBITS or not (old or section.flags & SHF_COMPRESSED):
        return section.size
    # What cannot be read is an error for whoever wants the contents.
    raw = image.data[section.offset : section.offset + section.size]
    if old:
        return int.from_bytes(raw[4:12], "big") if len(raw) >= 12 else section.size
    header = image.layout.chdr
    return int(header.unpack_from(raw)[1]) if len(raw) >= header.size else section.size


def _aligned(address: int, align: int) -> int:
    return (address + align - 1) & -align
