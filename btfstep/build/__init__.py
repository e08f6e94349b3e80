# SPDX-License-Identifier: GPL-2.0-only
"""What a build system needs from a step: outputs that move only when their content does."""
