# SPDX-License-Identifier: GPL-2.0-only
from btfstep.btf.graph import TypeGraph
from btfstep.encode.context import EncodeContext
from btfstep.encode.record import UnitRecord
from btfstep.encode.selection import FunctionSelector

class Worker:
    """Encodes batches of units; one for each thread."""

    def __init__(self, context: EncodeContext, spare: list[UnitRecord]) -> None:
        """`spare`: records that were merged and can be used again; all workers share it."""
    def __call__(self, batch: tuple[int, int]) -> list[UnitRecord]:
        """The records of `count` units from `first` on. Raises FormatError."""

class Merger:
    """Takes records in unit order into the graph and the selector."""

    def __init__(
        self, context: EncodeContext, graph: TypeGraph, selector: FunctionSelector, spare: list[UnitRecord]
    ) -> None: ...
    def __call__(self, records: list[UnitRecord]) -> None: ...
    def settle(self) -> None:
        """All records are in. Raises FormatError for types that refer to each other in a circle."""
