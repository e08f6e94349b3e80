# SPDX-License-Identifier: GPL-2.0-only
from btfstep.btf.graph import TypeGraph
from btfstep.btf.reader import BtfReader
from btfstep.btf.strings import StringPool

class PreparedBase:
    """A base that many results are split from; any number of threads may use it at once."""

    reader: BtfReader
    strings: StringPool

    def __init__(self, reader: BtfReader) -> None:
        """Raises FormatError or UsageError if `reader`'s types cannot be a base."""
    def new_graph(self, strings: StringPool, assumed_primitives: int = 0) -> TypeGraph:
        """A TypeGraph over this base; `strings` has to be a copy of this one's (EncodeContext makes it)."""
