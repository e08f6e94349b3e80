# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Iterable

KINDS: tuple[str, ...]
"""The names of kinds, by number; 0 stands for those that are not known."""

class BtfReader:
    """BTF that was read and checked: types by id, those of its base included."""

    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        base: BtfReader | None = None,
        *,
        path: str | None = None,
        section: str | None = None,
        address_size: int = 0,
    ) -> None:
        """Read what a ``.BTF`` section or a file of raw BTF holds; it is copied.

        `base` is what split BTF was split from. `path` and `section` are for
        messages, `address_size` is 4 or 8, or 0 to find out from the types.

        Raises FormatError if any record, type id, or string is not where it says.
        """
    @property
    def base(self) -> BtfReader | None: ...
    @property
    def path(self) -> str | None: ...
    @property
    def section(self) -> str | None: ...
    @property
    def big_endian(self) -> bool: ...
    @property
    def start_id(self) -> int:
        """The id of the first type that is not the base's."""
    @property
    def total(self) -> int:
        """One more than the largest type id."""
    @property
    def address_size(self) -> int:
        """Bytes in a pointer."""
    @property
    def strings(self) -> bytes:
        """The string section, without the base's."""
    @property
    def layout(self) -> bytes | None:
        """The layout section, or the base's."""
    @property
    def text_size(self) -> int:
        """The bytes of strings, the base's included: one more than the largest string offset."""
    def __len__(self) -> int:
        """The number of types, the base's and void included: one more than the largest id."""
    def name(self, id: int) -> bytes:
        """The name of a type; empty if it has none. Raises IndexError if there is no such type."""
    def text_at(self, offset: int) -> bytes:
        """The string at an offset. Raises IndexError if there is none."""
    def find(self, name: bytes) -> list[int]:
        """The ids of all types of this name, in order."""
    def find_all(self, names: Iterable[bytes]) -> dict[bytes, list[int]]:
        """The ids of all types of each of these names, in order.

        Raises FormatError if names overlap so much that it would take forever to look at them.
        """
    def kind(self, id: int) -> int:
        """The number of a type's kind. Raises IndexError if there is no such type."""
    def record(self, id: int) -> tuple[int, int, int, bool, int, tuple[int, ...]]:
        """The record of a type: ``(name_off, kind, vlen, kind_flag, size_or_type, rest)``.

        `rest` has the 32-bit words that the kind adds. Raises IndexError if
        there is no such type.
        """
