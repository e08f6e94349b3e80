# SPDX-License-Identifier: GPL-2.0-only
"""Loads a base for `base.pxd`."""

cimport cython
from libc.stdint cimport uint32_t

from btfstep.btf.graph cimport TypeGraph
from btfstep.btf.reader cimport BtfReader
from btfstep.btf.strings cimport StringPool


@cython.final
cdef class PreparedBase:
    """The types of `reader`, ready to be built on; any number of threads may do so at once.

    Raises FormatError or UsageError if they cannot be a base.
    """

    def __cinit__(self, BtfReader reader not None):
        self.reader = reader
        self.strings = StringPool()
        self.graph = TypeGraph(self.strings, 0, reader)

    def new_graph(self, StringPool strings not None, uint32_t assumed_primitives=0):
        """A TypeGraph over this base; `strings` has to be a copy of this one's (EncodeContext makes it)."""
        return self.graph.copy(strings, assumed_primitives)
