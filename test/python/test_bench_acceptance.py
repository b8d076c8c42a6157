"""The arithmetic of `lowlp bench` on made-up times: floors, required times, cells, fractions."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from lowlp.benchmarks import report
from lowlp.benchmarks.acceptance import ABSENT, INCOMPLETE, MET, MISSED, cell, cells, fraction, geometric_mean, speedup
from lowlp.benchmarks.cases import KINDS, ROWS, SHAPES, Shape, parse_kinds, parse_rows, parse_shapes
from lowlp.benchmarks.floor import Ceilings, problem_bytes, required_us, weight_bytes
from lowlp.benchmarks.requirements import LARGEST, REQUIREMENTS, Requirement, Timed, least_fraction
from lowlp.benchmarks.results import Results, Row, Run, merged
from lowlp.errors import LowlpValueError

RUN = Run("2026-01-01T00:00:00+00:00", "a GPU", "1.0", {"lowlp": "0"}, empty_us=3.5, read_bytes_per_s=4.49e12)
SMALL = Shape(4096, 4096)


def row(who: str, kind: str, shape: Shape, m: int, us: float | None, problem: str = "") -> Row:
    return Row(who, kind, shape.n, shape.k, m, us, problem=problem)


def requirement(kind: str, m: int, who: str) -> Requirement:
    (found,) = [one for one in REQUIREMENTS if one.kind == kind and m in one.factors and one.against[-1].who == who]
    return found


# --- floors and required times ----------------------------------------------------------------------------------------


def test_bytes_of_weights_scales_and_zero_points() -> None:
    shape = Shape(10, 256)
    assert weight_bytes(KINDS["int6"], shape) == 10 * 256 * 6 // 8 + 10 * 2 * 2
    assert weight_bytes(KINDS["uint4z"], shape) == 10 * 128 + 10 * 2 * 3
    assert problem_bytes(KINDS["int4"], shape, 3) == 10 * 128 + 10 * 2 * 2 + 2 * 3 * (10 + 256)


def test_the_floor_is_the_larger_of_moving_and_multiplying() -> None:
    shape = Shape(57344, 8192)
    ceilings = Ceilings()
    # 57344 * 8192 / 2 + 57344 * 64 * 2 + 2 * 65536 bytes
    assert ceilings.floor_us(KINDS["int4"], shape, 1) == pytest.approx((234881024 + 7340032 + 131072) / 4.49e6)
    assert ceilings.floor_us(KINDS["int4"], shape, 4096) == pytest.approx(2 * 4096 * 57344 * 8192 / 720e6)


def test_the_required_time_is_a_factor_of_the_peers_but_no_less_than_the_floor() -> None:
    assert required_us(100.0, 1.25, empty_us=3.5, floor_us=50.0) == 80.0
    assert required_us(60.0, 1.25, empty_us=3.5, floor_us=50.0) == 3.5 + 54.0


@pytest.mark.parametrize(("bits", "least"), [(8, 0.85), (4, 0.85), (3, 0.75), (2, 0.65), (1, None)])
def test_least_fractions(bits: int, least: float | None) -> None:
    assert least_fraction(bits) == least


# --- the requirements -------------------------------------------------------------------------------------------------


def test_every_kind_has_requirements_at_every_m_but_those_left_open() -> None:
    for name in KINDS:
        rows = {m for one in REQUIREMENTS if one.kind == name for m in one.factors}
        left_open = {"uint4z": {32, 64, 128}, "nf4": {64, 128}}.get(name, set())
        assert rows == set(ROWS) - left_open


def test_factors() -> None:
    int2 = requirement("int2", 1, "humming")
    assert (int2.factor(LARGEST, 16), int2.factor(SMALL, 16), int2.factor(LARGEST, 32)) == (1.7, 1.6, 1.5)
    assert requirement("int8", 1, "humming").factors == {1: 1.08, 8: 1.08, 16: 1.08, 32: 1.1, 64: 1.1, 128: 1.0}
    assert requirement("nf4", 1, "lowlp").factors[32] == pytest.approx(1 / 1.2)
    assert requirement("int5", 256, "humming").against == (Timed("torch", "f16"), Timed("humming", "int5"))
    assert requirement("nf4", 256, "torch").factors == {256: 1.0}
    assert requirement("int1", 4096, "torch").factors == {1024: 0.97, 4096: 0.97}


# --- cells ------------------------------------------------------------------------------------------------------------


def results_with(ours: dict[Shape, float | None], theirs: dict[Shape, float], m: int = 16) -> Results:
    rows = [row("lowlp", "int4", shape, m, us, "" if us else "wrong result") for shape, us in ours.items()]
    return Results([RUN], rows + [row("humming", "int4", shape, m, us) for shape, us in theirs.items()])


def test_a_cell_is_the_geometric_mean_over_all_shapes() -> None:
    # Times far above the floors, so that only the factor 1.25 counts.
    ours = {shape: 1000.0 * 2.0**number for number, shape in enumerate(SHAPES)}
    found = cell(results_with(ours, dict.fromkeys(SHAPES, 5000.0)), requirement("int4", 16, "humming"), 16)
    assert found.value == pytest.approx(4.0 / 2.0**2.5)
    assert found.status == MISSED
    assert found.shapes[SHAPES[0]] == pytest.approx(4.0)
    faster = {shape: us / 2 for shape, us in ours.items()}
    met = cell(results_with(faster, dict.fromkeys(SHAPES, 5000.0)), requirement("int4", 16, "humming"), 16)
    assert (met.status, met.value) == (MET, pytest.approx(8.0 / 2.0**2.5))


def test_a_floor_keeps_a_cell_from_asking_for_the_impossible() -> None:
    floor = Ceilings().floor_us(KINDS["int4"], SMALL, 16)
    found = cell(results_with({SMALL: 5.0}, {SMALL: 4.0}), requirement("int4", 16, "humming"), 16, (SMALL,))
    assert found.value == pytest.approx((3.5 + 1.08 * floor) / 5.0)


def test_a_cell_with_a_shape_missing_is_never_met() -> None:
    theirs = dict.fromkeys(SHAPES, 5000.0)
    ours: dict[Shape, float | None] = dict.fromkeys(SHAPES, 1.0)
    ours[SMALL] = None
    found = cell(results_with(ours, theirs), requirement("int4", 16, "humming"), 16)
    assert (found.status, found.missing) == (INCOMPLETE, {SMALL: "lowlp int4"})
    assert report.reached_so_far(results_with(ours, theirs)) == 1
    slow = results_with({**ours, LARGEST: 1e30}, theirs)
    assert report.reached_so_far(slow) == 0
    assert f"on {len(SHAPES) - 1} of {len(SHAPES)} shapes** (1.25x)" in report.acceptance_tables(slow)[0]
    absent = cell(results_with(ours, {}), requirement("int4", 16, "humming"), 16)
    assert (absent.status, absent.value) == (ABSENT, None)
    assert absent.missing[SMALL] == "lowlp int4, humming int4"


def test_the_better_of_two_rivals_counts() -> None:
    rows = [row("lowlp", "int4", SMALL, 256, 1000.0), row("torch", "f16", SMALL, 256, 900.0)]
    one = requirement("int4", 256, "humming")
    assert cell(Results([RUN], rows), one, 256, (SMALL,)).status == ABSENT
    rows.append(row("humming", "int4", SMALL, 256, 1200.0))
    assert cell(Results([RUN], rows), one, 256, (SMALL,)).value == pytest.approx(0.9)


def test_without_an_empty_kernel_nothing_is_judged() -> None:
    results = results_with({SMALL: 5.0}, {SMALL: 4.0})
    results.runs = [Run("2026-01-01", "a GPU", "1.0", {}, empty_us=None, read_bytes_per_s=4.49e12)]
    found = cell(results, requirement("int4", 16, "humming"), 16, (SMALL,))
    assert found.missing == {SMALL: "empty kernel"}


def test_fractions_of_the_floor() -> None:
    us = Ceilings().bytes_us(KINDS["int3"], LARGEST, 8) / 0.8
    found = fraction(Results([RUN], [row("lowlp", "int3", LARGEST, 8, us)]), "int3", LARGEST, 8)
    assert (found.value, found.status) == (pytest.approx(0.8), MET)
    slower = fraction(Results([RUN], [row("lowlp", "int3", LARGEST, 8, 2 * us)]), "int3", LARGEST, 8)
    assert slower.status == MISSED
    assert fraction(Results([RUN]), "int3", LARGEST, 8).status == ABSENT


def test_speedups_need_all_shapes() -> None:
    results = results_with(dict.fromkeys(SHAPES, 2.0), dict.fromkeys(SHAPES, 3.0))
    assert speedup(results, "int4", Timed("humming", "int4"), 16) == pytest.approx(1.5)
    assert speedup(results, "int4", Timed("humming", "int4"), 8) is None
    assert geometric_mean([]) is None


# --- results as files -------------------------------------------------------------------------------------------------


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    results = results_with({SMALL: 5.0, LARGEST: None}, {SMALL: 4.0})
    path = tmp_path / "results" / "a.json"
    results.save(path)
    again = Results.load(path)
    assert (again.runs, again.rows) == (results.runs, results.rows)
    path.write_text('{"format": 9}')
    with pytest.raises(LowlpValueError, match="expected results of format 1, got 9"):
        Results.load(path)
    path.write_text("[]")
    with pytest.raises(LowlpValueError, match="no results of `lowlp bench`"):
        Results.load(path)


def test_merged_results_keep_the_last_time_and_its_run() -> None:
    other = Run("2026-01-02", "a GPU", "1.0", {}, empty_us=4.0, read_bytes_per_s=4.49e12)
    first = results_with({SMALL: 5.0, LARGEST: 70.0}, {})
    second = Results([other], [row("lowlp", "int4", SMALL, 16, 6.0), row("lowlp", "int4", LARGEST, 16, None, "lost")])
    both = merged([first, second])
    small, large = both.find("lowlp", "int4", SMALL, 16), both.find("lowlp", "int4", LARGEST, 16)
    assert small is not None and large is not None
    assert (small.us, both.run_of(small)) == (6.0, other)
    assert (large.us, both.run_of(large)) == (70.0, RUN)


def test_tables_show_what_is_missed_and_what_is_absent() -> None:
    results = results_with(dict.fromkeys(SHAPES, 6000.0), dict.fromkeys(SHAPES, 5000.0))
    decode, prefill = report.acceptance_tables(results)
    (line,) = [one for one in decode.splitlines() if one.startswith("| int4 | humming int4 |")]
    # The other numbers of rows have no column, since nothing was measured with any of them.
    assert line == "| int4 | humming int4 | **0.666 missed** (1.25x) |"
    assert f"| int8 | humming int8 | {ABSENT} |" in decode
    assert "| int2 | torch f16 |  | not measured | not measured |" in prefill
    assert report.missed(results) == ["int4 against humming int4, M = 16: 0.666; worst 57344x8192 with 0.666"]
    assert report.summary(results)[MISSED] == 1
    assert sum(report.summary(results).values()) == len(cells(results))
    # 12 kinds have a least, of 3 numbers of rows; one time is there.
    assert report.fraction_summary(results) == {ABSENT: 35, MISSED: 1}
    failed = Results([RUN], [row("lowlp", "int4", SMALL, m, None, "wrong") for m in (1, 8)])
    assert report.problems(failed) == ["lowlp int4 4096x4096, M = 1, 8: wrong"]


# --- the command line's lists -----------------------------------------------------------------------------------------


def test_lists_of_the_command_line() -> None:
    assert parse_kinds("nf4,int4,nf4") == (KINDS["nf4"], KINDS["int4"])
    assert parse_shapes("8x128,8192x256") == (Shape(8, 128), Shape(8192, 256))
    assert parse_rows("16,1,16") == (1, 16)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_kinds, "int9", "--types: must be among int4, .*, got 'int9'"),
        (parse_shapes, "8192", "--shapes: expected NxK,... with N and K of at least 1, got '8192'"),
        (parse_shapes, "0x128", "--shapes: expected NxK"),
        (parse_shapes, "8x100", "K must be a multiple of the group size 128, got '8x100'"),
        (parse_rows, "1,0", "--m: expected numbers of at least 1, got '0'"),
    ],
)
def test_wrong_lists_are_refused(parse, text: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LowlpValueError, match=message):
        parse(text)


def test_times_are_finite() -> None:
    assert all(math.isfinite(factor) and factor > 0 for one in REQUIREMENTS for factor in one.factors.values())
