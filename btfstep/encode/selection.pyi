# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Callable

from btfstep.btf.graph import TypeGraph
from btfstep.elf.symbols import SymbolTable
from btfstep.encode.context import EncodeContext
from btfstep.features import Features

class FunctionSelector:
    """Collects the functions of all units, and lists those that qualify."""

    symbols: SymbolTable

    def __init__(self, symbols: SymbolTable, context: EncodeContext) -> None: ...
    def select(self, graph: TypeGraph, features: Features, log: Callable[[str], None] | None = None) -> None:
        """List the functions that qualify; `log` is called with a line for each that is left out.

        Raises EncodeError when a kfunc cannot be tagged as its flags ask.
        """
