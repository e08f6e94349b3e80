# SPDX-License-Identifier: GPL-2.0-only
"""What each machine's relocation types do to debug information (its psABI's chapter on relocation).

An operation says what happens to the field: nothing, the value is set, added or
subtracted; and how wide the field is. Listed are the types that compilers put into the
debug sections of relocatable files; the names of some others serve messages only.
"""

from __future__ import annotations

from .constants import (
    EM_386,
    EM_AARCH64,
    EM_ARM,
    EM_BPF,
    EM_LOONGARCH,
    EM_MIPS,
    EM_PPC,
    EM_PPC64,
    EM_RISCV,
    EM_S390,
    EM_X86_64,
    machine_name,
)

# An operation: what to do in the upper four bits, the field in the lower four. A field is
# 1, 2, 3, 4 or 8 bytes; BITS6 the low six bits of a byte; ULEB128 as long as it already is.
IGNORE, SET, ADD, SUBTRACT = 0x10, 0x20, 0x30, 0x40
ULEB128, BITS6 = 0, 6

# Every type number below is smaller.
TYPE_LIMIT = 2048

# For each machine, the types that each operation stands for. Those to be ignored are no
# address: nothing at all, or an offset in thread-local storage, which no type depends on.
OPERATIONS: dict[int, dict[int, tuple[int, ...]]] = {
    EM_386: {IGNORE: (0, 32), SET | 1: (22,), SET | 2: (20,), SET | 4: (1,)},
    EM_MIPS: {IGNORE: (0, 39, 41), SET | 2: (1,), SET | 4: (2,), SET | 8: (18,)},
    EM_PPC: {IGNORE: (0, 78), SET | 2: (3, 25), SET | 4: (1, 24)},
    EM_PPC64: {IGNORE: (0, 78, 110), SET | 2: (3, 25), SET | 4: (1, 24), SET | 8: (38, 43)},
    EM_S390: {IGNORE: (0, 52, 53), SET | 1: (1,), SET | 2: (3,), SET | 4: (4,), SET | 8: (22,)},
    EM_ARM: {IGNORE: (0, 106), SET | 1: (8,), SET | 2: (5,), SET | 4: (2,)},
    EM_X86_64: {IGNORE: (0, 17, 21), SET | 1: (14,), SET | 2: (12,), SET | 4: (10, 11), SET | 8: (1,)},
    EM_AARCH64: {IGNORE: (0, 256, 1029), SET | 2: (259,), SET | 4: (258,), SET | 8: (257,)},
    # 1 is a reference to code; LLVM before 13 used it and 10 for what are 2 and 3 now.
    EM_BPF: {IGNORE: (0, 1), SET | 4: (3, 4, 10), SET | 8: (2,)},
    # Linkers of these two shorten code, so a distance in it is an addition and a subtraction.
    EM_RISCV: {
        IGNORE: (0, 8, 9),
        SET | 1: (54,),
        SET | 2: (55,),
        SET | 4: (1, 56),
        SET | 8: (2,),
        SET | BITS6: (53,),
        SET | ULEB128: (60,),
        ADD | 1: (33,),
        ADD | 2: (34,),
        ADD | 4: (35,),
        ADD | 8: (36,),
        SUBTRACT | 1: (37,),
        SUBTRACT | 2: (38,),
        SUBTRACT | 4: (39,),
        SUBTRACT | 8: (40,),
        SUBTRACT | BITS6: (52,),
        SUBTRACT | ULEB128: (61,),
    },
    EM_LOONGARCH: {
        IGNORE: (0, 8, 9),
        SET | 4: (1,),
        SET | 8: (2,),
        ADD | 1: (47,),
        ADD | 2: (48,),
        ADD | 3: (49,),
        ADD | 4: (50,),
        ADD | 8: (51,),
        ADD | BITS6: (105,),
        ADD | ULEB128: (107,),
        SUBTRACT | 1: (52,),
        SUBTRACT | 2: (53,),
        SUBTRACT | 3: (54,),
        SUBTRACT | 4: (55,),
        SUBTRACT | 8: (56,),
        SUBTRACT | BITS6: (106,),
        SUBTRACT | ULEB128: (108,),
    },
}

