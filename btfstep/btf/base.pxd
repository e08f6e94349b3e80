# SPDX-License-Identifier: GPL-2.0-only
"""A base that many results are split from: loaded once, copied for each."""

cimport cython

from btfstep.btf.graph cimport TypeGraph
from btfstep.btf.reader cimport BtfReader
from btfstep.btf.strings cimport StringPool


@cython.final
cdef class PreparedBase:
    cdef readonly BtfReader reader
    cdef readonly StringPool strings
    cdef readonly TypeGraph graph
