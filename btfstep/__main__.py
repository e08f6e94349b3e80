# SPDX-License-Identifier: GPL-2.0-only
"""``python -m btfstep``: the same as the ``btfstep`` command."""

import sys

from btfstep.cli import main

sys.exit(main())
