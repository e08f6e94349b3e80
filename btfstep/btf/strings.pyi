# SPDX-License-Identifier: GPL-2.0-only
class StringPool:
    """All strings of one run, each with one number."""

    emitted_size: int
    """Bytes of the string section so far."""

    def __init__(self, prefix: bytes | None = None) -> None:
        """`prefix`: a string that starts with it stands for the prefix itself (--kabi_prefix)."""
