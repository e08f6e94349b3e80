# SPDX-License-Identifier: GPL-2.0-only
class UnitRecord:
    """The types, functions and variables of one unit."""
