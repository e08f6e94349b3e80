# SPDX-License-Identifier: GPL-2.0-only
"""What a program's source names, and which files those are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btfstep.bpf.source import Source, read_sources
from btfstep.build.depfile import depfile_inputs, depfile_text
from btfstep.errors import BtfstepError, UsageError
from conftest import tool


def names(text: str) -> set[tuple[str, bytes]]:
    source = Source()
    source.add(text.encode())
    return source.types


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("sizeof(struct pair)", "struct", b"pair"),
        ("struct  pair\tlocal;", "struct", b"pair"),
        ("union both { int a; };", "union", b"both"),
        ("enum\n level next", "enum", b"level"),
        ("word_t local", "typedef", b"word_t"),
        ("sizeof(struct pair) * 2", "struct", b"pair"),
        ("struct pair const local", "struct", b"pair"),
        ("struct /* of two */ pair local", "typedef", b"pair"),
    ],
)
def test_types_that_may_be_there_by_value(text: str, kind: str, name: bytes) -> None:
    assert (kind, name) in names(text)


@pytest.mark.parametrize(
    "text",
    [
        "struct pair *to",
        "struct pair*to",
        "struct pair const *to",
        "struct pair\n*to",
        "// struct pair local",
        "/* struct pair\n local */",
        '"struct pair local"',
        '"a \\" struct pair local"',
        "'\"' , 'x'",
        "instruct pair *to",
    ],
)
def test_pointers_comments_and_texts_are_none(text: str) -> None:
    assert ("struct", b"pair") not in names(text)


def test_a_constant_counts_wherever_it_is() -> None:
    source = Source()
    source.add(b"x = HIGH * 2; y[LOW]; // NEVER\n#define M(a) (a + MIDDLE)\n'HIGHER' \"HIGHEST\"")
    assert {b"HIGH", b"LOW", b"MIDDLE"} <= source.words
    assert not {b"NEVER", b"HIGHER", b"HIGHEST"} & source.words


@given(st.binary(max_size=200))
def test_any_bytes_are_read(text: bytes) -> None:
    Source().add(text)
    depfile_inputs(text)


def test_what_never_ends_takes_no_time() -> None:
    for part in (b"/*", b'"\\', b"'", b"struct ", b"a * ", b"\\ ", b"$", b"\\"):
        Source().add(part * 50_000)
        depfile_inputs(part * 50_000)


@given(st.lists(st.text("ab .\\$#:~", min_size=1, max_size=6), max_size=4))
def test_depfiles_are_read_as_they_are_written(inputs: list[str]) -> None:
    try:
        text = depfile_text("the target", inputs)
    except UsageError:
        return
    assert depfile_inputs(text.encode()) == list(dict.fromkeys(inputs))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_depfiles_of_compilers(compiler: str, tmp_path: Path) -> None:
    headers = ["a b.h", "c#d.h", "e$f.h", "plain.h"]
    for header in headers:
        (tmp_path / header).write_text("")
    (tmp_path / "main.c").write_text("".join(f'#include "{header}"\n' for header in headers))
    command = [tool(compiler), "-MMD", "-MP", "-MF", "d", "-MT", "x y.o", "-c", "main.c", "-o", "x y.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert depfile_inputs((tmp_path / "d").read_bytes()) == ["main.c", *headers]


def test_sources_that_are_gone_name_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("main.c").write_text("int HERE;")
    Path("d").write_text("o: main.c \\\n  gone.h\n")
    assert read_sources(["d"]).words == {b"int", b"HERE"}
    with pytest.raises(FileNotFoundError):
        read_sources(["nowhere"])
    Path("d").write_text("o: .\n")
    with pytest.raises(BtfstepError, match="directory"):
        read_sources(["d"])
