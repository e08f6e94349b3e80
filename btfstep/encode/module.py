# SPDX-License-Identifier: GPL-2.0-only
"""One module to the sections that it gets: its BTF, and the distilled base if that is asked for."""

from __future__ import annotations

import os
from _thread import allocate_lock

from xxhash import xxh3_128

from btfstep.btf.base import PreparedBase
from btfstep.btf.load import load
from btfstep.build.record import last, recall, remember
from btfstep.build.write import touch_file
from btfstep.elf.constants import ELFMAG
from btfstep.elf.image import ElfImage
from btfstep.encode.api import encode_file
from btfstep.encode.known import notes, parts_of, result_key, result_parts
from btfstep.errors import BtfstepError, FormatError, UsageError, of_system
from btfstep.files import open_file, read_regular, start_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from btfstep.btf.reader import BtfReader
    from btfstep.encode.pipeline import Permits
    from btfstep.encode.settings import EncodeSettings

_BTF_MAX = (1 << 32) - 1

# What the kernel's sign-file ends a signed module with.
SIGNATURE_MAGIC = b"~Module signature appended~\n"


class Base:
    """The base that modules are encoded against, read when it is first needed; threads may share it.

    `prepare`: for many modules. One alone is sooner done without.

    Attributes:
        path: its file.
        error: why it cannot be read, once that is known.
    """

    def __init__(self, path: str, *, prepare: bool = False) -> None:
        self.path = path
        self._prepare = prepare
        self.error: BtfstepError | None = None
        self._lock = allocate_lock()
        self._base: BtfReader | PreparedBase | None = None
        self._digest: bytes | None = None
        self._state: tuple[int, ...] | None = None

    def get(self) -> BtfReader | PreparedBase:
        """The base itself. Raises what ``btfstep.btf.load.load`` raises."""
        with self._lock:
            if self.error is not None:
                raise self.error
            if self._base is None:
                try:
                    reader = load(self.path)
                    self._base = PreparedBase(reader) if self._prepare else reader
                except BtfstepError as error:
                    self.error = error
                    raise
            return self._base

    def digest(self) -> bytes:
        """A digest of its BTF. Raises FormatError or BtfstepError where `get` does, or would say more."""
        with self._lock:
            if self._digest is None:
                self._state = self._stat()
                self._digest = xxh3_128(b"".join(read_btf(self.path))).digest()
            return self._digest

    def steady(self) -> bool:
        """Whether its file is still the one that the digest was taken of."""
        return self._state is not None and self._state == self._stat()

    def _stat(self) -> tuple[int, ...]:
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise of_system(error, self.path) from None
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def read_btf(path: str) -> list[bytes]:
    """The bytes that make the BTF of `path`, an ELF file or raw BTF, unchecked.

    Raises FormatError if an ELF file has none, BtfstepError if it cannot be read.
    """
    if start_of(path) != ELFMAG:
        return [read_regular(path, _BTF_MAX, "BTF of 4 GiB or more")]
    with ElfImage.open(path) as image:
        sections = [image.section(name) for name in (".BTF", ".BTF.base")]
        if sections[0] is None:
            raise FormatError("has no .BTF section", path=path)
        # The size of a pointer comes from the file, not from BTF.
        return [bytes([image.address_size]), *(bytes(image.contents(s)) for s in sections if s is not None)]


class History:
    """Why a module was encoded, or not, for those who ask; `encode_module` fills it in.

    Attributes:
        known: whether the result was on record.
        parts: what the result depends on, as ``btfstep.encode.known`` has it; empty if that could not be found out, or
            no record was to be used.
        before: the same from the record of another result, None if there was none.
        sections: that other result.
    """

    def __init__(self) -> None:
        self.known = False
        self.parts: dict[str, str] = {}
        self.before: dict[str, str] | None = None
        self.sections: dict[str, bytes] = {}


