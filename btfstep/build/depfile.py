# SPDX-License-Identifier: GPL-2.0-only
"""Depfiles: what an output was made from, as GNU make and Ninja both read it.

The two agree on how to write a space, a hash, a dollar sign, a colon, and the
backslashes before them. Where they do not, there is no way to write the name.
"""

from __future__ import annotations

import os

from btfstep.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# What neither tool reads as anything but itself.
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+,@~(){}!\\")
_ESCAPED = {" ": "\\ ", "#": "\\#", "$": "$$", ":": "\\:"}


def depfile_text(target: str, inputs: Sequence[str]) -> str:
    """A rule that says that `target` was made from `inputs`, each once.

    Raises UsageError if one of the names cannot be written so that both tools
    read it.
    """
    names = " \\\n  ".join(escape(name) for name in dict.fromkeys(inputs))
    return f"{escape(target)}: {names}\n" if names else f"{escape(target)}:\n"


def escape(name: str) -> str:
    """A file name as both tools read it. Raises UsageError if there is no such text."""
    text = []
    for index, letter in enumerate(name):
        after = name[index + 1 : index + 2]
        if letter == "\\" and name[index:].lstrip("\\").startswith(" "):
            text.append("\\\\")  # or it would escape the backslash of the escaped space
        elif letter == "\\" and after in ("", "#", ":"):
            raise _unwritable(name, "a backslash there")
        elif letter == " " and not after:
            raise _unwritable(name, "a space at its end")
        elif letter == ":" and not after:  # Ninja takes one before white space for the end of the target
            raise _unwritable(name, "a colon at its end")
        elif letter == "~" and index == 0:
            raise _unwritable(name, "'~' at its start")
        elif letter in _ESCAPED:
            text.append(_ESCAPED[letter])
        elif letter in _PLAIN or letter > "\x7f":
            text.append(letter)
        else:
            raise _unwritable(name, repr(letter))
    return "".join(text)


def depfile_inputs(text: bytes) -> list[str]:
    """What the rules of a depfile depend on, each once; of one that a compiler wrote, too."""
    names: dict[str, None] = {}
    for rule in text.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").splitlines():
        names.update(dict.fromkeys(_prerequisites(rule)))
    return list(names)


def _prerequisites(rule: bytes) -> list[str]:
    names: list[str] = []
    name = bytearray()
    at_target = True
    at = 0
    while at < len(rule):
        letter = rule[at : at + 1]
        after = rule[at + 1 : at + 2]
        step = 1
        if letter == b"\\":
            end = at
            while rule[end : end + 1] == b"\\":
                end += 1
            after = rule[end : end + 1]
            step = slashes = end - at
            if after in (b" ", b"#", b":"):
                # Half of them stand for themselves, and an odd one is for the letter.
                name += b"\\" * (slashes // 2)
                if slashes % 2:
                    name += after
                    step += 1
            else:
                name += letter * slashes
        elif letter == b"$" and after == b"$":
            name += b"$"
            step = 2
        elif letter.isspace():
            if name and not at_target:
                names.append(os.fsdecode(bytes(name)))
            if not at_target:
                name.clear()
        elif letter == b":" and at_target and (not after or after.isspace()):
            at_target = False
            name.clear()
        else:
            name += letter
        at += step
    if name and not at_target:
        names.append(os.fsdecode(bytes(name)))
    return names


def _unwritable(name: str, what: str) -> UsageError:
    return UsageError(f"cannot name {name!r} in a depfile: make and Ninja do not agree on how to write {what}")
