# SPDX-License-Identifier: GPL-2.0-only
"""What a BPF object asks of the kernel that it runs on."""
