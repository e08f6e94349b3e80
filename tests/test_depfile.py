# SPDX-License-Identifier: GPL-2.0-only
"""Depfiles: every name that is written at all is read by GNU make and by Ninja as it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from btfstep.build.depfile import depfile_text, escape
from btfstep.errors import UsageError
from conftest import tool

NAMES = [
    "plain",
    "a b",
    "a#b",
    "a$b",
    "a:b",
    "a\\b",
    "a\\ b",
    "a\\\\ b",
    "a  b",
    "$$",
    "a@b~(){}!,+",
    "\u00e9t\u00e9",
    "#",
    " x",
]
REFUSED = [
    ".:",
    "a\nb",
    "a\tb",
    "a*b",
    "a?b",
    "[a]",
    "a%b",
    "a;b",
    "a|b",
    "a=b",
    "~a",
    "a'b",
    'a"b',
    "a\\",
    "a\\#b",
    "a\\:b",
    "a ",
]


def test_text() -> None:
    assert depfile_text("out", ["a", "b c", "a"]) == "out: a \\\n  b\\ c\n"
    assert depfile_text("out", []) == "out:\n"


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_tools_read_differently_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="depfile"):
        escape(name)


def works(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def check(name: str, folder: Path) -> None:
    """Both tools know that `out` depends on a file of this name: they run again after it changed, and only then."""
    (folder / name).write_text("")
    (folder / "text").write_text(depfile_text("out", [name]))
    (folder / "Makefile").write_text("out:\n\t@echo ran\n\t@touch out\n-include text\n")
    (folder / "build.ninja").write_text(
        "rule r\n  command = echo ran && touch out && cp text out.d\n  depfile = out.d\n  deps = gcc\nbuild out: r\n"
    )
    for command in (["make", "--no-print-directory"], ["ninja"]):
        (folder / "out").unlink(missing_ok=True)
        os.utime(folder / name, (1, 1))
        assert "ran" in works(command, folder)
        assert "ran" not in works(command, folder)
        os.utime(folder / name, (4_000_000_000, 4_000_000_000))
        assert "ran" in works(command, folder)


@pytest.mark.parametrize("name", NAMES)
def test_make_and_ninja_read_it(name: str, tmp_path: Path) -> None:
    tool("make")
    tool("ninja")
    check(name, tmp_path)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("ab .\\$#:~%*", min_size=1, max_size=6))
def test_any_name_is_refused_or_read(tmp_path: Path, name: str) -> None:
    tool("make")
    tool("ninja")
    try:
        escape(name)
    except UsageError:
        return
    if name in (".", "..") or name.startswith(":"):
        return
    folder = tmp_path / name.encode().hex()
    folder.mkdir(exist_ok=True)
    check(name, folder)
