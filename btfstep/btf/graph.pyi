# SPDX-License-Identifier: GPL-2.0-only
from btfstep.btf.reader import BtfReader
from btfstep.btf.strings import StringPool

class TypeGraph:
    """The type graph of a run: units go in one by one, deduplicated types come out."""

    strings: StringPool

    def __init__(self, strings: StringPool, assumed_primitives: int = 0, base: BtfReader | None = None) -> None: ...
    @property
    def is_empty(self) -> bool:
        """Whether no unit had any type or variable."""
    @property
    def kept_primitives(self) -> int:
        """How many integers, floats, enumerations and forward declarations were kept so far, the base's aside."""
    def choices_hold(self) -> bool:
        """Whether `assumed_primitives` was right wherever it mattered, now that all units are in."""
