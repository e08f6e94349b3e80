# SPDX-License-Identifier: GPL-2.0-only
"""One vmlinux: detached, in place, vmlinux.h, and a run that finds nothing to do."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from .inputs import Input, btf_digest, copy_all, digest
from .measure import Argument, BenchError, Contender, Measured, Run, alternate, run
from .tables import Row
from .tools import Setup

# Enough threads for memory to show that it grows with them, if it does.
MANY = 8


def detached(setup: Setup, source: Input) -> list[Row]:
    """Time and memory at each -j against pahole's; of btfstep, each -j against the first, and memory at -j8."""
    room = setup.room("detached")
    tools = {"btfstep": setup.btfstep, "pahole": setup.pahole}
    names = {"btfstep": "btfstep -j{}", "pahole": setup.pahole_name}
    contenders: dict[tuple[str, int], Contender] = {}
    for name, jobs in [*((name, jobs) for jobs in setup.jobs for name in tools), ("btfstep", MANY)]:
        out = room / f"{name}-j{jobs}.btf"
        contenders[name, jobs] = Contender(
            names[name].format(jobs),
            setup.detached(tools[name], jobs, source.path, out),
            prepare=partial(out.unlink, missing_ok=True),
            output=partial(digest, out),
        )
    taken = dict(zip(contenders, alternate(list(contenders.values()), setup.runs), strict=True))
    shutil.rmtree(room)
    first = setup.jobs[0]
    rows = [Row(f"detached, `-j{jobs}`", taken["btfstep", jobs], taken["pahole", jobs]) for jobs in setup.jobs]
    return rows + [
        Row(f"detached, `-j{jobs}` against `-j{first}`", taken["btfstep", jobs], taken["btfstep", first])
        for jobs in sorted({*setup.jobs[1:], MANY} - {first})
    ]


def in_place(setup: Setup, source: Input) -> list[Row]:
    """Adding .BTF to a vmlinux that has none; pahole calls objcopy for that."""
    plain = setup.plain(source)
    room = setup.room("in-place")
    rows = []
    for jobs in setup.jobs:
        contenders = []
        for name, tool in (("btfstep", setup.btfstep), ("pahole", setup.pahole)):
            copy = room / name
            contenders.append(
                Contender(
                    "btfstep" if name == "btfstep" else f"{setup.pahole_name} with objcopy",
                    [tool, "-J", *setup.flags(jobs), copy],
                    prepare=partial(copy_all, [(plain, copy)]),
                    output=partial(btf_digest, copy),
                )
            )
        rows.append(Row(f"in place, `-j{jobs}`", *alternate(contenders, setup.runs)))
    shutil.rmtree(room)
    return rows


def vmlinux_h(setup: Setup, source: Input) -> list[Row]:
    """The C header of its BTF. Raises BenchError without a bpftool to compare with."""
    if setup.bpftool is None:
        raise BenchError("vmlinux-h is compared with bpftool: give --bpftool")
    room = setup.room("vmlinux-h")
    btf = setup.with_btf(source)
    ours, theirs = room / "btfstep.h", room / "bpftool.h"
    contenders = [
        Contender(
            "btfstep vmlinux-h",
            [setup.btfstep, "vmlinux-h", btf, "-o", ours],
            prepare=partial(ours.unlink, missing_ok=True),
            output=partial(digest, ours),
        ),
        Contender(
            setup.bpftool_name,
            [setup.bpftool, "btf", "dump", "file", btf, "format", "c"],
            output=partial(digest, theirs),
            stdout=theirs,
        ),
    ]
    rows = [Row("`vmlinux.h` of its BTF", *alternate(contenders, setup.runs))]
    shutil.rmtree(room)
    return rows


def nothing_to_do(setup: Setup, source: Input, module: Input | None) -> list[Row]:
    """Encoding in place what has its BTF already, beside bare start-up and reading what the run has to read.

    A vmlinux is read whole. Of a module's base only the BTF is: there is no
    need to read the rest to know that it is the same.
    """
    room = setup.room("nothing")
    jobs = setup.jobs[0]
    vmlinux, ko = room / "vmlinux", room / "module.ko"
    copy_all([(setup.plain(source), vmlinux)])
    cases: list[tuple[str, list[Argument], list[Path]]] = [
        ("vmlinux", [setup.btfstep, "-J", *setup.flags(jobs), vmlinux], [vmlinux])
    ]
    if module is not None:
        copy_all([(module.path, ko)])
        base = setup.with_btf(source)
        command: list[Argument] = [setup.btfstep, "-J", *setup.flags(jobs), f"--btf_base={base}", ko]
        cases.append((f"module {module.title}", command, [ko, setup.raw_btf(source)]))
    rows = []
    for title, command, inputs in cases:
        run(command)  # this one has something to do
        once = btf_digest(inputs[0])
        start, reading, nothing = alternate(
            [
                Contender("start-up (--version)", [setup.btfstep, "--version"]),
                Contender("reading (cat)", ["cat", *inputs], stdout=Path("/dev/null")),
                Contender("nothing to do", command, output=partial(btf_digest, inputs[0])),
            ],
            setup.runs,
        )
        floor = Measured("start-up and `cat` of the input", outputs=[once])
        floor.runs += [
            Run(one.seconds + two.seconds, max(one.memory, two.memory))
            for one, two in zip(start.runs, reading.runs, strict=True)
        ]
        rows.append(Row(f"{title} in place again, nothing changed, `-j{jobs}`", nothing, floor))
    shutil.rmtree(room)
    return rows
