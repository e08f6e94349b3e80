# SPDX-License-Identifier: GPL-2.0-only
# cython: boundscheck=False, wraparound=False, initializedcheck=False
# (C arrays only; functions' symbols are below the table's `nr_functions`)
"""Chooses functions by name, with what all units know of them.

A function is listed once.  It is left out when its definitions disagree, when
a parameter is not where callers put it, or when its name stands for code at
several addresses.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from btfstep.btf.constants cimport *
from btfstep.btf.graph cimport NONE, REF, Node, Ref, TypeGraph
from btfstep.btf.memory cimport reserve
from btfstep.btf.strings cimport FAILED
from btfstep.btf.types cimport Row
from btfstep.dwarf.sections cimport fail_memory
from btfstep.elf.symbols cimport ElfFunction, Symbol, SymbolTable
from btfstep.encode.context cimport EncodeContext
from btfstep.encode.record cimport (
    FUNCTION_INCONSISTENT, FUNCTION_OPTIMIZED_PARAMETERS, FUNCTION_REORDERED, FUNCTION_SIGNATURE_CHANGED,
    FUNCTION_UNCERTAIN_LOCATION, FUNCTION_UNEXPECTED_REGISTER, Parameter, Record, SavedFunction, Tag,
)
from btfstep.errors import EncodeError

cdef enum:
    # kfunc flags, include/linux/btf.h
    KF_FASTCALL = 1 << 12
    KF_ARENA_RET = 1 << 13
    KF_ARENA_ARG1 = 1 << 14
    KF_ARENA_ARG2 = 1 << 15

    SHARED_FLAGS = (
        FUNCTION_UNEXPECTED_REGISTER | FUNCTION_INCONSISTENT | FUNCTION_UNCERTAIN_LOCATION | FUNCTION_REORDERED
    )
    # Steps of one comparison of types; real ones take a dozen.
    MATCH_WORK = 1 << 20
    MATCH_DEPTH = 256  # prototypes within prototypes
    # Steps of all comparisons, and then so many more for each function.
    FREE_STEPS = 1 << 24
    MAX_STEPS = 1024
    # Looks at a function's symbols, for each of its definitions.
    MAX_SYMBOLS = 1024


cdef class FunctionSelector:
    """Collects the functions of all units, and lists those that qualify.

    `symbols`: the file's SymbolTable, functions collected and kfuncs marked;
    `context`: the run's.
    """

    def __cinit__(self, SymbolTable symbols not None, EncodeContext context not None):
        self.symbols = symbols
        self.context = context

    def __dealloc__(self):
        free(self.functions)
        free(self.parameters)
        free(self.tags)

    cdef int add_unit(self, TypeGraph graph, const Record *r) noexcept nogil:
        """Take over a unit's functions, right after `graph` took its types; -1 with the graph's `fault`."""
        cdef SavedFunction *f
        cdef uint32_t i
        if r.nr_functions == 0:
            return 0
        if (
            reserve(
                <void **>&self.functions, &self.functions_cap, <uint64_t>self.nr_functions + r.nr_functions,
                sizeof(SavedFunction),
            ) < 0
            or reserve(
                <void **>&self.parameters, &self.parameters_cap, <uint64_t>self.nr_parameters + r.nr_parameters,
                sizeof(Parameter),
            ) < 0
            or reserve(
                <void **>&self.tags, &self.tags_cap, <uint64_t>self.nr_tags + r.nr_function_tags, sizeof(Tag)
            ) < 0
        ):
            return fail_memory(&graph.fault)
        for i in range(r.nr_functions):
            f = &self.functions[self.nr_functions + i]
            f[0] = r.functions[i]
            f.returns = graph.key(f.returns)
            f.first_parameter += self.nr_parameters
            f.first_tag += self.nr_tags
        for i in range(r.nr_parameters):
            self.parameters[self.nr_parameters + i].name = r.parameters[i].name
            self.parameters[self.nr_parameters + i].type = graph.key(r.parameters[i].type)
        for i in range(r.nr_function_tags):
            self.tags[self.nr_tags + i] = r.function_tags[i]
        self.nr_functions += r.nr_functions
        self.nr_parameters += r.nr_parameters
        self.nr_tags += r.nr_function_tags
        return 0

    cdef bint match(self, TypeGraph graph, uint32_t a, uint32_t b, int depth) noexcept nogil:
        """Whether two types are the same for a caller: const aside, structs and typedefs by name."""
        cdef const Node *s
        cdef const Node *t
        cdef const Row *x
        cdef const Row *y
        cdef Node left, right
        cdef unsigned int kind, other
        cdef uint32_t i
        while self.work:
            self.work -= 1
            self.steps += 1
            a = graph.settled_key(a)
            b = graph.settled_key(b)
            if a == b:
                return True
            if not a or not b:
                return False
            s = view(graph, a, &left)
            t = view(graph, b, &right)
            kind = info_kind(s.info)
            other = info_kind(t.info)
            if kind == BTF_KIND_FWD:
                kind = BTF_KIND_UNION if s.info >> 31 else BTF_KIND_STRUCT
            if other == BTF_KIND_FWD:
                other = BTF_KIND_UNION if t.info >> 31 else BTF_KIND_STRUCT
            if kind != other:
                if kind == BTF_KIND_CONST:
                    a = s.ref
                elif other == BTF_KIND_CONST:
                    b = t.ref
                else:
                    return False
                continue
            if kind == BTF_KIND_INT:
                return s.ref == t.ref and s.extra == t.extra and s.name == t.name
            if kind == BTF_KIND_FLOAT:
                return s.ref == t.ref and s.name == t.name
            if (
                kind == BTF_KIND_TYPEDEF or kind == BTF_KIND_STRUCT or kind == BTF_KIND_UNION
                or kind == BTF_KIND_ENUM or kind == BTF_KIND_ENUM64
            ):
                return s.name == t.name
            if kind == BTF_KIND_ARRAY and s.extra != t.extra:
                return False
            if kind == BTF_KIND_FUNC_PROTO:
                if info_vlen(s.info) != info_vlen(t.info) or depth == 0:
                    return False
                if not self.match(graph, s.ref, t.ref, depth - 1):
                    return False
                x = graph.ref_rows + s.extra
                y = graph.ref_rows + t.extra
                for i in range(info_vlen(s.info)):
                    if not self.match(graph, x[i].type, y[i].type, depth - 1):
                        return False
                return True
            a = s.ref
            b = t.ref
        return False

    cdef object mismatch(self, TypeGraph graph, const SavedFunction *a, const SavedFunction *b):
        """Why two definitions do not agree; None when they do."""
        cdef const Parameter *x = self.parameters + a.first_parameter
        cdef const Parameter *y = self.parameters + b.first_parameter
        cdef uint32_t i
        if a.nr_parameters != b.nr_parameters:
            return f"it takes {a.nr_parameters} parameters here and {b.nr_parameters} there"
        if self.steps > FREE_STEPS + MAX_STEPS * <uint64_t>self.nr_functions:
            raise EncodeError("functions with definitions that are too much work to compare", path=self.symbols.path)
        self.work = MATCH_WORK
        if not self.match(graph, a.returns, b.returns, MATCH_DEPTH):
            return "its return types differ"
        # pahole counts in 8 bits, and no function has more parameters.
        for i in range(a.nr_parameters):
            if not self.match(graph, x[i].type, y[i].type, MATCH_DEPTH):
                return f"the types of its parameter {i + 1} differ"
        return None

    cdef bint has_optimized_symbol(self, const SavedFunction *f) noexcept nogil:
        """Whether the code at the function's address is the compiler's variant of it."""
        cdef const ElfFunction *elf = &self.symbols.functions[f.symbol]
        cdef const Symbol *symbol
        cdef uint32_t i
        if f.address == 0:
            return False
        for i in range(elf.count):
            symbol = &self.symbols.symbols[elf.first + i]
            if symbol.value == f.address and symbol.optimized:
                return True
        return False

    cdef const SavedFunction *canonical(
        self, const SavedFunction **run, uint32_t count, bint true_signature
    ) noexcept nogil:
        """The definition to list: the first at a symbol's address, if possible with its parameters as declared."""
        cdef const ElfFunction *elf = &self.symbols.functions[run[0].symbol]
        cdef const SavedFunction *first = NULL
        cdef uint32_t i, k
        for i in range(count):
            for k in range(elf.count):
                if run[i].address == self.symbols.symbols[elf.first + k].value:
                    if first == NULL:
                        first = run[i]
                    if not self.loses_parameters(run[i], true_signature):
                        return run[i]
                    break
        return first if first != NULL else run[0]

    cdef bint loses_parameters(self, const SavedFunction *f, bint true_signature) noexcept nogil:
        """Whether the compiler took parameters away, which BTF then cannot tell."""
        return (
            not true_signature
            and f.flags & FUNCTION_OPTIMIZED_PARAMETERS != 0
            and (f.flags & FUNCTION_SIGNATURE_CHANGED != 0 or self.has_optimized_symbol(f))
        )

    cdef uint32_t dotted_symbol(self, const SavedFunction *f) noexcept nogil:
        """1 + the index of the symbol at the function's address whose name has a dot; 0: none."""
        cdef const ElfFunction *elf = &self.symbols.functions[f.symbol]
        cdef uint32_t i
        if f.address:
            for i in range(elf.first, elf.first + elf.count):
                if self.symbols.symbols[i].value == f.address:
                    if self.symbols.symbols[i].name[self.symbols.symbols[i].name_length] == 46:  # a dot
                        return i + 1
        return 0

    def select(self, TypeGraph graph not None, features, log=None) -> None:
        """List the functions that qualify, sorted by name; `graph` has to be settled.

        `log` is called with a line for each function that is left out.

        Raises EncodeError when a kfunc cannot be tagged as its flags ask.
        """
        cdef uint32_t *starts
        cdef const SavedFunction **order
        cdef uint32_t i, k, symbol, count, dotted
        cdef bint true_signature = features.true_signature
        cdef bint addressed
        cdef uint64_t steps = 0
        cdef SavedFunction *first
        cdef SavedFunction *f
        cdef const ElfFunction *elf
        cdef uint32_t nr_symbols = self.symbols.nr_functions
        if self.nr_functions == 0:
            return
        starts = <uint32_t *>calloc(<size_t>nr_symbols + 2, sizeof(uint32_t))
        order = <const SavedFunction **>malloc(<size_t>self.nr_functions * sizeof(void *))
        try:
            if starts == NULL or order == NULL:
                raise MemoryError
            # By name, which is the order of the symbols; of equal names those that
            # have code first, otherwise as they came.
            for i in range(self.nr_functions):
                starts[self.functions[i].symbol + 2] += 1
            for i in range(nr_symbols):
                starts[i + 2] += starts[i + 1]
            for addressed in (True, False):
                for i in range(self.nr_functions):
                    if (self.functions[i].address != 0) == addressed:
                        k = self.functions[i].symbol + 1
                        order[starts[k]] = &self.functions[i]
                        starts[k] += 1
            for symbol in range(nr_symbols):
                count = starts[symbol + 1] - starts[symbol]
                if count == 0:
                    continue
                elf = &self.symbols.functions[symbol]
                steps += <uint64_t>count * elf.count
                if steps > FREE_STEPS + MAX_SYMBOLS * <uint64_t>self.nr_functions:
                    raise EncodeError(
                        f"function {self.name(graph, symbol + 1)} has {count} definitions and {elf.count} symbols",
                        path=self.symbols.path,
                    )
                first = <SavedFunction *>order[starts[symbol]]
                why = None
                for i in range(1, count):
                    f = <SavedFunction *>order[starts[symbol] + i]
                    f.flags |= first.flags & SHARED_FLAGS
                    # For the true signature, what the source says elsewhere does not matter.
                    if not (true_signature and first.address and not f.address) and not f.flags & (
                        FUNCTION_UNEXPECTED_REGISTER | FUNCTION_INCONSISTENT | FUNCTION_REORDERED
                    ):
                        why = self.mismatch(graph, first, f)
                        if why is not None:
                            f.flags |= FUNCTION_INCONSISTENT
                    first.flags |= f.flags & SHARED_FLAGS
                if true_signature:
                    dotted = 0
                    for i in range(count):
                        f = <SavedFunction *>order[starts[symbol] + i]
                        dotted = self.dotted_symbol(f)
                        if dotted and not f.flags & (FUNCTION_UNEXPECTED_REGISTER | FUNCTION_UNCERTAIN_LOCATION):
                            break
                        dotted = 0
                    if dotted:
                        self.list_function(
                            graph, f, graph.strings.intern_bytes(<bytes>self.symbols.symbols[dotted - 1].name)
                        )
                        continue
                f = <SavedFunction *>self.canonical(order + starts[symbol], count, true_signature)
                reason = None
                if first.flags & FUNCTION_UNEXPECTED_REGISTER:
                    reason = "a parameter arrives in an unexpected register"
                elif first.flags & FUNCTION_INCONSISTENT and features.consistent_func:
                    reason = f"its definitions do not agree: {why}"
                elif first.flags & FUNCTION_UNCERTAIN_LOCATION:
                    reason = "it takes a packed struct on the stack"
                elif first.flags & FUNCTION_REORDERED:
                    reason = "its parameters were reordered"
                elif self.loses_parameters(f, true_signature):
                    reason = "parameters were optimized away"
                elif elf.ambiguous:
                    reason = "its name stands for code at several addresses"
                if reason is not None:
                    if log is not None:
                        log(f"{self.name(graph, self.context.function_names[symbol])}: left out, {reason}")
                    continue
                dotted = self.dotted_symbol(f) if true_signature else 0
                self.list_function(
                    graph, f,
                    graph.strings.intern_bytes(<bytes>self.symbols.symbols[dotted - 1].name) if dotted
                    else self.context.function_names[symbol],
                    elf.kfunc, elf.kfunc_flags, features,
                )
        finally:
            free(starts)
            free(order)

    cdef int list_function(
        self, TypeGraph graph, const SavedFunction *f, uint32_t name, bint kfunc=False, uint32_t kfunc_flags=0,
        features=None,
    ) except -1:
        """Add FUNC_PROTO, FUNC and the tags of one function."""
        cdef Parameter *parameters = self.parameters + f.first_parameter
        cdef uint32_t returns = f.returns
        cdef uint32_t i, function
        if kfunc and features.decl_tag_kfuncs and features.attributes:
            if kfunc_flags & KF_ARENA_RET:
                returns = self.arena_pointer(graph, returns, name)
            for i in range(2):
                if kfunc_flags & (KF_ARENA_ARG1 << i):
                    if i >= f.nr_parameters:
                        raise EncodeError(
                            f"kfunc {self.name(graph, name)} has no argument {i + 1} to be an arena pointer"
                        )
                    parameters[i].type = self.arena_pointer(graph, parameters[i].type, name)
        for i in range(f.nr_parameters):
            self.emit(graph, parameters[i].name)
            if graph.add_ref_row(parameters[i].name, graph.settled_key(parameters[i].type)) < 0:
                raise MemoryError
        function = self.add_type(
            graph, 0, make_info(BTF_KIND_FUNC_PROTO, f.nr_parameters, False), graph.settled_key(returns), 0,
            f.nr_parameters,
        )
        self.emit(graph, name)
        function = self.add_type(graph, name, make_info(BTF_KIND_FUNC, 0, False), function, 0, 0)
        for i in range(f.nr_tags):
            self.add_tag(graph, self.tags[f.first_tag + i].value, function, self.tags[f.first_tag + i].component)
        if kfunc and features.decl_tag_kfuncs and features.decl_tag:
            self.add_tag(graph, graph.strings.intern_bytes(b"bpf_kfunc"), function, -1)
            if kfunc_flags & KF_FASTCALL:
                self.add_tag(graph, graph.strings.intern_bytes(b"bpf_fastcall"), function, -1)
        return 0

    cdef object name(self, TypeGraph graph, uint32_t id):
        return graph.strings.text(id).decode(errors="replace")

    cdef int emit(self, TypeGraph graph, uint32_t name) except -1:
        if graph.strings.emit(name) == FAILED:
            raise MemoryError
        return 0

    cdef int add_tag(self, TypeGraph graph, uint32_t value, uint32_t owner, int component) except -1:
        self.emit(graph, value)
        self.add_type(graph, value, make_info(BTF_KIND_DECL_TAG, 0, False), owner, <uint32_t>component, 0)
        return 0

    cdef uint32_t arena_pointer(self, TypeGraph graph, uint32_t key, uint32_t name) except? 0:
        """The key of a pointer like the one with `key`, to memory of a BPF arena."""
        cdef Node type
        cdef uint32_t attribute = graph.strings.intern_bytes(b"address_space(1)")
        key = graph.settled_key(key)
        if not key & REF or info_kind(view(graph, key, &type).info) != BTF_KIND_PTR:
            raise EncodeError(f"kfunc {self.name(graph, name)}: an arena pointer that is no pointer")
        self.emit(graph, attribute)
        key = self.add_type(graph, attribute, make_info(BTF_KIND_TYPE_TAG, 0, True), type.ref, 0, 0)
        return self.add_type(graph, 0, make_info(BTF_KIND_PTR, 0, False), key, 0, 0)

    cdef uint32_t add_type(
        self, TypeGraph graph, uint32_t name, uint32_t info, uint32_t ref, uint32_t extra, uint32_t nr_rows
    ) except? 0:
        """The key of a type that comes next among all types."""
        cdef uint32_t number
        graph.position += 1
        number = graph.add_ref(graph.position, name, info, ref, extra, nr_rows, 0)
        if number == NONE:
            raise MemoryError
        return REF | number


cdef const Node *view(TypeGraph graph, uint32_t key, Node *buffer) noexcept nogil:
    """The type behind a key, with what it refers to as keys."""
    cdef const Ref *ref
    if not key & REF:
        return &graph.nodes[key]
    ref = &graph.refs[key & ~<uint32_t>REF]
    buffer.name = ref.name
    buffer.info = ref.info
    buffer.ref = ref.ref
    buffer.extra = ref.extra
    return buffer
