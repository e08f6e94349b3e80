# SPDX-License-Identifier: GPL-2.0-only
"""``--explain``: why an output was written, or why not, in a line or two on standard error.

Imported only when that is asked for.
"""

from __future__ import annotations

import os

from btfstep.errors import BtfstepError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from btfstep.btf.reader import BtfReader
    from btfstep.encode.module import Base, History

# What a result depends on, as records have it, in words; those without are told in others.
_PARTS = {
    "program": "btfstep itself changed",
    "settings": "the settings changed (languages, prefixes, or the distilled base)",
    "debug": "debug sections changed",
    "symbols": "symbols changed",
    "kfuncs": "kfuncs changed",
}
_DEFINES = (b"struct ", b"union ", b"enum ", b"typedef ", b"extern ")


class Explainer:
    """Looks at an output before it is written, and tells afterwards what became of it.

    `about` compares the old contents, which were there, with the new ones, which
    are others, and returns what to say.
    """

    def __init__(self, path: str, about: Callable[[bytes, bytes], str]) -> None:
        self._path = path
        self._about = about
        self._regular = os.path.isfile(path)
        self._old = _contents(path) if self._regular else None

    def tell(self, data: bytes, written: bool) -> str:
        """The line about the output, now that `data` was to be its contents."""
        name = printable(self._path)
        if not written:
            return f"{name}: not written: it holds the same already"
        if self._old is None:
            what = "what it held cannot be read" if self._regular else "there was none"
            return f"{name}: written: {what if os.path.isfile(self._path) else 'it is no regular file'}"
        return f"{name}: written: {self._about(self._old, data)}"


