# SPDX-License-Identifier: GPL-2.0-only
"""Owns the arrays of `record.pxd`."""

from libc.stdlib cimport free


cdef void record_clear(Record *record) noexcept nogil:
    """Empty the record; its arrays keep their size."""
    record.nr_types = record.nr_rows = record.nr_type_tags = 0
    record.nr_variables = record.nr_variable_tags = 0
    record.nr_functions = record.nr_parameters = record.nr_function_tags = 0
    record.nr_new_names = 0
    record.int_type = 0
    record.has_array = False


cdef class UnitRecord:
    """The types, functions and variables of one unit."""

    def __dealloc__(self):
        free(self.c.types)
        free(self.c.rows)
        free(self.c.type_tags)
        free(self.c.variables)
        free(self.c.variable_tags)
        free(self.c.functions)
        free(self.c.parameters)
        free(self.c.function_tags)
        free(self.c.new_names)
