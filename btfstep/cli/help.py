# SPDX-License-Identifier: GPL-2.0-only
"""The texts of ``--help`` and ``--usage``, made from the tables of options and features."""

from __future__ import annotations

from btfstep import __version__
from btfstep.cli import PAHOLE_VERSION
from btfstep.cli.getopt import OPTIONAL, Option
from btfstep.cli.options import HELP_GROUPS
from btfstep.features import FEATURES

USAGE = "Usage: btfstep -J [--btf_encode_detached=OUT] [-j[N]] [--btf_features=LIST] [OPTION...] FILE\n"
OTHERS = (
    ("btfstep modules", "encode many modules against one base"),
    ("btfstep vmlinux-h", "write types as C"),
    ("btfstep uses", "list what BPF objects use of a kernel, or stamp it"),
    ("btfstep diff", "compare the types of two files"),
    ("btfstep dump", "print types"),
    ("btfstep btf dump", "the same, as bpftool spells it"),
    ("btfstep ninja", "write a build.ninja for BPF programs and modules"),
    ("btfstep kbuild", "print where the files are that Make, CMake, ... include"),
)
_WIDTH = 32


def help_text() -> str:
    """What ``btfstep --help`` prints."""
    lines = [
        USAGE,
        f"btfstep {__version__}: encodes DWARF as BTF, with the options and the output of pahole {PAHOLE_VERSION}.\n",
    ]
    lines.append("Other commands; each has a --help of its own:")
    lines.extend(row(*command) for command in OTHERS)
    lines.append("")
    for title, options in HELP_GROUPS:
        lines.append(f"{title}:")
        lines.extend(row(spelling(option), option.help) for option in options)
        lines.append("")
    lines.append(
        "Features (* are those of 'default', + those that are on if no list is given; '+a,b' is 'default,a,b'):"
    )
    for feature in FEATURES:
        marks = ("*" if feature.default else "") + ("+" if feature.initial else "")
        lines.append(row(f"{feature.name} {marks}".rstrip(), feature.meaning))
    lines.append("")
    lines.append("Older options that stand for a feature:")
    for feature in FEATURES:
        if feature.older is not None:
            lines.append(row(f"--{feature.older}", f"{feature.name} {'on' if feature.older_sets else 'off'}"))
    lines.append(row("--btf_gen_all", "the list 'all'"))
    lines.append("")
    lines.append("--hashbits is accepted and has no effect. Options of pahole that print are not here: use pahole.")
    return "\n".join(lines) + "\n"


def spelling(option: Option) -> str:
    """An option as help shows it."""
    letter = f"-{option.letter}, " if option.letter else "    "
    value = f"[={option.metavar}]" if option.value == OPTIONAL else f"={option.metavar}" if option.metavar else ""
    return f"{letter}--{option.name}{value}"


def row(left: str, right: str) -> str:
    """A line of help: what to write, and what it means."""
    return f"  {left:<{_WIDTH}} {right}".rstrip()
