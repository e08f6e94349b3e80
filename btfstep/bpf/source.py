# SPDX-License-Identifier: GPL-2.0-only
"""What a program's own source names: what an object keeps no trace of, and which constants it can have used.

This is no C parser: it takes every identifier for one, wherever it stands. So it finds too much rather than too
little, but for names that macros put together, and what macros in other files say.
"""

from __future__ import annotations

import re

from btfstep.build.depfile import depfile_inputs
from btfstep.errors import BtfstepError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Comments and texts are none of them. A type before an asterisk is that of a pointer: where a program goes through it,
# there is a record, and the pointer itself is the same whatever it points to. What is not closed goes on to the end, so
# that nothing is looked at twice.
_TOKENS = re.compile(
    rb"/\*(?:.*?\*/|.*)|//[^\n]*"
    rb'|"(?:\\.|[^"\\\n])*"?|' + rb"'(?:\\.|[^'\\\n])*'?" + rb"|(?:\b(struct|union|enum)\s+)?\b([A-Za-z_]\w*)"
    rb"((?:\s+const\b)?\s*\*)?",
    re.S,
)
_SIZE_MAX = 64 << 20


class Source:
    """What the files of a program name.

    Attributes:
        words: all identifiers.
        types: (kind, name) of types that may be there by value: ``struct``, ``union``, ``enum`` or ``typedef``.
    """

    def __init__(self) -> None:
        self.words: set[bytes] = set()
        self.types: set[tuple[str, bytes]] = set()

    def add(self, text: bytes) -> None:
        """Add what C text names."""
        for match in _TOKENS.finditer(text):
            tag, word, pointer = match.groups()
            if word is None:
                continue
            self.words.add(word)
            if pointer is None:
                self.types.add((tag.decode() if tag else "typedef", word))


def read_sources(depfiles: Iterable[str]) -> Source:
    """What the files name that depfiles list, as compilers write them. Files that are gone name nothing.

    Raises BtfstepError for a depfile that cannot be read.
    """
    source = Source()
    for depfile in depfiles:
        for path in depfile_inputs(_read(depfile)):
            try:
                source.add(_read(path))
            except FileNotFoundError:
                pass  # the object is compiled again then, whatever its stamp says
    return source


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_SIZE_MAX + 1)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise BtfstepError(getattr(error, "strerror", None) or str(error), path=path) from None
    if len(data) > _SIZE_MAX:
        raise BtfstepError("is too large for a source", path=path)
    return data
