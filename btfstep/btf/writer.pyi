# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Sequence

from btfstep.btf.graph import TypeGraph

class Writer:
    """Numbers what a settled graph holds, and writes it as BTF."""

    def __init__(self, graph: TypeGraph, big: bool, section_names: Sequence[str]) -> None:
        """`big`: write big endian; `section_names`: of the ELF section table, for DATASEC.

        Raises EncodeError when BTF cannot express the variables of a section.
        """
    def write(self, with_layout: bool = False) -> bytes:
        """The whole BTF, as a ``.BTF`` section holds it. Raises EncodeError past 4 GiB."""
    @property
    def nr_types(self) -> int:
        """How many types the BTF has, void not counted."""
