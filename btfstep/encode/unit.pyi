# SPDX-License-Identifier: GPL-2.0-only
from btfstep.encode.context import EncodeContext

class UnitEncoder:
    """Encodes units for one worker."""

    context: EncodeContext

    def __init__(self, context: EncodeContext) -> None: ...
