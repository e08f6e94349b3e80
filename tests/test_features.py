# SPDX-License-Identifier: GPL-2.0-only
"""Feature lists: read as pahole 1.32 reads them, out of one table."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btfstep import Features, UsageError, parse_features
from btfstep.cli.pahole import parse
from btfstep.features import FEATURES, NAMES, initial_features, markdown_table, supported
from conftest import Build

README = Path(__file__).parent.parent / "README.md"

INITIAL = {"var", "decl_tag", "type_tag", "enum64"}
DEFAULT = {
    *INITIAL,
    "encode_force",
    "float",
    "optimized_func",
    "consistent_func",
    "decl_tag_kfuncs",
}
ALL = {*DEFAULT, "reproducible_build", "global_var", "attributes", "true_signature"}


def on(*argv: str) -> set[str]:
    """The features that a command line turns on."""
    return set(parse(argv).features.features().names())


def test_the_table_is_that_of_pahole_in_its_order() -> None:
    assert supported() == (
        "encode_force,var,float,decl_tag,type_tag,enum64,optimized_func,consistent_func,decl_tag_kfuncs,"
        "reproducible_build,distilled_base,global_var,attributes,true_signature,layout,force_cu_merging"
    )


def test_the_table_is_that_of_the_reference(reference: str) -> None:
    done = subprocess.run([reference, "--supported_btf_features"], capture_output=True, text=True, check=True)
    listed = done.stdout.strip().split(",")
    # A pahole built with a libbpf before 1.8 cannot do `layout` and does not list it.
    assert listed in (list(NAMES), [name for name in NAMES if name != "layout"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", set()),
        ("default", DEFAULT),
        ("all", ALL),
        ("var,float", {"var", "float"}),
        ("default,global_var", DEFAULT | {"global_var"}),
        ("global_var,default", DEFAULT | {"global_var"}),
        ("+global_var", DEFAULT | {"global_var"}),
        ("+", DEFAULT),
        ("+all", ALL),
        ("all,layout", ALL | {"layout"}),
        (",,var,,", {"var"}),
        # Only what is spelled exactly counts, and `+` only at the start.
        (" var", set()),
        ("VAR", set()),
        ("ALL", set()),
        ("var,+float", {"var"}),
        ("no_such_feature,var", {"var"}),
    ],
)
def test_a_list_turns_on_what_it_names_and_nothing_else(text: str, expected: set[str]) -> None:
    assert set(parse_features(text).names()) == expected
    assert on("--btf_features", text) == expected
    assert on(f"--features={text}") == expected


@pytest.mark.parametrize("text", ["bogus", "default,bogus", "+bogus", "var,+float"])
def test_strict_refuses_unknown_names_with_the_supported_list(text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(supported())):
        parse_features(text, strict=True)
    with pytest.raises(UsageError, match="not supported"):
        parse([f"--btf_features_strict={text}"])


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("", INITIAL),
        ("--btf_gen_floats", INITIAL | {"float"}),
        ("--skip_encoding_btf_vars --skip_encoding_btf_enum64", {"decl_tag", "type_tag"}),
        ("--btf_gen_optimized --skip_encoding_btf_inconsistent_proto", INITIAL | {"optimized_func", "consistent_func"}),
        ("--btf_gen_all", ALL),
        # Lists add up.
        ("--btf_features=var --features=float", {"var", "float"}),
        ("--btf_features=var --btf_features_strict=default", DEFAULT),
        # The first list turns off what was on, also by an older option; later options add.
        ("--btf_gen_floats --btf_features=var", {"var"}),
        ("--btf_features=var --btf_gen_floats", {"var", "float"}),
        ("--btf_features=var --skip_encoding_btf_vars", set()),
        ("--skip_encoding_btf_vars --btf_features=var", {"var"}),
        ("--btf_features=default --btf_gen_all", ALL),
    ],
)
def test_options_count_from_left_to_right(argv: str, expected: set[str]) -> None:
    assert on(*argv.split()) == expected


def test_unknown_names_are_told_only_after_v() -> None:
    told: list[str] = []
    parse(["--btf_features=early", "-V", "--btf_features=late,var"], warn=told.append)
    assert told == ["Ignoring unsupported feature 'late'"]


@given(st.lists(st.sampled_from(NAMES)))
def test_any_list_of_names_turns_on_just_these(names: list[str]) -> None:
    features = parse_features(",".join(names), strict=True)
    assert features.names() == tuple(name for name in NAMES if name in names)
    assert all(getattr(features, name) is (name in names) for name in NAMES)


def test_features_are_immutable_values() -> None:
    features = Features(var=True)
    assert features.var
    assert not features.float
    assert features == parse_features("var") != Features()
    assert hash(features) == hash(parse_features("var"))
    assert features.replace(float=True) == parse_features("float,var")
    assert pickle.loads(pickle.dumps(features)) == copy.copy(features) == features
    assert "var=True" in repr(features)
    with pytest.raises(AttributeError):
        features.var = False
    with pytest.raises(TypeError, match="bogus"):
        Features(bogus=True)


def test_features_has_an_attribute_for_each_row() -> None:
    assert tuple(Features.__annotations__) == tuple(feature.name for feature in FEATURES)
    assert initial_features().names() == tuple(name for name in NAMES if name in INITIAL)


def test_the_readme_has_the_table() -> None:
    assert markdown_table() in README.read_text()


# Whether the reference has these on shows in what it makes of this source.
PROBE = """
enum big { BIG = 0x1ffffffffULL };
struct s { int a; float f; enum big b; };
int global = 2;
struct s gs;
__attribute__((noinline)) static int opt(struct s *p, int unused) { return p->a + 3; }
int fn(struct s *p, float x) { return opt(p, 3) + x + global; }
int same(int a) { return a; }
"""


@pytest.mark.parametrize(
    "argv",
    [
        "",
        "--btf_features=",
        "--btf_features=default",
        "--btf_features=all",
        "--btf_features=var,all",
        "--btf_features=+global_var",
        "--btf_features=var,+global_var",
        "--btf_features=ALL",
        "--btf_gen_all",
        "--btf_gen_floats",
        "--btf_gen_floats --btf_features=var",
        "--btf_features=var --btf_gen_floats",
        "--btf_features=enum64 --skip_encoding_btf_enum64",
        "--skip_encoding_btf_enum64 --btf_features=enum64",
        "--btf_features=float --features=enum64",
    ],
)
def test_the_reference_reads_the_same_lists_the_same_way(
    argv: str, reference: str, bpftool: str, build: Build, tmp_path: Path
) -> None:
    elf = build(PROBE)
    out = tmp_path / "out.btf"
    subprocess.run([reference, "-J", f"--btf_encode_detached={out}", *argv.split(), elf], check=True)
    dump = subprocess.run([bpftool, "btf", "dump", "file", out], capture_output=True, text=True, check=True).stdout
    seen = {
        "float": "FLOAT 'float'" in dump,
        "enum64": "ENUM64 'big'" in dump,
        "global_var": "VAR 'global'" in dump,
    }
    ours = on(*argv.split())
    assert seen == {name: name in ours for name in seen}
