# SPDX-License-Identifier: GPL-2.0-only
"""The BTF features of pahole 1.32: one table, and how lists of them are read.

Parsing, ``--supported_btf_features``, ``--help`` and README.md all draw on
:data:`FEATURES`; a test compares the README with :func:`markdown_table`.
"""

from __future__ import annotations

from btfstep._record import Record
from btfstep.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Feature(Record):
    """One row of the table."""

    __slots__ = ("default", "in_all", "initial", "meaning", "name", "older", "older_sets")

    name: str
    meaning: str
    default: bool
    """Whether ``default`` turns it on."""
    initial: bool
    """Whether it is on when no feature list is given at all."""
    in_all: bool
    """Whether ``all`` turns it on."""
    older: str | None
    """The option that stood for it before there were feature lists, without dashes."""
    older_sets: bool
    """What that option sets it to."""


def _feature(
    name: str,
    meaning: str,
    *,
    default: bool = False,
    initial: bool = False,
    in_all: bool = True,
    older: str | None = None,
    older_sets: bool = True,
) -> Feature:
    return Feature(
        name=name,
        meaning=meaning,
        default=default,
        initial=initial,
        in_all=in_all,
        older=older,
        older_sets=older_sets,
    )


# In pahole's own order, which --supported_btf_features shows.
FEATURES: tuple[Feature, ...] = (
    _feature(
        "encode_force", "go on past symbols whose names BTF does not allow", default=True, older="btf_encode_force"
    ),
    _feature(
        "var",
        "per-CPU variables, as VAR",
        default=True,
        initial=True,
        older="skip_encoding_btf_vars",
        older_sets=False,
    ),
    _feature("float", "floating-point types, as FLOAT rather than INT", default=True, older="btf_gen_floats"),
    _feature(
        "decl_tag",
        "declaration tags, as DECL_TAG",
        default=True,
        initial=True,
        older="skip_encoding_btf_decl_tag",
        older_sets=False,
    ),
    _feature(
        "type_tag",
        "type tags, as TYPE_TAG",
        default=True,
        initial=True,
        older="skip_encoding_btf_type_tag",
        older_sets=False,
    ),
    _feature(
        "enum64",
        "enumerations of 64-bit values, as ENUM64",
        default=True,
        initial=True,
        older="skip_encoding_btf_enum64",
        older_sets=False,
    ),
    _feature(
        "optimized_func",
        "functions that the compiler renamed when it optimized them (.isra, .constprop)",
        default=True,
        older="btf_gen_optimized",
    ),
    _feature(
        "consistent_func",
        "leave out functions whose prototypes disagree, or whose parameters are not where a caller puts them",
        default=True,
        older="skip_encoding_btf_inconsistent_proto",
    ),
    _feature("decl_tag_kfuncs", "a DECL_TAG for each kfunc", default=True),
    _feature("reproducible_build", "the same bytes on every run (always so here)", older="reproducible_build"),
    # `all` leaves this one out, as in pahole: it means nothing without --btf_base.
    _feature("distilled_base", "for split BTF, the part of the base that it needs, as .BTF.base", in_all=False),
    _feature("global_var", "global variables, as VAR in a DATASEC a section", older="encode_btf_global_vars"),
    _feature("attributes", "attributes, as tags with the kind flag set", older="btf_attributes"),
    _feature("true_signature", "signatures as the compiler left them, for functions that it optimized"),
    # pahole's `all` takes this one in only where its libbpf is 1.8 or newer;
    # with 1.7, as distributions build it, `all` has no layout section.
    _feature("layout", "a section that says how each kind is laid out, for readers that do not know it", in_all=False),
    # Out of `all` in pahole too: it is about reading DWARF.
    _feature("force_cu_merging", "read all units as one, for references between units", in_all=False),
)

NAMES: tuple[str, ...] = tuple(feature.name for feature in FEATURES)
_BY_NAME = {feature.name: feature for feature in FEATURES}


class Features(Record):
    """Which BTF features are on: a bool for each, immutable.

    ``Features()`` has all of them off; ``Features(var=True)`` turns one on.
    For a list as the command line takes it, see :func:`parse_features`.
    """

    __slots__ = NAMES

    encode_force: bool
    var: bool
    float: bool
    decl_tag: bool
    type_tag: bool
    enum64: bool
    optimized_func: bool
    consistent_func: bool
    decl_tag_kfuncs: bool
    reproducible_build: bool
    distilled_base: bool
    global_var: bool
    attributes: bool
    true_signature: bool
    layout: bool
    force_cu_merging: bool

    def __init__(self, **on: bool) -> None:
        super().__init__(**{**dict.fromkeys(NAMES, False), **on})

    def names(self) -> tuple[str, ...]:
        """The features that are on, in the table's order."""
        return tuple(name for name in NAMES if getattr(self, name))


class FeatureChoice:
    """The features that a command line asks for, option by option.

    Without any list, some features start on (``Feature.initial``) and the
    older options switch single ones. The first list turns everything off,
    also what older options before it turned on; from then on, lists and older
    options only add up, in the order in which they come.
    """

    def __init__(self) -> None:
        self._on = {feature.name for feature in FEATURES if feature.initial}
        self._listed = False

    def add_list(self, text: str, *, strict: bool = False, ignored: Callable[[str], object] | None = None) -> None:
        """Add a comma-separated list: names, ``default``, ``all``, and a leading ``+`` for ``default``.

        A name that is not in the table is given to `ignored`, or, if `strict`,
        raises UsageError with the supported list.
        """
        if not self._listed:
            self._on.clear()
            self._listed = True
        if text.startswith("+"):
            text = text[1:]
            self._turn_on(feature for feature in FEATURES if feature.default)
        for name in filter(None, text.split(",")):
            if name == "default":
                self._turn_on(feature for feature in FEATURES if feature.default)
            elif name == "all":
                self._turn_on(feature for feature in FEATURES if feature.in_all)
            elif name in _BY_NAME:
                self._on.add(name)
            elif strict:
                raise UsageError(f"feature '{name}' in '{text}' is not supported; supported are {supported()}")
            elif ignored is not None:
                ignored(name)

    def _turn_on(self, features: Iterable[Feature]) -> None:
        self._on.update(feature.name for feature in features)

    def older_option(self, feature: Feature) -> None:
        """Apply the option of before feature lists that stands for `feature`."""
        if feature.older_sets:
            self._on.add(feature.name)
        else:
            self._on.discard(feature.name)

    def features(self) -> Features:
        """What is on now."""
        return Features(**dict.fromkeys(self._on, True))


def parse_features(text: str, *, strict: bool = False) -> Features:
    """Read a list as ``--btf_features`` does: ``parse_features("default,global_var")``.

    Unknown names are ignored, or, if `strict`, raise UsageError.
    """
    choice = FeatureChoice()
    choice.add_list(text, strict=strict)
    return choice.features()


def initial_features() -> Features:
    """What is on when no feature option is given at all."""
    return FeatureChoice().features()


def supported() -> str:
    """The names of all features, comma-separated, as ``--supported_btf_features`` prints them."""
    return ",".join(NAMES)


def markdown_table() -> str:
    """The table for README.md."""
    lines = ["| feature | `default` | without a list | meaning | older option |", "| --- | --- | --- | --- | --- |"]
    for feature in FEATURES:
        cells = (
            f"`{feature.name}`",
            "on" if feature.default else "",
            "on" if feature.initial else "",
            feature.meaning,
            f"`--{feature.older}`" if feature.older else "",
        )
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |"))
    return "\n".join(lines) + "\n"
