# SPDX-License-Identifier: GPL-2.0-only
"""Which functions of a unit may be listed, and how each takes its parameters."""

from btfstep.encode.unit cimport UnitEncoder

cdef int save_functions(UnitEncoder e) noexcept nogil
