# SPDX-License-Identifier: GPL-2.0-only
"""One module to the sections that it gets: its BTF, and the distilled base if that is asked for."""

from __future__ import annotations

import os

from btfstep.encode.api import encode_file
from btfstep.errors import BtfstepError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from btfstep.btf.reader import BtfReader
    from btfstep.encode.settings import EncodeSettings

# What the kernel's sign-file ends a signed module with.
SIGNATURE_MAGIC = b"~Module signature appended~\n"


def encode_sections(
    path: str,
    *,
    jobs: int,
    options: EncodeSettings,
    log: Callable[[str], None] | None = None,
    base: BtfReader | None = None,
    distill: bool = False,
) -> dict[str, bytes] | None:
    """Encode the ELF file `path`: contents by section name, None if it has no DWARF.

    With `distill`, the sections are ``.BTF`` and ``.BTF.base``, and `base` has
    to be given; else ``.BTF`` alone. Raises as ``encode_file`` does.
    """
    data = encode_file(path, jobs=jobs, options=options, log=log, base=base)
    if data is None:
        return None
    if not distill or base is None:
        return {".BTF": data}
    from btfstep.btf.distill import distill as distilled
    from btfstep.btf.reader import BtfReader

    ours, small = distilled(BtfReader(data, base, path=path))
    return {".BTF": ours, ".BTF.base": small}


def refuse_signed(path: str) -> None:
    """Raise UsageError if a signature is appended to `path`: what changes the file breaks it.

    Raises BtfstepError if the file cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            at = os.fstat(fd).st_size - len(SIGNATURE_MAGIC)
            signed = at > 0 and os.pread(fd, len(SIGNATURE_MAGIC), at) == SIGNATURE_MAGIC
        finally:
            os.close(fd)
    except OSError as error:
        raise BtfstepError(error.strerror or str(error), path=path) from None
    except ValueError as error:  # a null byte in the name
        raise BtfstepError(str(error), path=path) from None
    if signed:
        raise UsageError("is signed, and BTF would break the signature; encode first, then sign", path=path)
