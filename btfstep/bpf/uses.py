# SPDX-License-Identifier: GPL-2.0-only
"""What of a kernel's BTF an object uses, and the stamp that changes when one of those definitions does."""

from __future__ import annotations

from xxhash import xxh3_64

from btfstep.bpf.needs import Needs, essential
from btfstep.btf.entries import closure, entry_name, enumerators, is_enumeration, kind_word
from btfstep.btf.signature import Signer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NamedTuple

    from btfstep.btf.reader import BtfReader

    class Use(NamedTuple):
        """A definition of the kernel's: ``digest`` is a few letters that change with it, and empty if there is none."""

        kind: str
        name: str
        digest: str
        why: str
else:
    from btfstep.elf.tuples import named_tuple

    Use = named_tuple(__name__, "Use", "kind name digest why")

# The number counts versions of the format, and of what signatures are made from.
HEAD = "# btfstep uses 1\n"


def uses(needs: Needs, kernel: BtfReader) -> list[Use]:
    """The definitions in `kernel` (and its base) that are needed, and all that those hold by value, sorted.

    Several of one name are listed each. Raises FormatError for types that are endless.
    """
    found = _find(needs, kernel)
    signer = Signer(kernel)
    listed = [(type_id, why) for type_id, why in found.items()]
    for part, holder in closure(kernel, found).items():
        listed.append((part, f"in {kind_word(kernel, holder)} {entry_name(kernel, holder)}"))
    result = {
        Use(kind_word(kernel, type_id), entry_name(kernel, type_id), f"{signer.definition(type_id):016x}", why)
        for type_id, why in listed
    }
    there = {(use.kind, use.name) for use in result}
    for (kind, name), why in needs.by_record.items():
        text = name.decode("utf-8", "backslashreplace")
        if (kind, text) not in there:
            result.add(Use(kind, text, "", why))
    # Where the whole enumeration counts, so do its values.
    result.update(use for use in _constants(needs, kernel) if ("enum", use.name) not in there)
    return sorted(result)


def stamp(used: Iterable[Use]) -> bytes:
    """The text of a stamp: a line for each definition, without the reasons."""
    lines = sorted({f"{use.kind} {use.name} {use.digest or '-'}\n" for use in used})
    return (HEAD + "".join(lines)).encode("utf-8", "backslashreplace")


def _find(needs: Needs, kernel: BtfReader) -> dict[int, str]:
    """The types of the kernel that are needed themselves, with the reason."""
    found: dict[int, str] = {}
    by_record, by_name = needs.by_record, needs.by_name
    names = {name for _, name in (*by_record, *by_name)}
    for type_id in range(1, len(kernel)):
        name = kernel.name(type_id)
        if name not in names and b"___" not in name:
            continue
        kind = kind_word(kernel, type_id)
        why = by_record.get((kind, essential(name))) or by_name.get((kind, name))
        if why is not None:
            found[type_id] = why
    return found


def _constants(needs: Needs, kernel: BtfReader) -> list[Use]:
    """One use for each enumeration of which only the values of some constants count."""
    wanted = {name for names in needs.constants.values() for name in names}
    if not wanted:
        return []
    values: dict[bytes, list[int]] = {}
    for type_id in range(1, len(kernel)):
        if is_enumeration(kernel, type_id):
            for name, value in enumerators(kernel, type_id):
                if name in wanted:
                    values.setdefault(name, []).append(value)
    result = []
    for enumeration, names in needs.constants.items():
        known = [(name, sorted(values[name])) for name in sorted(names) if name in values]
        if known:
            digest = xxh3_64(repr(known).encode()).hexdigest()
            result.append(Use("constants", enumeration, digest, "in DWARF"))
    return result
