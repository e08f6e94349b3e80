# SPDX-License-Identifier: GPL-2.0-only
"""The ELF container: mapped files, sections, notes, and adding a section in place."""
