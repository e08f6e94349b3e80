# SPDX-License-Identifier: GPL-2.0-only
from btfstep.btf.reader import BtfReader

class Signer:
    """Signatures of the types of one BTF."""

    def __init__(self, btf: BtfReader) -> None: ...
    def definition(self, id: int) -> int:
        """The signature of a type's definition, 0 if it defines nothing (a pointer, void, an anonymous struct ...).

        Raises FormatError for a type that is endless, IndexError if there is no such type.
        """
    def own(self) -> list[int]:
        """``definition`` of every type that is not the base's, in order of ids."""
