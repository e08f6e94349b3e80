# SPDX-License-Identifier: GPL-2.0-only
"""btfstep: DWARF in, BTF out; the bytes that pahole writes, in parallel.

The names below are the public interface. Each is imported when it is first
used, so that starting the command costs no more than starting Python.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = [
    "Btf",
    "BtfType",
    "BtfstepError",
    "EncodeError",
    "Features",
    "FormatError",
    "OrderedPipeline",
    "UsageError",
    "encode",
    "open_btf",
    "parse_features",
]

_HOMES = {
    "BtfstepError": "btfstep.errors",
    "EncodeError": "btfstep.errors",
    "FormatError": "btfstep.errors",
    "UsageError": "btfstep.errors",
    "Features": "btfstep.features",
    "parse_features": "btfstep.features",
    "OrderedPipeline": "btfstep.encode.pipeline",
    "Btf": "btfstep.btf.view",
    "BtfType": "btfstep.btf.view",
    "open_btf": "btfstep.encode.open",
}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from btfstep.btf.view import Btf, BtfType
    from btfstep.encode.call import encode
    from btfstep.encode.open import open_btf
    from btfstep.encode.pipeline import OrderedPipeline
    from btfstep.errors import BtfstepError, EncodeError, FormatError, UsageError
    from btfstep.features import Features, parse_features


def __getattr__(name: str) -> object:
    if name == "encode":
        from btfstep.encode.call import callable_package

        return callable_package()
    if name not in _HOMES:
        raise AttributeError(f"module 'btfstep' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
