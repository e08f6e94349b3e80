# SPDX-License-Identifier: GPL-2.0-only
"""The two ends of the pipeline: units in, records out; records in, the graph grows."""

cimport cython
from libc.stdint cimport uint32_t

from btfstep.btf.graph cimport TypeGraph
from btfstep.encode.context cimport EncodeContext
from btfstep.encode.parameters cimport save_functions
from btfstep.encode.record cimport UnitRecord
from btfstep.encode.selection cimport FunctionSelector
from btfstep.encode.unit cimport UnitEncoder
from btfstep.encode.variables cimport save_variables


@cython.final
cdef class Worker:
    """Encodes batches of units; one for each thread.

    Called with (first, count), returns as many records.  `spare` is a list of
    records that were merged and can be used again; all workers share it.
    """

    cdef UnitEncoder encoder
    cdef EncodeContext context
    cdef list spare

    def __cinit__(self, EncodeContext context not None, list spare not None):
        self.context = context
        self.encoder = UnitEncoder(context)
        self.spare = spare

    def __call__(self, batch):
        cdef uint32_t first, count, i
        cdef UnitRecord record
        cdef int status
        first, count = batch
        if self.context.merge_units:
            count = 1
        records = []
        for i in range(first, first + count):
            try:
                record = self.spare.pop()
            except IndexError:
                record = UnitRecord()
            with nogil:
                if self.context.merge_units:
                    status = self.encoder.encode_merged(&record.c)
                else:
                    status = self.encoder.encode_unit(i, &record.c)
                if status == 0:
                    status = save_functions(self.encoder)
                if status == 0:
                    status = save_variables(self.encoder)
            if status < 0:
                self.context.sections.raise_fault(&self.encoder.fault)
            records.append(record)
        if not self.context.merge_units:
            self.context.units.release(first, first + count)
        return records


@cython.final
cdef class Merger:
    """Takes records in unit order into the graph and the selector."""

    cdef TypeGraph graph
    cdef FunctionSelector selector
    cdef EncodeContext context
    cdef list spare

    def __cinit__(
        self, EncodeContext context not None, TypeGraph graph not None, FunctionSelector selector not None,
        list spare not None,
    ):
        self.context = context
        self.graph = graph
        self.selector = selector
        self.spare = spare

    def __call__(self, records):
        cdef UnitRecord record
        cdef int status
        for record in records:
            with nogil:
                status = self.graph.add_unit(&record.c)
                if status == 0:
                    status = self.selector.add_unit(self.graph, &record.c)
            if status < 0:
                self.context.sections.raise_fault(&self.graph.fault)
            self.spare.append(record)

    def settle(self):
        """All records are in."""
        cdef int status
        with nogil:
            status = self.graph.settle()
        if status < 0:
            self.context.sections.raise_fault(&self.graph.fault)