def _contents(path: str) -> bytes | None:
    """What a regular file holds; None if that cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return None


def text_difference(old: bytes, new: bytes) -> str:
    """The first line in which two texts differ."""
    before, after = old.split(b"\n"), new.split(b"\n")
    at = next(
        (at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    return f"it differs from line {at + 1} on"


def header_difference(old: bytes, new: bytes) -> str:
    """The first definition that differs between two headers, which have blank lines between definitions."""
    return _blocks(old, new, b"\n\n", _defined, lambda block: block.startswith(_DEFINES))


def _defined(block: bytes) -> bytes:
    """What a definition in C is of: ``struct s``; ``typedef t`` and ``enum {RED}`` for those of what has no name."""
    lines = block.split(b"\n")
    first = lines[0].rstrip(b" {;")
    if first == b"enum" and len(lines) > 1:
        return b"enum {" + lines[1].strip().partition(b" ")[0].rstrip(b",") + b"}"
    if first.startswith(b"typedef ") and len(lines) > 1:
        return b"typedef " + lines[-1].strip(b"} ;")
    return first


def stamp_difference(old: bytes, new: bytes) -> str:
    """The first definition that differs between two stamps of ``btfstep uses``."""
    return _blocks(old, new, b"\n", lambda line: line.rpartition(b" ")[0], lambda line: not line.startswith(b"#"))


def _blocks(
    old: bytes,
    new: bytes,
    separator: bytes,
    title: Callable[[bytes], bytes],
    counts: Callable[[bytes], bool],
) -> str:
    before = {block.strip(b"\n"): None for block in old.split(separator)}
    after = {block.strip(b"\n"): None for block in new.split(separator)}
    gone = {title(block): None for block in before if block not in after and counts(block)}
    come = {title(block): None for block in after if block not in before and counts(block)}
    titles = [*((name, "changed" if name in gone else "is new") for name in come)]
    titles += [(name, "is gone") for name in gone if name not in come]
    if not titles:
        return text_difference(old, new)
    # What changed says more than what is new: it is why others did.
    name, what = min(titles, key=lambda entry: entry[1] != "changed")
    return f"{_text(name)} {what}{_more(len(titles) - 1)}"


def btf_difference(old: bytes, new: bytes) -> str:
    """The first definition that differs between two whole BTFs."""
    from btfstep.btf.reader import BtfReader

    try:
        return difference(BtfReader(old), BtfReader(new))
    except BtfstepError:
        return "what it held cannot be read as BTF"


def difference(old: BtfReader, new: BtfReader) -> str:
    """The first definition that differs, and how many others do. Raises FormatError for types that are endless."""
    from btfstep.btf.compare import Comparison
    from btfstep.btf.entries import entry_name, kind_word

    found = Comparison(old, new)
    count = len(found.changed) + len(found.added) + len(found.removed) - 1
    for reader, ids, what in (
        (new, [new_id for _, new_id in found.changed], "changed"),
        (new, found.added, "is new"),
        (old, found.removed, "is gone"),
    ):
        if ids:
            return f"{kind_word(reader, ids[0])} {entry_name(reader, ids[0])} {what}{_more(count)}"
    return "the same definitions in another order, or with other ids"


def _more(count: int) -> str:
    return "" if count == 0 else f", and {count} more"


def why_encoded(path: str, history: History, base: Base, sections: Mapping[str, bytes]) -> str:
    """The line about a module: whether it was encoded, and why."""
    name = printable(path)
    if history.known:
        return f"{name}: not encoded: all that its BTF is made from is as it was"
    if not history.parts:
        return f"{name}: encoded: records are not used"
    if history.before is None:
        return f"{name}: encoded: there is no record of it"
    reasons = _reasons(history.before, history.parts, base.path)
    return f"{name}: encoded: {', '.join(reasons)}; {_result(history, base, sections)}"


def _reasons(before: Mapping[str, str], now: Mapping[str, str], base: str) -> list[str]:
    changed = [name for name, value in now.items() if before.get(name) != value]
    reasons = []
    if ("decl_tag_kfuncs" in before.get("features", "")) != ("decl_tag_kfuncs" in now["features"]):
        changed = [name for name in changed if name != "kfuncs"]  # they are read for that feature only
    if "base" in changed:
        reasons.append(f"the BTF of {printable(base)} changed")
    if "features" in changed:
        old, new = (parts.get("features", "").split(",") for parts in (before, now))
        marks = [f"+{name}" for name in new if name not in old] + [f"-{name}" for name in old if name not in new]
        reasons.append(f"features changed ({' '.join(marks) or 'their order'})")
    reasons += [words for name, words in _PARTS.items() if name in changed]
    # Where sections changed, so did their headers.
    return reasons or ["section headers changed"]


def _result(history: History, base: Base, sections: Mapping[str, bytes]) -> str:
    """What came out, in comparison with what is on record."""
    from btfstep.btf.base import PreparedBase
    from btfstep.btf.reader import BtfReader

    if history.sections == sections:
        return "the result is the same"
    if history.before is None or history.before.get("base") != history.parts["base"]:
        return "the result is another"  # types of the old one cannot be named without its base
    whole = base.get()
    reader = whole.reader if isinstance(whole, PreparedBase) else whole
    both = []
    try:
        for one in (history.sections, sections):
            distilled = one.get(".BTF.base")
            both.append(BtfReader(one[".BTF"], reader if distilled is None else BtfReader(distilled)))
        return difference(*both)
    except (BtfstepError, KeyError):
        return "the result is another"  # a record that somebody made up


def explained_store(
    path: str,
    sections: Mapping[str, bytes],
    detached: str | None,
    *,
    split: bool,
    touch: bool,
    explain: Callable[[str], None],
) -> bool:
    """Write what was made of the file `path` to it, or to `detached`, and explain that; whether it was written.

    `split`: the result needs a base, so that what was there before cannot be read. Raises what writing raises.
    """
    # What is in the file may be split from a base that is no longer there.
    about = (lambda _old, _new: "it held other BTF") if split else btf_difference
    if detached is not None:
        from btfstep.build.write import write_if_changed

        explainer = Explainer(detached, about)
        written = write_if_changed(detached, sections[".BTF"])
        explain(explainer.tell(sections[".BTF"], written))
        return written
    from btfstep.encode.module import set_btf

    old = _btf_of(path)
    written = set_btf(path, sections, touch=touch)
    if not written:
        moved = ", and its modification time moved (--no-touch leaves it)" if touch else ""
        what = f"not written: it holds this BTF already{moved}"
    elif old is None:
        what = "written: it had no BTF"
    elif old == sections[".BTF"]:
        what = "written: it had another .BTF.base, or one that is not needed"
    else:
        what = f"written: {about(old, sections['.BTF'])}"
    explain(f"{printable(path)}: {what}")
    return written


def _btf_of(path: str) -> bytes | None:
    """The ``.BTF`` section of an ELF file; None if it has none that can be read."""
    from btfstep.elf.image import ElfImage

    try:
        with ElfImage.open(path) as image:
            section = image.section(".BTF")
            return None if section is None else bytes(image.contents(section))
    except BtfstepError:
        return None  # writing says what is wrong


def _text(name: bytes) -> str:
    return printable(name.decode("utf-8", "surrogateescape"))
