# SPDX-License-Identifier: GPL-2.0-only
"""Decompression of section contents: zlib and zstd, never past the size that the section declares.

The declared size comes from the file, so it is not trusted: one that the stream could not
possibly reach is refused before memory is asked for, and one that it misses, by too few
bytes or too many, is an error. Streams may be concatenated, as linkers that join
compressed inputs leave them.
"""

from __future__ import annotations

from ..errors import BtfstepError, FormatError
from .constants import ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD

TYPE_CHECKING = False  # typing itself is not imported: it costs a quarter of a bare start-up
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class _Stream(Protocol):
        eof: bool
        unused_data: bytes

        def decompress(self, data: Any, max_length: int) -> bytes: ...


# Deflate spends at least two bits on a match of at most 258 bytes, hence 1032 to 1.
ZLIB_MAX_RATIO = 1032
# A zstd block holds at most 128 KiB and takes at least 4 bytes (a header and one run byte).
# That allows 128 MiB from 4 KiB, so from ZSTD_TRUSTED_SIZE on the ratio of zlib applies:
# debug information, which compresses about 5 to 1, stays far below either.
ZSTD_MAX_RATIO = 32768
ZSTD_TRUSTED_SIZE = 64 << 20

# What all sections of a file may expand to: as many times its size, or as many bytes. Debug
# information that is compressed twentyfold is unheard of.
MAX_EXPANSION = 100
FREE_EXPANSION = 256 << 20

_CHUNK = 1 << 20
_FIRST_STEP = 512


def decompress(
    kind: int, stream: memoryview, size: int, *, path: str | None = None, section: str | None = None
) -> memoryview:
    """The *size* bytes that *stream* expands to, as a read-only view of fresh memory.

    *kind* is an ``ELFCOMPRESS_*`` value; *path* and *section* are for messages only.

    Raises FormatError if *kind* is unknown, the stream is corrupt, or it does not yield
    exactly *size* bytes; BtfstepError if zstd support is not installed.
    """

    def bad(message: str) -> FormatError:
        return FormatError(message, path=path, section=section)

    new: Callable[[], _Stream]
    errors: type[Exception]
    if kind == ELFCOMPRESS_ZLIB:
        import zlib

        ratio, new, errors = ZLIB_MAX_RATIO, _Inflate, zlib.error
    elif kind == ELFCOMPRESS_ZSTD:
        new, errors = _zstd(path, section)
        ratio = ZSTD_MAX_RATIO if size <= ZSTD_TRUSTED_SIZE else ZLIB_MAX_RATIO
    else:
        raise bad(f"unknown compression type {kind}")
    if size > ratio * len(stream):
        raise bad(f"declares {size} bytes, which {len(stream)} compressed bytes cannot hold")

    out = bytearray(size)
    at = consumed = 0
    step = _CHUNK
    decoder = new()
    try:
        while True:
            data: bytes | memoryview = stream[consumed : consumed + step]
            consumed += len(data)
            while True:
                chunk = decoder.decompress(data, _CHUNK)
                if at + len(chunk) > size:
                    raise bad(f"expands to more than the {size} bytes that it declares")
                out[at : at + len(chunk)] = chunk
                at += len(chunk)
                if decoder.eof:
                    # Another stream may follow. Start it with little, or a million tiny
                    # ones would each cost a copy of all that is left of the chunk.
                    consumed -= len(decoder.unused_data)
                    step = _FIRST_STEP
                    break
                if len(chunk) < _CHUNK:
                    step = min(2 * step, _CHUNK)
                    break
                data = b""  # the decoder kept what did not fit
            if consumed == len(stream):
                break
            if decoder.eof:
                decoder = new()
    except errors as error:
        raise bad(f"corrupt compressed data: {error}") from None
    if not decoder.eof:
        raise bad("compressed data ends too early")
    if at != size:
        raise bad(f"expands to {at} bytes, but declares {size}")
    return memoryview(out).toreadonly()


class _Inflate:
    """zlib's decoder with the manners of zstd's: input that did not fit the output is kept inside."""

    def __init__(self) -> None:
        import zlib

        self._decoder = zlib.decompressobj()
        self.eof = False
        self.unused_data = b""

    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes:
        kept = self._decoder.unconsumed_tail
        chunk = self._decoder.decompress(kept + bytes(data) if kept else data, max_length)
        self.eof = self._decoder.eof
        self.unused_data = self._decoder.unused_data
        return chunk


def _zstd(path: str | None, section: str | None) -> tuple[Callable[[], _Stream], type[Exception]]:
    from importlib import import_module

    for name in ("compression.zstd", "backports.zstd"):
        try:
            module = import_module(name)
        except ImportError:
            continue
        return module.ZstdDecompressor, module.ZstdError
    raise BtfstepError(
        "compressed with zstd: install backports.zstd (pip install backports.zstd), or use Python 3.14",
        path=path,
        section=section,
    )
