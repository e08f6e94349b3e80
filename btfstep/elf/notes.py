# SPDX-License-Identifier: GPL-2.0-only
"""ELF notes: small records that say something about a whole file (gABI, chapter 5)."""

from __future__ import annotations

from struct import Struct

from ..errors import FormatError
from .constants import SHF_COMPRESSED, SHT_NOTE
from .image import ElfImage, Section

TYPE_CHECKING = False  # typing itself is not imported: it costs a quarter of a bare start-up
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NamedTuple

    class Note(NamedTuple):
        """One note: who defines it (without the final NUL), its type for them, and its bytes."""

        owner: bytes
        type: int
        desc: memoryview
else:
    from .tuples import named_tuple

    Note = named_tuple(__name__, "Note", "owner type desc")

# LINUX_ELFNOTE_LTO_INFO of the kernel's <linux/elfnote-lto.h>.
LINUX_LTO_INFO = 0x101


def notes_of(image: ElfImage, section: Section) -> Iterator[Note]:
    """The notes of one SHT_NOTE section, in order.

    Raises FormatError at the first one that does not fit the section.
    """
    data = image.contents(section)
    order = ">" if image.big_endian else "<"
    header = Struct(order + "III")
    # The words of a note are 4 bytes in both classes; only sections aligned to 8
    # (.note.gnu.property) pad to 8.
    pad = 8 if section.addralign == 8 else 4
    at = 0
    while at < len(data):
        if len(data) - at < header.size:
            if not any(data[at:]):
                return  # padding that a linker left
            raise FormatError("truncated note header", path=image.path, section=section.name, offset=at)
        name_size, desc_size, kind = header.unpack_from(data, at)
        name = at + header.size
        desc = -(-(name + name_size) // pad) * pad
        if desc + desc_size > len(data):
            raise FormatError("note runs past its section", path=image.path, section=section.name, offset=at)
        owner = bytes(data[name : name + name_size]).rstrip(b"\0")
        yield Note(owner, kind, data[desc : desc + desc_size])
        at = -(-(desc + desc_size) // pad) * pad


def lto_note(image: ElfImage) -> int | None:
    """What the kernel's own note says about LTO: 1 built with it, 0 without, None if it does not say.

    Sections that are not made of notes are passed over, for this is the only note that matters.
    Raises FormatError if the headers name more notes than the file has room for.
    """
    left = len(image.data)
    for section in image.sections:
        if section.type != SHT_NOTE or section.flags & SHF_COMPRESSED:
            continue
        left -= section.size
        if left < 0:
            raise FormatError(
                "note sections come to more bytes than the file has", path=image.path, section=section.name
            )
        try:
            for note in notes_of(image, section):
                if note.type == LINUX_LTO_INFO and note.owner == b"Linux" and len(note.desc) == 4:
                    return int.from_bytes(note.desc, "big" if image.big_endian else "little")
        except FormatError:
            continue
    return None
