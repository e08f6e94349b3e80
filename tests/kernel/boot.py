# SPDX-License-Identifier: GPL-2.0-only
"""Build a kernel with btfstep, compare its BTF with pahole's, and boot it.

    python tests/kernel/boot.py --source 6.12 --work DIR [--pahole PATH] [--btfstep PATH]

Starts from what a fresh Debian has: installs what a kernel's build needs and Debian's linux-source-6.12,
and builds a small kernel twice, in two directories, with -j and -j1, and with KBUILD_BUILD_TIMESTAMP set the second
time. Then the same objects are linked again with pahole; and the kernel is started in qemu. Takes half an hour on
two processors, and 4 GB below DIR.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tree import PACKAGES, CheckError, Sections, Tree, btf_sections, check, install, types_and_strings, unpack

# What the kernel is asked inside: digests of what it offers, then its log. Each answer is a line that starts with "##".
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
dmesg -n 1
echo "## vmlinux $(sha256sum < /sys/kernel/btf/vmlinux)"
for module in $(cat /modules); do
	error=$(modprobe $module 2>&1) || echo "## failed $module: $error"
done
for module in /sys/kernel/btf/*; do
	echo "## btf ${module##*/} $(sha256sum < $module)"
done
dmesg | sed 's/^/## log /'
echo "## end"
reboot -f
"""


def initramfs(tree: Tree, pahole: Path, directory: Path) -> Path:
    """An initial file system with busybox and all modules of the tree, uncompressed."""
    root = directory / "root"
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("bin", "proc", "sys", "dev"):
        (root / folder).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    (root / "sbin").symlink_to("bin")  # the kernel calls /sbin/modprobe
    tree.make("modules_install", pahole=pahole, INSTALL_MOD_PATH=str(root), INSTALL_MOD_STRIP="1")
    (root / "modules").write_text("".join(f"{module.stem}\n" for module in tree.modules()))
    init = root / "init"
    init.write_text(INIT)
    init.chmod(0o755)
    archive = directory / "initramfs"
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with archive.open("wb") as out:
        subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], input=names.encode(), stdout=out, cwd=root, check=True)
    return archive