class Held(dict[str, bytes]):
    """Sections that the file was found to hold."""


def encode_module(
    path: str,
    *,
    jobs: int,
    options: EncodeSettings,
    base: Base,
    log: Callable[[str], None] | None = None,
    distill: bool = False,
    record: bool = True,
    history: History | None = None,
    permits: Permits | None = None,
) -> dict[str, bytes] | None:
    """``encode_sections``, but only if the result is not on record (``btfstep.build.record``); keeps it there.

    Without `record`, neither is done. What comes from there is a `Held` if the file has it.
    """
    parts: dict[str, str] = {}
    held = Held()
    if record:
        try:
            parts = result_parts(path, base.digest(), options, distill, held)
        except BtfstepError:
            pass  # encoding says better what is wrong
    if parts:
        known = recall(path, result_key(parts))
        if known is not None and known.keys() != ({".BTF", ".BTF.base"} if distill else {".BTF"}):
            known = None  # it has the right checksum, but we never wrote that
        if history is not None:
            _look_back(history, path, parts, known is not None)
        if known is not None:
            if log is not None:
                log(f"{path}: nothing changed that its BTF is made from, so it is not made again")
            return held if held == known else known
    sections = encode_sections(
        path, jobs=jobs, options=options, log=log, base=base.get(), distill=distill, permits=permits
    )
    if parts and sections is not None and base.steady():
        remember(path, result_key(parts), sections, notes(parts))
    return sections


def _look_back(history: History, path: str, parts: dict[str, str], known: bool) -> None:
    history.known = known
    history.parts = parts
    before = None if known else last(path)
    if before is not None:
        history.before, history.sections = parts_of(before[0]), before[1]


def encode_sections(
    path: str,
    *,
    jobs: int,
    options: EncodeSettings,
    log: Callable[[str], None] | None = None,
    base: BtfReader | PreparedBase | None = None,
    distill: bool = False,
    permits: Permits | None = None,
) -> dict[str, bytes] | None:
    """Encode the ELF file `path`: contents by section name, None if it has no DWARF.

    With `distill`, the sections are ``.BTF`` and ``.BTF.base``, and `base` has
    to be given; else ``.BTF`` alone. Raises as ``encode_file`` does.
    """
    data = encode_file(path, jobs=jobs, options=options, log=log, base=base, permits=permits)
    if data is None:
        return None
    if not distill or base is None:
        return {".BTF": data}
    from btfstep.btf.distill import distill as distilled
    from btfstep.btf.reader import BtfReader

    reader = base.reader if isinstance(base, PreparedBase) else base
    ours, small = distilled(BtfReader(data, reader, path=path))
    return {".BTF": ours, ".BTF.base": small}


def set_btf(path: str, sections: Mapping[str, bytes], *, touch: bool) -> bool:
    """Put what ``encode_sections`` made into the ELF file `path`; whether anything was written.

    A distilled base that is there from before goes if there is no new one: the
    kernel would take it for what this BTF is split from. Raises as ``set_sections``.
    """
    if isinstance(sections, Held):
        # Without opening it once more, which is half of what a module costs then.
        if touch:
            touch_file(path)
        return False
    from btfstep.elf.edit import set_sections

    return set_sections(path, {".BTF.base": None, **sections}, touch=touch)


def refuse_signed(path: str) -> None:
    """Raise UsageError if a signature is appended to `path`: what changes the file breaks it.

    Raises BtfstepError if the file cannot be read.
    """
    fd = open_file(path)
    try:
        at = os.fstat(fd).st_size - len(SIGNATURE_MAGIC)
        signed = at > 0 and os.pread(fd, len(SIGNATURE_MAGIC), at) == SIGNATURE_MAGIC
    except OSError as error:
        raise of_system(error, path) from None
    finally:
        os.close(fd)
    if signed:
        raise UsageError("is signed, and BTF would break the signature; encode first, then sign", path=path)
