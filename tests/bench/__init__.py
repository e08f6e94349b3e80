# SPDX-License-Identifier: GPL-2.0-only
"""Measurements beside the tools that btfstep replaces: ``python -m tests.bench --help``."""
