# SPDX-License-Identifier: GPL-2.0-only
"""Open the BTF of any file that has some, or that has the DWARF to make it from."""

from __future__ import annotations

import os

from btfstep.btf.load import RUNNING_KERNEL, load
from btfstep.btf.view import Btf
from btfstep.errors import FormatError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from btfstep.btf.reader import BtfReader
    from btfstep.encode.pipeline import Permits
    from btfstep.encode.settings import EncodeSettings
    from btfstep.features import Features

_KERNEL_FOLDER = os.path.dirname(RUNNING_KERNEL) + "/"


def open_btf(
    path: str | os.PathLike[str] | None = None,
    *,
    base: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    features: Features | str = "default",
) -> Btf:
    """Open BTF: of an ELF file, of a file of raw BTF, or, without a path, of the running kernel.

    `base` is a file of the same sorts with what split BTF was split from;
    without it, a module's own ``.BTF.base`` is used, and for a module under
    /sys/kernel/btf the running kernel. An ELF file that has DWARF but no BTF is
    encoded on the way, with `jobs` threads and `features` as `btfstep.encode`
    takes them.

    Raises FormatError if there is no BTF or it is malformed, UsageError if an
    argument makes no sense, BtfstepError if a file cannot be read.
    """
    name = RUNNING_KERNEL if path is None else os.fspath(path)
    if base is None and name.startswith(_KERNEL_FOLDER) and name != RUNNING_KERNEL:
        base = RUNNING_KERNEL

    def encode(file: str, split_from: BtfReader | None) -> bytes:
        from btfstep.encode.settings import EncodeSettings
        from btfstep.features import parse_features

        chosen = parse_features(features, strict=True) if isinstance(features, str) else features
        return encode_dwarf(file, split_from, jobs, EncodeSettings(features=chosen))

    if jobs < 1:
        raise UsageError(f"jobs is {jobs}; it has to be at least 1")
    return open_with(name, None if base is None else os.fspath(base), encode)


def open_with(path: str, base: str | None, encode: Callable[[str, BtfReader | None], bytes]) -> Btf:
    """The same with a function that encodes a file's DWARF, split from a base if there is one."""
    reader: BtfReader | None = None
    if base is not None:
        reader = load(base, encode=lambda file: encode(file, None))
        if reader.base is not None:
            raise FormatError("is split BTF itself, and cannot be a base", path=base)
    return Btf(load(path, reader, encode=lambda file: encode(file, reader)))


def encode_dwarf(
    path: str, base: BtfReader | None, jobs: int, settings: EncodeSettings, permits: Permits | None = None
) -> bytes:
    """The BTF of a file that has none yet. Raises FormatError if it has no DWARF either, and what encoding raises."""
    from btfstep.encode.api import encode_file

    data: bytes | None = encode_file(path, jobs=jobs, options=settings, base=base, permits=permits)
    if data is None:
        raise FormatError("has neither a .BTF section nor DWARF to encode", path=path)
    return data
