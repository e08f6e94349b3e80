# SPDX-License-Identifier: GPL-2.0-only
"""The options of pahole 1.32, and the few of btfstep's own.

:data:`ENCODING` is what btfstep does. :data:`ELSEWHERE` is the rest of
pahole's options, each with the program that does what it asks for. Together
they are pahole's whole set, so that the same abbreviations are unambiguous.
"""

from __future__ import annotations

from btfstep.cli.getopt import Option, option
from btfstep.features import FEATURES

# Shown in this order by --help.
_MAIN = (
    option("btf_encode", "J", help="encode the DWARF of FILE as its .BTF section"),
    option("btf_encode_detached", metavar="OUT", help="encode into OUT instead, as raw BTF"),
    option("btf_base", metavar="BASE", help="make split BTF against BASE (an ELF with .BTF, or raw BTF)"),
    option("jobs", "j", "N", "decode with N threads; without N, one for each processor", optional=True),
    option("btf_features", metavar="LIST", help="what to encode: names of features, default, all"),
    option("features", metavar="LIST", help="the same"),
    option("btf_features_strict", metavar="LIST", help="the same, but refuse features that are not known"),
    option("lang", metavar="LIST", help="read only units in these languages"),
    option("lang_exclude", metavar="LIST", help="leave out units in these; default: $PAHOLE_LANG_EXCLUDE"),
    option("cu_exclude", "X", "PREFIX", "leave out units whose name starts with PREFIX"),
    option("kabi_prefix", metavar="STRING", help="cut names that start with STRING down to STRING"),
    option("format_path", "F", "FORMAT", "which debugging format to read: dwarf"),
    option("touch", help="move FILE's modification time even if it holds this BTF already (default)"),
    option("no-touch", help="leave an unchanged FILE's modification time alone"),
    option("no-record", help="with a base: neither use nor keep what was made of FILE before"),
    option("explain", help="say on standard error why the output was written, or why not"),
    option("verbose", "V", help="say what is done and what is left out, on standard error"),
)
# Each older spelling is in the table of features, but for these two.
_OLDER = (
    *(option(feature.older) for feature in FEATURES if feature.older is not None),
    option("btf_gen_all"),
)
_IGNORED = (option("hashbits", metavar="BITS"),)
_QUESTIONS = (
    option("supported_btf_features", help="list the features that --btf_features knows"),
    option("version", help="the version of pahole that this stands in for"),
    option("numeric_version", help="the same as a number"),
    option("devel_version", help="the same with btfstep's own version"),
    option("help", "?", help="this text"),
    option("usage", help="one line of help"),
)

ENCODING: tuple[Option, ...] = (*_MAIN, *_OLDER, *_IGNORED, *_QUESTIONS)
HELP_GROUPS = (("Encoding", _MAIN), ("Questions", _QUESTIONS))
OLDER_FEATURES = {feature.older: feature for feature in FEATURES if feature.older is not None}

PAHOLE = "pahole"
BPFTOOL = "'bpftool btf dump file FILE format c'"

# (option, what it is about, which program does it)
_ELSEWHERE: tuple[tuple[Option, str, str], ...] = (
    *(
        (printing, "printing types", PAHOLE)
        for printing in (
            option("anon_include", "a"),
            option("nested_anon_include", "A"),
            option("bit_holes", "B", "NR"),
            option("cacheline_size", "c", "SIZE"),
            option("class_name", "C", "NAME"),
            option("classes_as_structs"),
            option("class_name_len", "N"),
            option("contains", "i", "NAME"),
            option("contains_enumerator", metavar="NAME"),
            option("decl_exclude", "D", "PREFIX"),
            option("defined_in", "u"),
            option("exclude", "x", "PREFIX"),
            option("expand_pointers", "p"),
            option("expand_types", "E"),
            option("find_pointers_to", "f", "NAME"),
            option("first_obj_only"),
            option("fixup_silly_bitfields"),
            option("flat_arrays"),
            option("hex"),
            option("hole_size_ge", "z", "SIZE"),
            option("holes", "H", "NR"),
            option("nr_definitions", "T"),
            option("nr_members", "n"),
            option("packable", "P"),
            option("packed"),
            option("padding_ge", metavar="SIZE"),
            option("prefix_filter", "y", "PREFIX"),
            option("ptr_table_stats"),
            option("quiet", "q"),
            option("recursive", "d"),
            option("rel_offset", "r"),
            option("reorganize", "R"),
            option("separator", "t", "SEP"),
            option("show_decl_info", "I"),
            option("show_first_biggest_size_base_type_member", "l"),
            option("show_only_data_members", "M"),
            option("show_private_classes"),
            option("show_reorg_steps", "S"),
            option("sizes", "s"),
            option("skip_missing"),
            option("sort"),
            option("structs"),
            option("suppress_aligned_attribute"),
            option("suppress_force_paddings"),
            option("suppress_packed"),
            option("unions"),
            option("with_embedded_flexible_array"),
            option("with_flexible_array"),
            option("word_size", "w", "SIZE"),
        )
    ),
    *(
        (raw, "printing raw data", PAHOLE)
        for raw in (
            option("count", metavar="COUNT"),
            option("header_type", metavar="TYPE"),
            option("prettify", metavar="PATH"),
            option("range", metavar="STRUCT"),
            option("seek_bytes", metavar="BYTES"),
            option("size_bytes", metavar="BYTES"),
            option("skip", metavar="COUNT"),
        )
    ),
    (option("nr_methods", "m"), "printing functions", "pfunct"),
    (option("compile"), "printing a C header", BPFTOOL),
    (option("skip_emitting_atomic_typedefs"), "printing a C header", BPFTOOL),
    (option("running_kernel_vmlinux"), "finding the running kernel's vmlinux", PAHOLE),
    (option("ctf_encode", "Z"), "CTF", "'gcc -gctf'"),
)

ELSEWHERE: dict[str, tuple[str, str]] = {entry.name: (about, program) for entry, about, program in _ELSEWHERE}
ALL: tuple[Option, ...] = (*ENCODING, *(entry for entry, _, _ in _ELSEWHERE))
