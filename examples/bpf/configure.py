#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Write build.ninja: ``configure.py [VMLINUX]``; without one, for the running kernel."""

import sys

from ninja.ninja_syntax import Writer

from btfstep.build.ninja import Rules

kernel = sys.argv[1] if len(sys.argv) > 1 else "/sys/kernel/btf/vmlinux"

with open("build.ninja", "w") as file:
    rules = Rules(Writer(file), cflags="-Wall")
    rules.writer.variable("builddir", "build")
    btf = rules.btf("build/vmlinux.btf", kernel)
    header = rules.header("build/include/vmlinux.h", btf)
    for name in ("exec", "send"):
        rules.object(f"build/{name}.bpf.o", f"{name}.bpf.c", btf=btf, header=header)
