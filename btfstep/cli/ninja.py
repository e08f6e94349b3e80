# SPDX-License-Identifier: GPL-2.0-only
"""``btfstep ninja``: a Ninja manifest for BPF objects and modules, or the rules for one of your own."""

from __future__ import annotations

import io
import sys

from btfstep.cli.getopt import CommandLineError, option, scan
from btfstep.cli.inputs import EXPLAIN, HELP, help_text, write
from btfstep.errors import UsageError, of_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

KERNEL = option("kernel", metavar="FILE", help="vmlinux with BTF or DWARF, or raw BTF (default: the running kernel)")
OUTPUT = option("output", "o", "FILE", "write to FILE, unless it holds the same already")
BUILDDIR = option("builddir", metavar="DIR", help="where the build is to put what it makes (default: build)")
CFLAGS = option("cflags", metavar="FLAGS", help="added to -target bpf -O2 -g")
ONLY = option("only", metavar="NAME[,NAME...]", help="only these types and what they need in vmlinux.h")
TYPE = option("type", metavar="NAME[,NAME...]", help="count these types as used by every object; see btfstep uses")
FEATURES = option("btf_features", metavar="LIST", help="what to encode of modules (default: 'default')")
SKELETONS = option("skeletons", help="make foo.skel.h of foo.bpf.o, with bpftool")
BTFSTEP = option("btfstep", metavar="COMMAND", help="how the build is to call btfstep (default: btfstep)")
CLANG = option("clang", metavar="COMMAND", help="how the build is to call clang (default: clang)")
BPFTOOL = option("bpftool", metavar="COMMAND", help="how the build is to call bpftool (default: bpftool)")
RULES = option("rules", help="write only the rules, for 'include' in a manifest of your own")
OPTIONS = (
    OUTPUT,
    KERNEL,
    BUILDDIR,
    CFLAGS,
    ONLY,
    TYPE,
    FEATURES,
    SKELETONS,
    BTFSTEP,
    CLANG,
    BPFTOOL,
    RULES,
    EXPLAIN,
    HELP,
)
USAGE = "btfstep ninja [-o build.ninja] [--kernel FILE] [OPTION...] SOURCE.bpf.c... FILE.ko... @LIST..."
ABOUT = """\
Writes a manifest for Ninja. It makes vmlinux.h of the kernel, compiles each SOURCE.bpf.c to DIR/SOURCE.bpf.o, again
only if a type that it uses changed, and writes the BTF of each FILE.ko to FILE.ko.btf, all in one call. @LIST stands
for the modules named in LIST, such as modules.order. --rules writes the rules alone.
"""


def run(argv: Sequence[str]) -> int:
    """Read a command line and do what it says. Raises UsageError, and BtfstepError if a file cannot be used."""
    texts: dict[str, str] = {}
    files: list[str] = []
    flags: set[str] = set()
    for argument in scan(argv, OPTIONS):
        if argument.option is None:
            files.append(argument.value or "")
        elif argument.option is HELP:
            sys.stdout.write(help_text(USAGE, ABOUT, OPTIONS))
            sys.stdout.flush()
            return 0
        elif argument.value is None:
            flags.add(argument.option.name)
        else:
            texts[argument.option.name] = argument.value
    output = texts.pop(OUTPUT.name, None)
    about: Callable[[bytes, bytes], str] | None = None
    if EXPLAIN.name in flags:
        from btfstep.cli.explain import text_difference as about

        flags.remove(EXPLAIN.name)
    if RULES.name in flags:
        if files or texts or len(flags) > 1:
            raise UsageError("--rules writes rules without files or settings; set variables after 'include'")
        write(_shipped_rules(), output, about)
        return 0
    if not files:
        raise CommandLineError("nothing to make: give SOURCE.bpf.c, FILE.ko, @LIST, or --rules")
    write(manifest(files, texts, skeletons=SKELETONS.name in flags).encode("utf-8", "surrogateescape"), output, about)
    return 0


def manifest(files: Sequence[str], texts: dict[str, str], *, skeletons: bool = False) -> str:
    """The text of a manifest; `texts` has the values of options by name. Raises UsageError."""
    from btfstep.btf.load import RUNNING_KERNEL
    from btfstep.build.ninja import Rules
    from btfstep.cli.modules import module_paths

    for file in files:
        if not file.endswith((".c", ".ko")) and not file.startswith("@"):
            raise UsageError(f"'{file}' is neither a source (.c), nor a module (.ko), nor a list of modules (@LIST)")
    syntax = _ninja_syntax()
    sources = [file for file in dict.fromkeys(files) if file.endswith(".c")]
    modules = module_paths([file for file in files if not file.endswith(".c")])
    for name in (*sources, *modules, *texts.values()):
        if "\n" in name:
            raise UsageError(f"Ninja has no way to write a line break: {name!r}")

    out = io.StringIO()
    writer = syntax.Writer(out, width=120)
    writer.comment("Written by btfstep ninja.")
    writer.newline()
    settings = {
        keyword: syntax.escape(texts[chosen.name])
        for keyword, chosen in (
            ("btfstep", BTFSTEP),
            ("clang", CLANG),
            ("bpftool", BPFTOOL),
            ("features", FEATURES),
            ("cflags", CFLAGS),
        )
        if chosen.name in texts
    }
    rules = Rules(writer, **settings)
    folder = syntax.escape(texts.get(BUILDDIR.name, "build"))
    # Also where Ninja keeps its log.
    writer.variable("builddir", folder)
    btf = rules.btf(f"{folder}/vmlinux.btf", syntax.escape(texts.get(KERNEL.name, RUNNING_KERNEL)))
    if sources:
        only = f"--only={_shell(syntax.escape(texts[ONLY.name]))}" if ONLY.name in texts else ""
        header = rules.header(f"{folder}/include/vmlinux.h", btf, flags=only)
        flags = f"--type={_shell(syntax.escape(texts[TYPE.name]))}" if TYPE.name in texts else ""
        for source in map(syntax.escape, sources):
            compiled = rules.object(f"{folder}/{source[:-2]}.o", source, btf=btf, header=header, flags=flags)
            if skeletons:
                rules.skeleton(compiled.removesuffix(".o").removesuffix(".bpf") + ".skel.h", compiled)
    if modules:
        rules.modules([syntax.escape(module) for module in modules], base=btf)
    return out.getvalue()


def _ninja_syntax() -> Any:
    """The module: of the package that comes with Ninja itself, or as distributions install it."""
    from importlib import import_module

    for name in ("ninja.ninja_syntax", "ninja_syntax"):
        try:
            return import_module(name)
        except ImportError:
            pass
    raise UsageError("there is no ninja_syntax: pip install 'btfstep[ninja]', or include what --rules writes")


def _shipped_rules() -> bytes:
    from btfstep.cli.kbuild import shipped

    path = shipped("btfstep.ninja")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise of_system(error, path) from None


def _shell(text: str) -> str:
    """Text as one word of a shell's command line; a dollar sign of Ninja's stays one."""
    return "'" + text.replace("'", "'\"'\"'") + "'"
