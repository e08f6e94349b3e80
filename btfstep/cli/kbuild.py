# SPDX-License-Identifier: GPL-2.0-only
"""``btfstep kbuild``: where the files are that other build systems include."""

from __future__ import annotations

import os
import sys

from btfstep.cli.getopt import CommandLineError, option, scan
from btfstep.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

HELP = option("help", "h", help="this text")
USAGE = "btfstep kbuild [FILE]"
ABOUT = """\
Prints the directory of the files for builds, or the path of one of them: btfstep.mk for Make, btfstep.ninja for Ninja,
btfstep.cmake for CMake, meson.build for Meson.
"""


def run(argv: Sequence[str]) -> int:
    """Read a command line and do what it says. Raises UsageError if there is no such file."""
    names: list[str] = []
    for argument in scan(argv, (HELP,)):
        if argument.option is HELP:
            from btfstep.cli.inputs import help_text

            sys.stdout.write(help_text(USAGE, ABOUT, (HELP,)))
            sys.stdout.flush()
            return 0
        names.append(argument.value or "")
    if len(names) > 1:
        raise CommandLineError(f"one FILE at a time, please: {', '.join(names)}")
    sys.stdout.write(shipped(*names) + "\n")
    sys.stdout.flush()
    return 0


def shipped(name: str = "") -> str:
    """The path of a file for builds, or of their directory. Raises UsageError if there is none of that name."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # Inside the package where it is installed, beside it in the sources.
    for folder in (package, os.path.dirname(package)):
        path = os.path.join(folder, "kbuild", name) if name else os.path.join(folder, "kbuild")
        if os.path.exists(os.path.join(folder, "kbuild", "btfstep.mk")):
            if not os.path.exists(path):
                raise UsageError(f"there is no file for builds named '{name}'; see btfstep kbuild --help")
            return path
    raise UsageError("the files for builds are not installed; install btfstep with pip")
