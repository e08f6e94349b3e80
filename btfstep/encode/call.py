# SPDX-License-Identifier: GPL-2.0-only
"""The call ``btfstep.encode(path)``.

``btfstep.encode`` is also the package that the encoder lives in, and importing
any part of it rebinds that name to the package. So the package itself is what
can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType

from btfstep.encode.settings import EncodeSettings
from btfstep.errors import UsageError
from btfstep.features import Features, parse_features

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os


def encode(
    path: str | os.PathLike[str],
    *,
    jobs: int = 1,
    features: Features | str = "default",
    base: str | os.PathLike[str] | None = None,
) -> bytes:
    """Encode the DWARF of the ELF file `path` as BTF, with `jobs` threads.

    `features` is a Features, or a list as ``--btf_features`` takes it. The
    bytes are those of a ``.BTF`` section and do not depend on `jobs`. `base`
    is the file whose BTF the result is split from: an ELF with ``.BTF``, or
    raw BTF.

    Raises FormatError if the file is malformed or has no DWARF, EncodeError if
    BTF cannot express it, UsageError if an argument makes no sense, OSError if
    the file cannot be read.
    """
    from btfstep.encode.api import encode_file
    from btfstep.errors import FormatError

    if jobs < 1:
        raise UsageError(f"jobs is {jobs}; it has to be at least 1")
    if isinstance(features, str):
        features = parse_features(features, strict=True)
    name = _text(path)
    loaded = None
    if base is not None:
        from btfstep.btf.load import load

        loaded = load(_text(base))
    data: bytes | None = encode_file(name, jobs=jobs, options=EncodeSettings(features=features), base=loaded)
    if data is None:
        raise FormatError("has no DWARF to encode", path=name)
    return data


def _text(path: str | os.PathLike[str]) -> str:
    import os

    return os.fspath(path)


class CallablePackage(ModuleType):
    """The class of the package ``btfstep.encode``: calling it is calling :func:`encode`."""

    __call__ = staticmethod(encode)


def callable_package() -> ModuleType:
    """The package ``btfstep.encode``, made callable."""
    package = sys.modules["btfstep.encode"]
    package.__class__ = CallablePackage
    return package
