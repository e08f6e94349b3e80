# SPDX-License-Identifier: GPL-2.0-only
"""The numbers of the ELF specification that btfstep uses, under their own names (gABI, ``<elf.h>``)."""

from __future__ import annotations

ELFMAG = b"\x7fELF"

# Bytes of e_ident.
EI_CLASS = 4
EI_DATA = 5
EI_VERSION = 6
EI_NIDENT = 16

ELFCLASS32 = 1
ELFCLASS64 = 2
ELFDATA2LSB = 1
ELFDATA2MSB = 2
EV_CURRENT = 1

ET_NONE = 0
ET_REL = 1
ET_EXEC = 2
ET_DYN = 3
ET_CORE = 4

# Section indices. From SHN_LORESERVE on an index does not fit the 16-bit fields and
# moves into the header of section 0 ("extended numbering").
SHN_UNDEF = 0
SHN_LORESERVE = 0xFF00
SHN_ABS = 0xFFF1
SHN_COMMON = 0xFFF2
SHN_XINDEX = 0xFFFF
PN_XNUM = 0xFFFF

SHT_NULL = 0
SHT_PROGBITS = 1
SHT_SYMTAB = 2
SHT_STRTAB = 3
SHT_RELA = 4
SHT_NOTE = 7
SHT_NOBITS = 8
SHT_REL = 9
SHT_SYMTAB_SHNDX = 18

SHF_WRITE = 0x1
SHF_ALLOC = 0x2
SHF_EXECINSTR = 0x4
SHF_COMPRESSED = 0x800

ELFCOMPRESS_ZLIB = 1
ELFCOMPRESS_ZSTD = 2

PT_LOAD = 1
PT_NOTE = 4

# Machines that Linux runs on, or ran on recently.
EM_386 = 3
EM_68K = 4
EM_MIPS = 8
EM_PARISC = 15
EM_SPARC = 2
EM_SPARC32PLUS = 18
EM_PPC = 20
EM_PPC64 = 21
EM_S390 = 22
EM_ARM = 40
EM_SH = 42
EM_SPARCV9 = 43
EM_X86_64 = 62
EM_XTENSA = 94
EM_NIOS2 = 113
EM_TI_C6000 = 140
EM_HEXAGON = 164
EM_AARCH64 = 183
EM_MICROBLAZE = 189
EM_ARCV2 = 195
EM_RISCV = 243
EM_BPF = 247
EM_CSKY = 252
EM_LOONGARCH = 258
EM_OPENRISC = 92
EM_ALPHA = 0x9026

MACHINE_NAMES = {
    EM_386: "i386",
    EM_68K: "m68k",
    EM_MIPS: "mips",
    EM_PARISC: "parisc",
    EM_SPARC: "sparc",
    EM_SPARC32PLUS: "sparc32plus",
    EM_PPC: "powerpc",
    EM_PPC64: "powerpc64",
    EM_S390: "s390",
    EM_ARM: "arm",
    EM_SH: "sh",
    EM_SPARCV9: "sparc64",
    EM_X86_64: "x86_64",
    EM_XTENSA: "xtensa",
    EM_NIOS2: "nios2",
    EM_TI_C6000: "c6x",
    EM_HEXAGON: "hexagon",
    EM_AARCH64: "aarch64",
    EM_MICROBLAZE: "microblaze",
    EM_ARCV2: "arc",
    EM_RISCV: "riscv",
    EM_BPF: "bpf",
    EM_CSKY: "csky",
    EM_LOONGARCH: "loongarch",
    EM_OPENRISC: "openrisc",
    EM_ALPHA: "alpha",
}


def machine_name(machine: int) -> str:
    """The usual name of an e_machine value, or ``machine N`` for one that is not listed."""
    return MACHINE_NAMES.get(machine, f"machine {machine}")
