# SPDX-License-Identifier: GPL-2.0-only
"""Ninja rules for what btfstep makes, and the statements that use them.

    from ninja.ninja_syntax import Writer
    from btfstep.build.ninja import Rules

    with open("build.ninja", "w") as file:
        rules = Rules(Writer(file))
        btf = rules.btf("build/vmlinux.btf", "vmlinux")
        header = rules.header("build/include/vmlinux.h", btf)
        rules.object("build/prog.bpf.o", "prog.bpf.c", btf=btf, header=header)

The same rules are in ``kbuild/btfstep.ninja``, for manifests that are written otherwise.

Every rule has ``restat``: btfstep leaves an output alone that would not change, and what
depends on it then does not run. Names of files are Ninja's text, as for ``ninja_syntax``:
a dollar sign stands for a variable, and ``ninja_syntax.escape`` makes it one of the name.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ninja.ninja_syntax import Writer

VARIABLES = {
    "btfstep": "btfstep",
    "btfstep_clang": "clang",
    "btfstep_bpftool": "bpftool",
    "btfstep_features": "default",
    "btfstep_cflags": "",
}

# Steps that take all processors wait for each other.
POOL = "btfstep"

# An object's .uses is written by its compilation too, so that it is about the new object. The object is newer than it,
# and restat has Ninja see that: without, the start of the command would count. The object gets its name last, so that
# there is none without a .uses of its own. Its depfile tells both commands what it was compiled from, so Ninja must not
# move it into its log (with deps).
_COMPILE = (
    "$btfstep_clang -target bpf -O2 -g $btfstep_cflags $cflags -isystem $include"
    " -MMD -MQ $out -MF $out.d -c $in -o $out.tmp"
    " && $btfstep uses $out.tmp --sources $out.d --vmlinux $btf $uses_flags --stamp $out.uses"
    " && touch $out.tmp && mv -f $out.tmp $out"
)
_MODULES = "$btfstep modules --base $base -j --btf_features=$btfstep_features $flags"

RULES: dict[str, dict[str, Any]] = {
    "btfstep_btf": {
        "command": "$btfstep dump $in --format btf -j $flags -o $out",
        "description": "BTF $out",
        "pool": POOL,
    },
    "btfstep_header": {
        "command": "$btfstep vmlinux-h $in $flags -o $out --depfile $out.d",
        "description": "HEADER $out",
        "depfile": "$out.d",
        "deps": "gcc",
    },
    "btfstep_uses": {
        "command": "$btfstep uses $object --missing-ok --sources $object.d --vmlinux $in $flags --stamp $out",
        "description": "USES $out",
    },
    "btfstep_object": {"command": _COMPILE, "description": "BPF $out", "depfile": "$out.d"},
    "btfstep_skeleton": {
        "command": "$btfstep_bpftool gen skeleton $in > $out.tmp && mv -f $out.tmp $out",
        "description": "SKEL $out",
    },
    "btfstep_encode": {
        "command": "$btfstep -j --btf_features=$btfstep_features $flags --btf_encode_detached=$out $in",
        "description": "BTF $out",
        "pool": POOL,
    },
    "btfstep_modules": {
        "command": f"{_MODULES} --btf_encode_detached=%.btf @$rsp > /dev/null",
        "description": "BTF of modules against $base",
        "pool": POOL,
        "rspfile": "$rsp",
        "rspfile_content": "$in_newline",
    },
    "btfstep_modules_in_place": {
        "command": f"{_MODULES} --no-touch @$out.rsp > /dev/null && touch $out",
        "description": "BTF in modules against $base",
        "pool": POOL,
        "rspfile": "$out.rsp",
        "rspfile_content": "$in_newline",
    },
}


class Rules:
    """Writes the rules to a manifest at once, and statements that use them when their methods are called.

    `writer` is a ``ninja_syntax.Writer``. The programs are commands, so they
    may have arguments. Each method returns the name of what it has made.
    """

    def __init__(
        self,
        writer: Writer,
        *,
        btfstep: str = VARIABLES["btfstep"],
        clang: str = VARIABLES["btfstep_clang"],
        bpftool: str = VARIABLES["btfstep_bpftool"],
        features: str = VARIABLES["btfstep_features"],
        cflags: str = VARIABLES["btfstep_cflags"],
    ) -> None:
        self.writer = writer
        values = (btfstep, clang, bpftool, features, cflags)
        for name, value in zip(VARIABLES, values, strict=True):
            writer.variable(name, value)
        writer.newline()
        writer.pool(POOL, 1)
        for name, rule in RULES.items():
            writer.newline()
            writer.rule(name, restat=True, **rule)
        writer.newline()

    def btf(self, output: str, kernel: str, *, flags: str = "") -> str:
        """Copy the BTF of `kernel`: an ELF file with BTF or DWARF, or raw BTF. `flags` are those of ``btfstep dump``.

        Headers and objects are made of the copy, so that all of a build are of one kernel even if that is linked
        meanwhile, and nothing more is done if its BTF stays the same.
        """
        self.writer.build([output], "btfstep_btf", [kernel], variables=_set(flags=flags))
        return output

    def header(self, output: str, btf: str, *, base: str | None = None, flags: str = "") -> str:
        """Write ``vmlinux.h``, or the header of a module against its base. `flags` are those of ``btfstep vmlinux-h``.

        A header for objects needs a directory of its own, in which no source lies.
        """
        if base is not None:
            flags = f"-B {_quoted(base)} {flags}"
        self.writer.build([output], "btfstep_header", [btf], variables=_set(flags=flags))
        return output

    def object(
        self,
        output: str,
        source: str,
        *,
        btf: str,
        header: str,
        cflags: str = "",
        flags: str = "",
        implicit: Sequence[str] = (),
        order_only: Sequence[str] = (),
    ) -> str:
        """Compile a BPF object, again only if its sources, or a type of `btf` that it uses, changed.

        `header` is found as ``vmlinux.h``, or whatever its last part is. `flags` are those of ``btfstep uses``.
        """
        uses = f"{output}.uses"
        self.writer.build([uses], "btfstep_uses", [btf], variables=_set(object=_quoted(output), flags=flags))
        self.writer.build(
            [output],
            "btfstep_object",
            [source],
            implicit=[uses, *implicit],
            order_only=[header, *order_only],
            variables=_set(btf=_quoted(btf), include=_quoted(_folder(header)), cflags=cflags, uses_flags=flags),
        )
        return output

    def skeleton(self, output: str, object: str) -> str:
        """Make the skeleton of an object, with bpftool."""
        self.writer.build([output], "btfstep_skeleton", [object])
        return output

    def encode(self, output: str, elf: str, *, base: str | None = None, flags: str = "") -> str:
        """Encode the DWARF of a file, to raw BTF. `flags` are those of ``btfstep``."""
        if base is not None:
            flags = f"--btf_base={_quoted(base)} {flags}"
        self.writer.build([output], "btfstep_encode", [elf], implicit=_list(base), variables=_set(flags=flags))
        return output

    def modules(self, modules: Sequence[str], *, base: str, flags: str = "") -> list[str]:
        """Encode modules against `base` in one call, each foo.ko to raw BTF in foo.ko.btf: names of the latter.

        What depends on the BTF of a module runs only if that changed.
        """
        outputs = [f"{module}.btf" for module in modules]
        if not outputs:
            return []
        self.writer.build(
            outputs,
            "btfstep_modules",
            list(modules),
            implicit=[base],
            variables=_set(base=_quoted(base), flags=flags, rsp=f"{outputs[0]}.rsp"),
        )
        return outputs

    def modules_in_place(self, stamp: str, modules: Sequence[str], *, base: str, flags: str = "") -> str:
        """Add BTF to modules in one call, and touch `stamp`, which is for what comes after it."""
        self.writer.build(
            [stamp],
            "btfstep_modules_in_place",
            list(modules),
            implicit=[base],
            variables=_set(base=_quoted(base), flags=flags),
        )
        return stamp


def _set(**variables: str) -> dict[str, str]:
    """The variables that are not empty."""
    return {name: value.strip() for name, value in variables.items() if value.strip()}


def _list(name: str | None) -> list[str]:
    return [] if name is None else [name]


def _folder(path: str) -> str:
    folder, slash, _ = path.rpartition("/")
    return folder or slash or "."


def _quoted(name: str) -> str:
    """A file name inside a command, where Ninja quotes only $in and $out."""
    if re.fullmatch(r"(?:[\w@%+=:,./~-]|\$(?!\$)|[{}])*", name):  # a variable may stay one
        return name
    return "'" + name.replace("'", "'\"'\"'") + "'"
