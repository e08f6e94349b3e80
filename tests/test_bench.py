# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark's own arithmetic: medians, ratios, lines, which inputs it takes, and what it says of differences."""

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.fit import ends_and_middle, least_squares, spread
from bench.inputs import Input, btf_digest, modules_in, without_btf
from bench.measure import BenchError, Contender, Measured, Run, alternate, run
from bench.model import Stages, describe, stages_of
from bench.plot import plot, ticks
from bench.scaling import Series, choose
from bench.tables import Row, figures, megabytes, seconds
from conftest import Build, tool


def measured(name: str, *runs: tuple[float, float], outputs: tuple[object, ...] = ()) -> Measured:
    """Runs of so many seconds and megabytes."""
    return Measured(name, [Run(time, int(memory * 1e6)) for time, memory in runs], list(outputs))


def of_sizes(*sizes: int, suffix: str = ".ko") -> list[Input]:
    return [Input(Path(f"{size}{suffix}"), size, size, False) for size in sizes]


@pytest.fixture
def _launcher() -> None:
    """Commands are started by a program that is compiled."""
    tool(os.environ.get("CC", "cc"))


@pytest.mark.usefixtures("_launcher")
class TestRuns:
    def test_time_and_memory_are_those_of_the_command(self) -> None:
        program = "import time; data = bytearray(b'x') * (100 << 20); time.sleep(0.3)"
        big = run([sys.executable, "-S", "-c", program])
        assert 0.3 <= big.seconds < 30
        assert 100 << 20 < big.memory < 150 << 20
        assert 0 < big.processor < big.seconds  # it slept

    def test_memory_of_the_benchmark_itself_does_not_count(self) -> None:
        held = bytearray(b"x") * (50 << 20)
        assert run([tool("true")]).memory < 4 << 20 < len(held)

    def test_a_command_that_fails_is_an_error_with_what_it_said(self, tmp_path: Path) -> None:
        with pytest.raises(BenchError, match="ended with 3: why"):
            run(["sh", "-c", "echo why >&2; exit 3"])
        with pytest.raises(BenchError, match="ended with -9"):
            run(["sh", "-c", "kill -9 $$"])
        with pytest.raises(BenchError, match=r"ended with 127: .*No such file"):
            run([tmp_path / "missing"])

    def test_contenders_take_turns_and_each_is_prepared(self, tmp_path: Path) -> None:
        log = tmp_path / "log"

        def contender(name: str) -> Contender:
            def prepare() -> None:
                with log.open("a") as stream:
                    stream.write("+")

            return Contender(name, ["sh", "-c", f"printf {name} >>{log}"], prepare, lambda: name.upper())

        a, b = alternate([contender("a"), contender("b")], 2)
        assert log.read_text() == "+a+b" * 3  # the first round does not count
        assert (len(a.runs), len(b.runs)) == (2, 2)
        assert (a.outputs, b.outputs) == (["A"], ["B"])

    def test_standard_output_goes_where_it_is_asked_to(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        assert run(["sh", "-c", "echo out; echo err >&2"], out).said == "err\n"
        assert out.read_text() == "out\n"


class TestTable:
    def test_rows_have_medians_and_their_ratios(self) -> None:
        ours = measured("btfstep -j1", (1.0, 300), (5.0, 320), (2.0, 310), outputs=("x",))
        theirs = measured("pahole -j1", (10.0, 620), (11.0, 620), (90.0, 620), outputs=("x",))
        text = figures([Row("detached", ours, theirs)])
        assert "| detached | 2.00 s, 310 MB | pahole -j1: 11.0 s, 620 MB | 5.5, 0.50 |" in text.splitlines()
        assert "All outputs that are to be the same are the same (1 compared)." in text

    @pytest.mark.parametrize(
        ("ours", "theirs", "same"),
        [(("x",), ("x",), True), (("x",), ("y",), False), (("x", "y"), ("x", "y"), False), ((), ("x",), None)],
    )
    def test_outputs_that_differ_are_told(
        self, ours: tuple[object, ...], theirs: tuple[object, ...], same: bool | None
    ) -> None:
        row = Row("what", measured("a", (1, 1), outputs=ours), measured("b", (1, 1), outputs=theirs))
        assert row.same is same
        assert ("DIFFERENT: what" in figures([row])) is (same is False)

    def test_of_many_outputs_those_that_differ_are_named(self) -> None:
        row = Row(
            "all",
            measured("a", (1, 1), outputs=({"x.ko": "1", "y.ko": "2"},)),
            measured("b", (1, 1), outputs=({"x.ko": "1", "y.ko": "3"},)),
        )
        assert "DIFFERENT: all: 1 of 2: y.ko" in figures([row])

    def test_numbers_have_as_many_digits_as_they_deserve(self) -> None:
        assert [seconds(value) for value in (0.0884, 0.541, 2.239, 11.71)] == ["0.088 s", "0.54 s", "2.24 s", "11.7 s"]
        assert [megabytes(value) for value in (158_000, 2_100_000, 340_600_000)] == ["0.2 MB", "2.1 MB", "341 MB"]


class TestLine:
    @given(
        st.integers(-100, 100),
        st.integers(-100, 100),
        st.lists(st.integers(0, 1000), min_size=2, max_size=20, unique=True),
    )
    def test_points_on_a_line_give_that_line(self, slope: int, intercept: int, places: list[int]) -> None:
        line = least_squares([(x, intercept + slope * x) for x in places])
        assert line.slope == pytest.approx(slope, abs=1e-6)
        assert line.intercept == pytest.approx(intercept, abs=1e-5)
        assert line.deviation == pytest.approx(0, abs=1e-5)

    def test_the_farthest_point_is_the_deviation(self) -> None:
        # By hand: both means are 1.5, the slope is 4 / 5, and 3 is 1.1 above 0.3 + 0.8 * 2.
        line = least_squares([(0, 0), (1, 1), (2, 3), (3, 2)])
        assert [line.slope, line.intercept, line.deviation] == pytest.approx([0.8, 0.3, 1.1])
        assert line.worst == 2

    def test_one_size_gives_no_line(self) -> None:
        with pytest.raises(ValueError, match="two different"):
            least_squares([(1, 2), (1, 3)])


class TestInputs:
    def test_sizes_are_evenly_apart_by_factors(self) -> None:
        sizes = [1, 2, 3, 4, 5, 8, 9, 10, 20, 50, 90, 100, 500, 1000]
        assert spread(sizes, float, 4) == [1, 10, 100, 1000]

    def test_small_ones_are_taken_only_where_there_are_too_few_others(self) -> None:
        assert spread([1, 2, 30, 40, 50], float, 3, least=10) == [30, 40, 50]
        assert spread([1, 2, 30, 40, 50], float, 4, least=10) == [2, 30, 40, 50]
        assert spread([0, 0, 7], float, 5) == [7]

    @given(st.lists(st.integers(1, 10**9), min_size=1, max_size=40), st.integers(2, 10))
    def test_there_are_as_many_as_asked_for_and_none_twice(self, sizes: list[int], count: int) -> None:
        indices = spread(range(len(sizes)), lambda index: sizes[index], count)
        assert len(indices) == len(set(indices)) == min(count, len(sizes))
        assert max(sizes[index] for index in indices) == max(sizes)
        assert [sizes[index] for index in indices] == sorted(sizes[index] for index in indices)

    def test_ends_and_middle(self) -> None:
        assert ends_and_middle([5, 1, 3, 9, 2], float) == [1, 3, 9]
        assert ends_and_middle([2, 1], float) == [1, 2]
        assert ends_and_middle([], float) == []

    def test_scaling_takes_all_kernels_and_modules_below_them(self) -> None:
        modules = of_sizes(1_000_000, 1_100_000, 3_000_000, 10_000_000, 900_000_000)
        kernels = of_sizes(200_000_000, 400_000_000, suffix="")
        sizes = [one.debug_info for one in choose(kernels, modules, 5)]
        assert sizes == [1_000_000, 3_000_000, 10_000_000, 200_000_000, 400_000_000]
        with pytest.raises(BenchError, match="different size"):
            choose(kernels[:1], [])

    @pytest.mark.usefixtures("_launcher")
    def test_a_copy_without_btf_is_what_was_there_before(self, build: Build, tmp_path: Path) -> None:
        objcopy = tool("objcopy")
        elf = build("int one(int a) { return a; }", name="m")
        data = tmp_path / "data"
        data.write_bytes(b"some BTF")
        full, plain = tmp_path / "full.ko", tmp_path / "plain.ko"
        run([objcopy, f"--add-section=.BTF={data}", elf, full])
        assert Input.of(full).has_btf
        without_btf(full, plain, objcopy)
        assert not Input.of(plain).has_btf
        assert Input.of(plain).debug_info == Input.of(elf).debug_info > 0
        assert btf_digest(full) != btf_digest(plain) == ""
        assert {one.path.name for one in modules_in(tmp_path)} == {"full.ko", "plain.ko"}

    def test_what_is_no_elf_file_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "x.ko").write_text("no")
        with pytest.raises(BenchError, match=r"x\.ko"):
            modules_in(tmp_path)


