"""Which path the planner takes, held against what was measured on an H200."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowlp.benchmarks.activations.calibration import Sample, fitted, held_out, judged, samples
from lowlp.benchmarks.activations.cases import who
from lowlp.benchmarks.activations.choices import choices_table, counted
from lowlp.benchmarks.activations.targets import cells
from lowlp.benchmarks.cases import Shape
from lowlp.benchmarks.results import Results, Row, Run
from lowlp.kernels.linear.planner import CORRECTIONS, Correction, Corrections, Times, class_of_rows

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "2026-11-22-h200.activations-11.json"
FITTED = (Shape(57344, 8192), Shape(8192, 8192))


@pytest.fixture(scope="module")
def measured():
    return samples([Results.load(RESULTS)])


def test_choices_agree_with_measurements(measured):
    """Two of the four shapes were not fitted."""
    verdict = judged(measured, CORRECTIONS)
    assert verdict.of == len(measured) == 168
    assert verdict.bad <= 7 and verdict.worst < 1.13 and verdict.mean < 1.006


def test_each_measured_shape_is_chosen_for_by_the_others(measured):
    verdicts = held_out(measured).values()
    assert [verdict.of for verdict in verdicts] == [42] * 4
    assert all(verdict.bad <= 3 and verdict.worst < 1.13 and verdict.mean < 1.01 for verdict in verdicts)


def test_corrections_that_are_wrong_are_told(measured):
    shifted = [each._replace(planes=Correction(2.0, 0.0)) for each in CORRECTIONS]
    assert judged(measured, shifted).bad > 15


def drawn(factor, more_us):
    """Problems of four shapes of which planes took what was estimated, and bytes `factor` times that and more."""
    found = []
    for n in (1024, 2048, 4096, 8192):
        for m in (1, 16, 64, 256):
            estimated = Times(n / 512, n / 256)
            times = Times(estimated.planes, factor * estimated.bytes + more_us)
            found.append(Sample("w2a2", Shape(n, 4096), m, estimated, times))
    return found


def test_corrections_are_fitted():
    for each in fitted(drawn(0.8, 3.0)):
        assert each == Corrections(Correction(1.0, 0.0), Correction(0.8, 3.0))
    # A line that begins below nothing would make small matrices take less than no time.
    for each in fitted(drawn(1.0, -1.0)):
        assert each.bytes.more_us == 0.0 and 0.7 < each.bytes.factor < 1.0


def test_each_shape_is_chosen_for_by_the_others():
    found = drawn(0.1, 0.5)
    verdicts = held_out(found)
    assert [verdict.of for verdict in verdicts.values()] == [4] * 4
    assert all(verdict.bad == 0 for verdict in verdicts.values())
    assert judged(found, fitted(drawn(4.0, 3.0))).bad > 0


def test_corrections_are_those_of_what_was_measured(measured):
    """Fitted again, to the same shapes, they come out the same but for what was rounded; others were not fitted."""
    of_fit = [one for one in measured if one.shape in FITTED]
    assert len(of_fit) == 84
    for found, kept in zip(fitted(of_fit), CORRECTIONS, strict=True):
        for one, other in zip(found, kept, strict=True):
            for us in (10.0, 100.0):
                assert one(us) == pytest.approx(other(us), rel=0.02)


def test_rows_have_classes():
    assert [class_of_rows(rows) for rows in (1, 2, 16, 17, 64, 65, 4096)] == [0, 1, 1, 2, 2, 3, 3]
    assert CORRECTIONS[0].bytes(10.0) > CORRECTIONS[1].bytes(10.0)


def results_of(kind, times):
    rows = [Row(who(path), kind, 8192, 8192, m, us) for (path, m), us in times.items()]
    return Results([Run("2026-11-24", "NVIDIA H200", "580", {}, 3.5, 4.49e12)], rows)


def test_cells_are_counted_with_and_without_halves():
    results = results_of("w2a2", {("planes", 64): 10.0, ("s8", 64): 12.0, ("f16", 64): 9.0, ("s8", 256): 5.0})
    found = cells(results)
    assert counted(found, lambda _: "planes", with_halves=False) == (1, 0, 1.0)
    assert counted(found, lambda _: "planes", with_halves=True) == (1, 1, pytest.approx(10 / 9))
    assert counted(found, lambda _: "s8", with_halves=False) == (1, 1, 1.2)
    table = choices_table(results)
    assert "| for the rows of each cell | 0 of 1 | 1.00 | 1 of 1 | 1.11 |" in table
    assert "| as bytes already | 1 of 1 | 1.20 | 1 of 1 | 1.33 |" in table
    assert choices_table(results_of("w8a8", {("s8", 1): 5.0})) == ""