def boot(tree: Tree, pahole: Path, directory: Path) -> list[str]:
    """Start the kernel in qemu, in software, and return its answers. Raises CheckError if it never ends."""
    command = ["qemu-system-x86_64", "-accel", "tcg", "-m", "1024", "-nographic", "-no-reboot", "-monitor", "none"]
    command += [
        "-kernel",
        str(tree.objects / "arch/x86/boot/bzImage"),
        "-initrd",
        str(initramfs(tree, pahole, directory)),
    ]
    command += ["-append", "console=ttyS0 panic=-1"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired as error:
        raise CheckError(f"the kernel did not end: {str(error.stdout)[-4000:]}") from None
    answers = [line[3:].strip() for line in done.stdout.splitlines() if line.startswith("## ")]
    if answers[-1:] != ["end"]:
        raise CheckError(f"the kernel did not get to its end:\n{done.stdout[-4000:]}\n{done.stderr}")
    return answers[:-1]


def check_boot(tree: Tree, pahole: Path, directory: Path) -> None:
    """Boot it, and compare what it offers with what was built."""
    answers = boot(tree, pahole, directory)
    offered = {words[1]: words[2] for words in map(str.split, answers) if words[0] == "btf"}
    expected = {
        name: hashlib.sha256(btf_sections(tree.objects / path)[".BTF"]).hexdigest()
        for name, path in [("vmlinux", Path("vmlinux")), *((m.stem.replace("-", "_"), m) for m in tree.modules())]
    }
    check(offered.get("vmlinux") == expected["vmlinux"], "/sys/kernel/btf/vmlinux is the .BTF of vmlinux")
    failed = [line for line in answers if line.startswith("failed")]
    check(not failed, f"{len(tree.modules())} modules load {failed or ''}")
    check(offered == expected, f"/sys/kernel/btf has their {len(expected) - 1} BTFs, the same bytes")
    log = [line for line in answers if line.startswith("log")]
    complaints = [line for line in log if "btf" in line.lower() or "BPF:" in line]
    check(log and not complaints, f"nothing among {len(log)} lines of the log complains of BTF {complaints or ''}")


def check_pahole(tree: Tree, pahole: Path, btfstep: Path) -> None:
    """Link the same objects with pahole instead, and compare; in the end the tree is as btfstep left it."""
    ours = before_ours = tree.sections()
    objects = [tree.objects / "vmlinux.o", *(module.with_suffix(".o") for module in tree.modules())]
    before = [file.stat().st_mtime_ns for file in objects]
    for program in (pahole, btfstep):
        for file in tree.linked():
            file.unlink(missing_ok=True)
        tree.make(pahole=program)
        if program == pahole:
            theirs = tree.sections()
    check([file.stat().st_mtime_ns for file in objects] == before, "the objects stayed the same")
    known = subprocess.run([pahole, "--supported_btf_features"], capture_output=True, text=True, check=True)
    count = sum(len(sections) for sections in theirs.values())
    what = f"{count} sections .BTF and .BTF_ids"
    if "layout" not in known.stdout:  # that depends on its libbpf
        what += " (their types and strings)"
        ours, theirs = without_layout(ours), without_layout(theirs)
    different = [file for file in ours if ours[file] != theirs.get(file)]
    check(ours == theirs, f"{what} are the bytes that pahole gives {different or ''}")
    check(before_ours == tree.sections(), "and the same when linked again with btfstep")


def without_layout(files: Sections) -> Sections:
    """The same, with only types and strings of each BTF."""
    return {
        file: {
            name: b"".join(types_and_strings(data)) if name.startswith(".BTF") and name != ".BTF_ids" else data
            for name, data in sections.items()
        }
        for file, sections in files.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", default="6.12", help="6.12 for Debian's linux-source-6.12, or a directory")
    parser.add_argument("--work", type=Path, required=True, help="where sources and objects go; kept, and used again")
    parser.add_argument("--btfstep", type=Path, help="the btfstep (default: beside this python)")
    parser.add_argument("--pahole", type=Path, help="compare with this one (default: $BTFSTEP_REFERENCE/bin/pahole)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--once", action="store_true", help="leave out the second build")
    arguments = parser.parse_args()
    btfstep = arguments.btfstep or Path(sys.executable).parent / "btfstep"
    pahole = arguments.pahole
    if pahole is None and "BTFSTEP_REFERENCE" in os.environ:
        pahole = Path(os.environ["BTFSTEP_REFERENCE"]) / "bin/pahole"
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    install(PACKAGES)
    source = Path(arguments.source).resolve() if "/" in arguments.source else unpack(arguments.source, work)

    first = Tree(source, work / f"{source.name}-first", jobs=arguments.jobs)
    first.configure(btfstep)
    check(first.option("PAHOLE_VERSION") == "132", "configuration finds version 1.32")
    check(first.option("DEBUG_INFO_BTF_MODULES") == "y", "and takes BTF for vmlinux and modules")
    first.make(pahole=btfstep)
    ours = first.sections()
    check(all(".BTF" in sections for sections in ours.values()), f"vmlinux and {len(ours) - 1} modules have BTF")

    if not arguments.once:
        second = Tree(source, work / f"{source.name}-second", jobs=1)
        second.configure(btfstep)
        second.make(pahole=btfstep, KBUILD_BUILD_TIMESTAMP="2026-01-01")
        check(ours == second.sections(), "the same in another directory, with -j1 and KBUILD_BUILD_TIMESTAMP")
    if pahole is None:
        print("skipped: the comparison with pahole; give --pahole")
    else:
        check_pahole(first, pahole, btfstep)
    check_boot(first, btfstep, work)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CheckError as failure:
        sys.exit(f"failed: {failure}")
