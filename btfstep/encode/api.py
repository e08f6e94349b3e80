# SPDX-License-Identifier: GPL-2.0-only
"""The whole encode, pass by pass."""

from __future__ import annotations

import time

from btfstep.btf.base import PreparedBase
from btfstep.btf.graph import TypeGraph
from btfstep.btf.writer import Writer
from btfstep.elf.image import ElfImage
from btfstep.elf.symbols import SymbolTable
from btfstep.encode.context import EncodeContext
from btfstep.encode.kfuncs import mark_kfuncs
from btfstep.encode.pipeline import OrderedPipeline
from btfstep.encode.selection import FunctionSelector
from btfstep.encode.worker import Merger, Worker
from btfstep.errors import BtfstepError, EncodeError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from btfstep.btf.reader import BtfReader
    from btfstep.encode.pipeline import Permits
    from btfstep.encode.record import UnitRecord
    from btfstep.encode.settings import EncodeSettings

    T = TypeVar("T")
    R = TypeVar("R")

# Bytes of DIEs that a worker takes at once: enough to make the cost of handing
# them over vanish, little enough that all workers end at the same time.
BATCH = 1 << 18


def encode_file(
    path: str,
    *,
    jobs: int,
    options: EncodeSettings,
    log: Callable[[str], None] | None = None,
    base: BtfReader | PreparedBase | None = None,
    permits: Permits | None = None,
) -> bytes | None:
    """Encode the DWARF of the ELF file `path` with `jobs` threads; None if it has none.

    `base`: the BTF that the result is to be split from (`btfstep.btf.load.load` reads it);
    a PreparedBase where many results are. `permits`: what each thread but one needs, see OrderedPipeline.
    `log` is called with a line for each stage and for each function left out.

    Raises FormatError, EncodeError, OSError.
    """
    try:
        with ElfImage.open(path) as image:
            return _encode(image, jobs, options, log, base, permits)
    except BtfstepError as error:
        # What is found out after the merge does not know the file.
        if error.path is None:
            error.path = path
        raise


def _encode(
    image: ElfImage,
    jobs: int,
    options: EncodeSettings,
    log: Callable[[str], None] | None,
    base: BtfReader | PreparedBase | None,
    permits: Permits | None,
) -> bytes | None:
    stages = _Stages(log)
    features = options.features
    prepared = base if isinstance(base, PreparedBase) else None
    reader = base.reader if isinstance(base, PreparedBase) else base
    if reader is not None and reader.big_endian != image.big_endian:
        raise UsageError("is of the other byte order than the base", path=image.path)
    symbols = SymbolTable(image)
    symbols.collect_functions()
    if features.decl_tag_kfuncs:
        mark_kfuncs(image, symbols)
    context = EncodeContext(image, options, symbols, prepared)
    if not context.sections.has_dwarf:
        return None
    if image.section(".symtab") is None:
        raise EncodeError("has no .symtab, which says what functions there are", path=image.path)
    stages.end("read headers and symbols")

    # How many types the first pass keeps matters, rarely, for what the second
    # one does (see btf/graph.pxd), and is known only afterwards.
    assumed = 0
    while True:
        if prepared is not None:
            graph = prepared.new_graph(context.strings, assumed)
        else:
            graph = TypeGraph(context.strings, assumed, reader)
        selector = _collect(context, symbols, jobs, graph, log, permits)
        if graph.choices_hold():
            break
        stages.end("encode units, to be repeated")
        assumed = graph.kept_primitives
        context = EncodeContext(image, options, symbols, prepared)
    stages.end("encode units")
    if context.has_skeletons:
        message = "has units whose debug information is in .dwo files (-gsplit-dwarf), which are not read"
        if graph.is_empty:
            raise EncodeError(message, path=image.path)
        if log is not None:
            log(f"{image.path}: {message}")

    selector.select(graph, features, log)
    writer = Writer(graph, image.big_endian, [section.name for section in image.sections])
    # Readers of split BTF have the base's description of kinds.
    data: bytes = writer.write(features.layout and base is None)
    stages.end("choose functions and write")
    return data


def _collect(
    context: EncodeContext,
    symbols: SymbolTable,
    jobs: int,
    graph: TypeGraph,
    log: Callable[[str], None] | None,
    permits: Permits | None,
) -> FunctionSelector:
    """Decode all units in parallel, and merge them into `graph` in order."""
    selector = FunctionSelector(symbols, context)
    spare: list[UnitRecord] = []
    merger = Merger(context, graph, selector, spare)
    batches = [(0, context.units.count)] if context.merge_units else context.units.batches(BATCH)
    if log is None:
        OrderedPipeline(None, merger, jobs=jobs, make_worker=lambda: Worker(context, spare), permits=permits).run(
            batches
        )
    else:
        decode: list[float] = []
        merge: list[float] = []
        OrderedPipeline(
            None,
            _timed(merger, merge),
            jobs=jobs,
            make_worker=lambda: _timed(Worker(context, spare), decode),
            permits=permits,
        ).run(batches)
        log(f"decode units: {sum(decode):.3f} s of processor time, in all threads")
        log(f"merge units: {sum(merge):.3f} s of processor time, one at a time")
    merger.settle()
    return selector


def _timed(call: Callable[[T], R], seconds: list[float]) -> Callable[[T], R]:
    """The same function, which also adds to `seconds` what each call takes.

    Processor time of its own thread, so that it does not count waiting for others.
    """

    def timed(item: T) -> R:
        start = time.thread_time()
        result = call(item)
        seconds.append(time.thread_time() - start)
        return result

    return timed


class _Stages:
    """Logs how long each stage took."""

    def __init__(self, log: Callable[[str], None] | None) -> None:
        self._log = log
        self._start = time.perf_counter()

    def end(self, stage: str) -> None:
        now = time.perf_counter()
        if self._log is not None:
            self._log(f"{stage}: {now - self._start:.3f} s")
        self._start = now
