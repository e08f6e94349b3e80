# SPDX-License-Identifier: GPL-2.0-only
"""Which variables of a unit are listed."""

from btfstep.encode.unit cimport UnitEncoder

cdef int save_variables(UnitEncoder e) noexcept nogil
