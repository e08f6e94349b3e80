# SPDX-License-Identifier: GPL-2.0-only
from btfstep.btf.strings import StringPool

class TypeGraph:
    """The type graph of a run: units go in one by one, deduplicated types come out."""

    strings: StringPool
    nr_primitives: int
    """How many integers, floats, enumerations and forward declarations were kept so far."""

    def __init__(self, strings: StringPool, assumed_primitives: int = 0) -> None: ...
    def choices_hold(self) -> bool:
        """Whether `assumed_primitives` was right wherever it mattered, now that all units are in."""