# Prefix, then runs of consecutive types: the first number and the names.
_NAMES: dict[int, tuple[str, dict[int, str]]] = {
    EM_386: (
        "R_386_",
        {
            0: "NONE 32 PC32 GOT32 PLT32 COPY GLOB_DAT JMP_SLOT RELATIVE GOTOFF GOTPC 32PLT",
            14: "TLS_TPOFF TLS_IE TLS_GOTIE TLS_LE TLS_GD TLS_LDM 16 PC16 8 PC8",
            32: "TLS_LDO_32 TLS_IE_32 TLS_LE_32 TLS_DTPMOD32 TLS_DTPOFF32 TLS_TPOFF32 SIZE32",
            43: "GOT32X",
        },
    ),
    EM_MIPS: (
        "R_MIPS_",
        {
            0: "NONE 16 32 REL32 26 HI16 LO16 GPREL16 LITERAL GOT16 PC16 CALL16 GPREL32",
            18: "64 GOT_DISP GOT_PAGE GOT_OFST GOT_HI16 GOT_LO16 SUB",
            38: "TLS_DTPMOD32 TLS_DTPREL32 TLS_DTPMOD64 TLS_DTPREL64",
            248: "PC32",
        },
    ),
    EM_PPC: (
        "R_PPC_",
        {
            0: "NONE ADDR32 ADDR24 ADDR16 ADDR16_LO ADDR16_HI ADDR16_HA ADDR14 ADDR14_BRTAKEN ADDR14_BRNTAKEN REL24",
            24: "UADDR32 UADDR16 REL32 PLT32 PLTREL32",
            73: "TPREL32",
            78: "DTPREL32",
        },
    ),
    EM_PPC64: (
        "R_PPC64_",
        {
            0: "NONE ADDR32 ADDR24 ADDR16 ADDR16_LO ADDR16_HI ADDR16_HA ADDR14 ADDR14_BRTAKEN ADDR14_BRNTAKEN REL24",
            24: "UADDR32 UADDR16 REL32 PLT32 PLTREL32",
            37: "ADDR30 ADDR64 ADDR16_HIGHER ADDR16_HIGHERA ADDR16_HIGHEST ADDR16_HIGHESTA UADDR64 REL64 PLT64",
            46: "PLTREL64",
            51: "TOC",
            73: "TPREL64",
            78: "DTPREL64",
            110: "DTPREL32",
        },
    ),
    EM_S390: (
        "R_390_",
        {
            0: "NONE 8 12 16 32 PC32 GOT12 GOT32 PLT32 COPY GLOB_DAT JMP_SLOT RELATIVE GOTOFF32 GOTPC GOT16 PC16",
            17: "PC16DBL PLT16DBL PC32DBL PLT32DBL GOTPCDBL 64 PC64 GOT64 PLT64 GOTENT GOTOFF16 GOTOFF64",
            52: "TLS_LDO32 TLS_LDO64 TLS_DTPMOD TLS_DTPOFF TLS_TPOFF 20",
        },
    ),
    EM_ARM: (
        "R_ARM_",
        {
            0: "NONE PC24 ABS32 REL32 PC13 ABS16 ABS12 THM_ABS5 ABS8 SBREL32 THM_PC22",
            20: "COPY GLOB_DAT JUMP_SLOT RELATIVE GOTOFF GOTPC GOT32 PLT32 CALL JUMP24",
            38: "TARGET1 SBREL31 V4BX TARGET2 PREL31",
            104: "TLS_GD32 TLS_LDM32 TLS_LDO32 TLS_IE32 TLS_LE32",
        },
    ),
    EM_BPF: ("R_BPF_", {0: "NONE 64_64 64_ABS64 64_ABS32 64_NODYLD32", 10: "64_32"}),
    EM_X86_64: (
        "R_X86_64_",
        {
            0: "NONE 64 PC32 GOT32 PLT32 COPY GLOB_DAT JUMP_SLOT RELATIVE GOTPCREL 32 32S 16 PC16 8 PC8",
            16: "DTPMOD64 DTPOFF64 TPOFF64 TLSGD TLSLD DTPOFF32 GOTTPOFF TPOFF32 PC64 GOTOFF64 GOTPC32 GOT64",
            28: "GOTPCREL64 GOTPC64 GOTPLT64 PLTOFF64 SIZE32 SIZE64 GOTPC32_TLSDESC TLSDESC_CALL TLSDESC IRELATIVE",
            41: "GOTPCRELX REX_GOTPCRELX",
        },
    ),
    EM_AARCH64: (
        "R_AARCH64_",
        {
            0: "NONE",
            256: "NONE ABS64 ABS32 ABS16 PREL64 PREL32 PREL16",
            282: "JUMP26 CALL26",
            307: "GOTREL64 GOTREL32",
            314: "PLT32 GOTPCREL32",
            1024: "COPY GLOB_DAT JUMP_SLOT RELATIVE TLS_DTPMOD TLS_DTPREL TLS_TPREL TLSDESC IRELATIVE",
        },
    ),
    EM_RISCV: (
        "R_RISCV_",
        {
            0: "NONE 32 64 RELATIVE COPY JUMP_SLOT TLS_DTPMOD32 TLS_DTPMOD64 TLS_DTPREL32 TLS_DTPREL64",
            16: "BRANCH JAL CALL CALL_PLT GOT_HI20",
            33: "ADD8 ADD16 ADD32 ADD64 SUB8 SUB16 SUB32 SUB64 GOT32_PCREL",
            51: "RELAX SUB6 SET6 SET8 SET16 SET32 32_PCREL IRELATIVE PLT32 SET_ULEB128 SUB_ULEB128",
        },
    ),
    EM_LOONGARCH: (
        "R_LARCH_",
        {
            0: "NONE 32 64 RELATIVE COPY JUMP_SLOT TLS_DTPMOD32 TLS_DTPMOD64 TLS_DTPREL32 TLS_DTPREL64",
            47: "ADD8 ADD16 ADD24 ADD32 ADD64 SUB8 SUB16 SUB24 SUB32 SUB64",
            64: "B16 B21 B26",
            99: "32_PCREL RELAX",
            102: "ALIGN PCREL20_S2",
            105: "ADD6 SUB6 ADD_ULEB128 SUB_ULEB128 64_PCREL",
        },
    ),
}


def relocation_name(machine: int, type: int) -> str:
    """A type as messages show it: ``R_X86_64_GOT32 (3)``, or ``311 of aarch64`` where its name is not known."""
    prefix, runs = _NAMES.get(machine, ("", {}))
    for first, names in runs.items():
        listed = names.split()
        if first <= type < first + len(listed):
            return f"{prefix}{listed[type - first]} ({type})"
    return f"{type} of {machine_name(machine)}"
