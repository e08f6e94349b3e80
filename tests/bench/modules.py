# SPDX-License-Identifier: GPL-2.0-only
"""Modules against their base: one by a call of its own, and all in one call."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .fit import ends_and_middle
from .inputs import Input, btf_digest, copy_all, without_btf
from .measure import Contender, alternate
from .tables import Row, megabytes
from .tools import Setup


def one_module(setup: Setup, base: Path, modules: Sequence[Input]) -> list[Row]:
    """The smallest, the median and the largest by debug information, in place, as the kernel's build calls pahole."""
    room = setup.room("module")
    jobs = setup.jobs[0]
    rows = []
    for module in ends_and_middle(modules, lambda one: one.debug_info):
        plain = room / "plain.ko"
        without_btf(module.path, plain, setup.objcopy)
        contenders = []
        for name, tool, more in (("btfstep", setup.btfstep, ["--no-record"]), ("pahole", setup.pahole, [])):
            copy = room / f"{name}.ko"
            contenders.append(
                Contender(
                    "btfstep" if name == "btfstep" else setup.pahole_name,
                    [tool, "-J", *setup.flags(jobs), f"--btf_base={base}", *more, copy],
                    prepare=partial(copy_all, [(plain, copy)]),
                    output=partial(btf_digest, copy),
                )
            )
        what = f"module {module.title} ({megabytes(module.debug_info)} of `.debug_info`), `-j{jobs}`"
        rows.append(Row(what, *alternate(contenders, setup.runs)))
    shutil.rmtree(room)
    return rows


class Copies:
    """Copies of all modules, without BTF, in a directory that can be brought back to that state."""

    def __init__(self, room: Path, plain: Sequence[Path], titles: Sequence[str]) -> None:
        self._room = room
        self._plain = plain
        self._titles = titles
        self.paths = [room / path.name for path in plain]
        self.list = room.with_suffix(".order")
        self.list.write_text("".join(f"{path}\n" for path in self.paths))

    def reset(self) -> None:
        """As if just linked; records of what was made of them are gone, too."""
        shutil.rmtree(self._room, ignore_errors=True)
        self._room.mkdir()
        copy_all(zip(self._plain, self.paths, strict=True))

    def outputs(self) -> dict[str, str]:
        """A digest of the BTF of each."""
        return {title: btf_digest(path) for title, path in zip(self._titles, self.paths, strict=True)}


def all_modules(setup: Setup, base: Path, modules: Sequence[Input]) -> list[Row]:
    """`btfstep modules` against a call of pahole for each, N at once; then against itself with nothing changed."""
    room = setup.room("modules")
    (room / "plain").mkdir()
    # Numbered: names may come twice in a tree.
    plain = [room / "plain" / f"{number}.ko" for number in range(len(modules))]
    for module, path in zip(modules, plain, strict=True):
        without_btf(module.path, path, setup.objcopy)
    ours, theirs, kept = (
        Copies(room / name, plain, [module.title for module in modules]) for name in ("ours", "theirs", "kept")
    )
    jobs = setup.jobs[-1]

    def together(copies: Copies, *more: str) -> list[str | Path]:
        return [setup.btfstep, "modules", "--base", base, *setup.flags(jobs), *more, f"@{copies.list}"]

    each: list[str | Path] = [setup.pahole, "-J", *setup.flags(1), f"--btf_base={base}"]
    one_call, many_calls, first, again = alternate(
        [
            Contender("btfstep modules", together(ours, "--no-record"), prepare=ours.reset, output=ours.outputs),
            Contender(
                f"{setup.pahole_name}, a call for each, {jobs} at once (memory: of one)",
                ["xargs", "-a", theirs.list, "-n", "1", "-P", str(jobs), *each],
                prepare=theirs.reset,
                output=theirs.outputs,
            ),
            Contender("the first time", together(kept), prepare=kept.reset, output=kept.outputs),
            Contender("nothing changed", together(kept), output=kept.outputs),
        ],
        setup.runs,
    )
    shutil.rmtree(room)
    size = megabytes(sum(module.size for module in modules))
    what = f"`btfstep modules -j{jobs}`"
    return [
        Row(f"{what}, {len(modules)} modules ({size})", one_call, many_calls),
        Row(f"{what}, the same again, nothing changed", again, first),
    ]
