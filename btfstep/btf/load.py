# SPDX-License-Identifier: GPL-2.0-only
"""Find the BTF in a file: raw, or in a section of an ELF file."""

from __future__ import annotations

from btfstep.btf.reader import BtfReader
from btfstep.elf.constants import ELFMAG, SHT_NOBITS
from btfstep.elf.image import ElfImage
from btfstep.errors import FormatError
from btfstep.files import read_regular, start_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

RUNNING_KERNEL = "/sys/kernel/btf/vmlinux"
_MAGICS = (b"\x9f\xeb", b"\xeb\x9f")
_SIZE_MAX = (1 << 32) - 1


def load(path: str, base: BtfReader | None = None, *, encode: Callable[[str], bytes] | None = None) -> BtfReader:
    """Read the BTF of `path`: a file of raw BTF, or an ELF file with a ``.BTF`` section.

    `base` is what split BTF was split from. Without it, a module's own
    ``.BTF.base`` is used if there is one; with it, ``.BTF.base`` tells how
    the module's BTF fits this base. `encode` makes BTF for an ELF file that
    has none.

    Raises FormatError if there is no BTF or it is malformed, BtfstepError if
    the file cannot be read, and whatever `encode` raises.
    """
    start = start_of(path)
    if start.startswith(ELFMAG):
        with ElfImage.open(path) as image:
            return _from_elf(image, base, encode)
    if not start.startswith(_MAGICS):
        raise FormatError("is neither an ELF file nor raw BTF", path=path)
    return BtfReader(_read(path), base, path=path)


def load_binary(path: str) -> bytes:
    """The bytes of a file of raw BTF, or of an ELF file's ``.BTF`` section, unchecked. Raises as `load`."""
    if not start_of(path).startswith(ELFMAG):
        return _read(path)
    with ElfImage.open(path) as image:
        data = _section(image, ".BTF")
        if data is None:
            raise FormatError("has no .BTF section", path=path)
        return bytes(data)


def _from_elf(image: ElfImage, base: BtfReader | None, encode: Callable[[str], bytes] | None) -> BtfReader:
    size = image.address_size
    data = _section(image, ".BTF")
    if data is None:
        if encode is None:
            raise FormatError("has no .BTF section", path=image.path)
        return BtfReader(encode(image.path), base, path=image.path, address_size=size)
    distilled_data = _section(image, ".BTF.base")
    if distilled_data is None:
        return BtfReader(data, base, path=image.path, section=".BTF", address_size=size)
    distilled = BtfReader(distilled_data, path=image.path, section=".BTF.base", address_size=size)
    split = BtfReader(data, distilled, path=image.path, section=".BTF", address_size=size)
    if base is None:
        return split
    from btfstep.btf.relocate import relocate

    return relocate(split, base)


def _section(image: ElfImage, name: str) -> memoryview | None:
    section = image.section(name)
    if section is None or section.type == SHT_NOBITS:
        return None
    return image.contents(section)


def _read(path: str) -> bytes:
    """The whole file. Those of the kernel cannot be mapped on all versions of it."""
    return read_regular(path, _SIZE_MAX, "BTF of 4 GiB or more")
