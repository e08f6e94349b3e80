# SPDX-License-Identifier: GPL-2.0-only
"""From compilation units to BTF; also the call ``btfstep.encode``, see `btfstep.encode.call`."""

from btfstep.encode.call import callable_package

callable_package()
