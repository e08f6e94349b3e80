# SPDX-License-Identifier: GPL-2.0-only
"""Named tuples, without ``collections``: importing that costs a third of a bare start-up.

Type checkers see ``typing.NamedTuple`` where these are made; this is what runs.
"""

from __future__ import annotations

from operator import itemgetter

TYPE_CHECKING = False  # typing itself is not imported: it costs as much again
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self


class _Named(tuple):  # type: ignore[type-arg]  # fields are of any type
    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, *values: Any) -> Self:
        if len(values) != len(cls._fields):
            raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(values)}")
        return tuple.__new__(cls, values)

    # For tens of thousands at a time: no check, no call in between.
    _make: Any = classmethod(tuple.__new__)

    def _replace(self, **changes: Any) -> Self:
        made = type(self)(*map(changes.pop, self._fields, self))
        if changes:
            raise TypeError(f"{type(self).__name__} has no field {next(iter(changes))!r}")
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({values})"


def named_tuple(module: str, name: str, fields: str) -> type[_Named]:
    """A class of tuples with these fields, separated by spaces; ``_make`` and ``_replace`` as those of NamedTuple."""
    names = tuple(fields.split())
    getters = {field: property(itemgetter(index)) for index, field in enumerate(names)}
    return type(name, (_Named,), {"__slots__": (), "__module__": module, "_fields": names, **getters})
