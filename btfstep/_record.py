# SPDX-License-Identifier: GPL-2.0-only
"""Immutable values, without what importing dataclasses costs.

A frozen dataclass would do, but importing dataclasses (or typing, for
NamedTuple) takes as long as starting Python itself, and this program is
started once for every module of a kernel.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self


class Record:
    """A value with the fields of ``__slots__``: immutable, hashable, compared by content."""

    __slots__: tuple[str, ...] = ()

    def __init__(self, **fields: Any) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, fields.pop(name))
        if fields:
            raise TypeError(f"{type(self).__name__} has no field {next(iter(fields))!r}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**{name: getattr(self, name) for name in self.__slots__}, **changes})

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._values())

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


def _rebuild(kind: type[Record], values: tuple[Any, ...]) -> Record:
    return kind(**dict(zip(kind.__slots__, values, strict=True)))
