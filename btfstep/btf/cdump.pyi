# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Iterable, Sequence

from btfstep.btf.reader import BtfReader

class CDumper:
    """Writes C for the types of one BTF. Good for one header, or for any number of `text` calls."""

    def __init__(self, btf: BtfReader) -> None: ...
    def header(self, *, sort: bool = True, roots: Sequence[int] = ()) -> bytes:
        """The header of all types, or of `roots` (type ids, in this order) and what they need.

        `sort` orders it by names rather than by type ids; roots have their own order.
        Raises FormatError if C cannot express the types, IndexError if there is no such root.
        """
    def excerpt(self, wanted: Iterable[int], *, sort: bool = True) -> bytes:
        """The header of `wanted` (type ids) and what they need, as the header of all types has it.

        A definition has the same text there, and they come in the same order. A forward
        declaration stands before the first definition here that needs it. A function brings
        what its prototype mentions, and if it is a kfunc, the prototype. Raises as `header`.
        """
    def text(self, id: int) -> bytes:
        """The C text of one type: its definition or prototype, or how it is written in a declaration.

        Raises FormatError if C cannot express it, IndexError if there is no such type.
        """