class TestModel:
    STAGES = Stages(decode=1.5, merge=0.5, headers=0.1, choose=0.1, rest=0.4)

    def test_decoding_is_divided_until_merging_takes_longer(self) -> None:
        assert [self.STAGES.at(threads) for threads in (1, 2, 4, 8, 28)] == pytest.approx([2.4, 1.4, 0.9, 0.9, 0.9])
        assert self.STAGES.useful == 4

    def test_what_limits_is_told(self) -> None:
        text = describe(self.STAGES, {1: 2.5, 2: 1.5})
        assert "| 2 | 1.40 s | 1.7 | 1.50 s | decoding and merging: 71% |" in text.splitlines()
        assert "| 28 | 0.90 s | 2.7 | | merging, one unit at a time: 56% |" in text.splitlines()
        assert "4.0 threads keep the merge busy" in text

    @pytest.mark.usefixtures("_launcher")
    def test_stages_are_read_from_what_the_command_says(self, build: Build, tmp_path: Path) -> None:
        elf = build("int one(int a) { return a; }")
        took = run([sys.executable, "-m", "btfstep", "-V", "-j1", f"--btf_encode_detached={tmp_path / 'out'}", elf])
        stages = stages_of(took)
        assert 0 <= stages.headers + stages.choose <= took.seconds
        assert stages.decode + stages.merge + stages.rest == pytest.approx(took.processor)
        with pytest.raises(BenchError, match="does not say"):
            stages_of(Run(1.0, 1, 1.0, "nothing"))


class TestPlot:
    def test_ticks_are_round_and_reach_the_largest(self) -> None:
        assert ticks(9.3) == [0, 2, 4, 6, 8, 10]
        assert ticks(420) == [0, 100, 200, 300, 400, 500]
        assert ticks(0.0) == [0, 1]

    def test_each_point_is_in_its_panel_and_larger_is_higher(self) -> None:
        points = [(1.0, 0.1), (5.0, 0.2), (200.0, 9.0)]
        series = [Series(name, unit, points) for name in ("btfstep", "pahole") for unit in ("s", "MB")]
        root = ET.fromstring(plot(series))
        space = "{http://www.w3.org/2000/svg}"
        panels = root.findall(f"{space}g")
        assert len(panels) == 2
        for panel in panels:
            circles = panel.findall(f"{space}circle")
            assert len(circles) == 2 * len(points)
            places = [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in circles[: len(points)]]
            assert places == sorted(places)
            assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)
            assert all(60 <= x <= 400 and 40 <= y <= 250 for x, y in places)
