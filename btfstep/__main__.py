# SPDX-License-Identifier: GPL-2.0-only
"""``python -m btfstep``: the same as the ``btfstep`` command."""

from btfstep.cli import command

command()
