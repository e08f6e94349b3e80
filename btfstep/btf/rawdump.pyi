# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Sequence

from btfstep.btf.reader import BtfReader

def raw(btf: BtfReader, roots: Sequence[int] = ()) -> bytes:
    """The raw text of BTF: of its own types, or of `roots` (type ids, in this order).

    Raises FormatError if it were endless, IndexError if there is no such root.
    """

def json(btf: BtfReader, roots: Sequence[int] = (), *, pretty: bool = False) -> bytes:
    """The same as JSON, on one line or, `pretty`, indented; it ends with a line break. Raises as `raw`."""
