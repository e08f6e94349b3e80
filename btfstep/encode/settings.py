# SPDX-License-Identifier: GPL-2.0-only
"""What an encoder is told, apart from the file."""

from __future__ import annotations

from btfstep._record import Record
from btfstep.features import Features, initial_features


class EncodeSettings(Record):
    """The settings of one encode; immutable.

    Languages are DW_LANG codes of the DWARF standard (``btfstep.cli.languages``
    has their names).
    """

    __slots__ = ("cu_exclude", "features", "kabi_prefix", "lang", "lang_exclude", "verbose")

    features: Features
    lang: frozenset[int] | None
    """Only units in these languages are read; None for all."""
    lang_exclude: frozenset[int]
    """Units in these languages are left out."""
    cu_exclude: str | None
    """Units whose name starts with this, and units without a name, are left out."""
    kabi_prefix: str | None
    """Every string that starts with this is read as if it were just this."""
    verbose: bool

    def __init__(
        self,
        *,
        features: Features | None = None,
        lang: frozenset[int] | None = None,
        lang_exclude: frozenset[int] = frozenset(),
        cu_exclude: str | None = None,
        kabi_prefix: str | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            features=initial_features() if features is None else features,
            lang=lang,
            lang_exclude=lang_exclude,
            cu_exclude=cu_exclude,
            kabi_prefix=kabi_prefix,
            verbose=verbose,
        )
