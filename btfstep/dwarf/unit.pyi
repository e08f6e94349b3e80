# SPDX-License-Identifier: GPL-2.0-only
from btfstep.dwarf.sections import DebugSections

class UnitList:
    """The units of .debug_types, if any, and then of .debug_info, in file order."""

    sections: DebugSections
    count: int
    has_type_units: bool

    def __init__(self, sections: DebugSections) -> None:
        """Raises FormatError when a header is malformed."""
    def batches(self, size: int) -> list[tuple[int, int]]:
        """Runs of neighbouring units, as (first, count), each of about `size` bytes of DIEs."""
