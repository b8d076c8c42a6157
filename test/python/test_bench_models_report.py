"""What `lowlp bench --set models` makes of its times: what is required, the worst, and the page; and arguments that do
not fit."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from test_bench_models import RUN, kind

from lowlp.benchmarks.cases import KINDS, Shape
from lowlp.benchmarks.models import report
from lowlp.benchmarks.models.folder import Problem
from lowlp.benchmarks.models.judging import judged, mean_of, worst
from lowlp.benchmarks.models.model_results import ModelResults, Turns
from lowlp.benchmarks.pages.measured import Measured
from lowlp.benchmarks.pages.writing import pages
from lowlp.benchmarks.results import Results, Row
from lowlp.cli import main


def made_up(count: int = 30) -> ModelResults:
    """Problem i has M = i + 1; ours takes 100 + i us where humming takes 110 and torch 200; every third is apart."""
    kinds = {one.name: one for one in (KINDS["int4"], kind("nf4 g64 f16"), kind("int4 g128 f16"))}
    results, problems = Results([RUN]), []
    for number in range(count):
        name, m = ("nf4 g64 f16" if number % 3 == 2 else "int4"), number + 1
        apart = number % 3 == 2
        problems.append(Problem(name, 8192, 8192, m, "int4 g128 f16" if apart else "", "a model", 50.0, "measured"))
        results.add(Row("lowlp", name, 8192, 8192, m, 100.0 + number))
        results.add(Row("torch", "f16", 8192, 8192, m, 200.0))
        if apart:
            results.add(Row("lowlp", "int4 g128 f16", 8192, 8192, m, 90.0))
        else:
            results.add(Row("humming", "int4", 8192, 8192, m, 110.0))
    return ModelResults(5, True, tuple(problems), kinds, results)


def test_what_is_required() -> None:
    cells = judged(made_up())
    assert cells[0].required == pytest.approx(110 / 1.30 / 100)
    assert cells[18].required == pytest.approx(110 / 1.20 / 118)
    many = dataclasses.replace(cells[0], problem=dataclasses.replace(cells[0].problem, m=600))
    assert (many.plain, many.ratio, many.required) == (pytest.approx(1.1), pytest.approx(2.0), pytest.approx(2.0))
    fast = dataclasses.replace(cells[0], humming_us=1.0)
    assert fast.required == pytest.approx((3.5 + 1.08 * fast.floor_us) / 100)
    assert mean_of(cells[:2], lambda cell: cell.plain).mean == pytest.approx((1.1 * 110 / 101) ** 0.5)


def test_small_groups_may_cost_their_bytes() -> None:
    small, twin, shape = kind("int4 g32 f16"), kind("int4 g128 f16"), Shape(8192, 8192)
    problem = Problem(small.name, shape.n, shape.k, 1, twin.name)
    rows = [Row("lowlp", small.name, 8192, 8192, 1, 20.0), Row("lowlp", twin.name, 8192, 8192, 1, 15.0)]
    (cell,) = judged(ModelResults(1, True, (problem,), {small.name: small, twin.name: twin}, Results([RUN], rows)))
    # 256 - 64 scales a row of two bytes.
    assert cell.small_groups_cost == pytest.approx(20.0 / (15.0 + 8192 * 192 * 2 / 4.49e6))


def test_scales_that_the_activation_type_does_not_hold_are_apart() -> None:
    exact = ("int4 g32 f16", "int4 g32 bf16 x:bf16", "f4e2m1 g32 e8m0 x:bf16")
    others = ("int4 g32 f32", "int4 g32 bf16", "int4 g32 f16 x:bf16", "f4e2m1 g32 e8m0", "f4e2m1 g16 e4m3 x:bf16")
    assert [kind(text).is_scaled_exactly for text in (*exact, *others)] == [True] * 3 + [False] * 5
    found = made_up()
    _, held, apart, *_ = report.section(found)
    assert "| 1 to 16 | 11 | 1.0" in held and "| 1 to 16 | 0 |" in apart
    found.kinds["int4"] = dataclasses.replace(KINDS["int4"], scale="f32")
    _, held, apart, *_ = report.section(found)
    assert "| 1 to 16 | 0 |" in held and "| 1 to 16 | 11 | 1.0" in apart


def test_the_ten_worst_come_first() -> None:
    found = made_up()
    found.turns.append(Turns(0, "humming", (100.0, 120.0, 101.0), (50.0, 51.0, 40.0)))
    order = worst(judged(found), 10)
    assert [cell.number for cell in order] == [0, 28, 27, 25, 24, 22, 21, 19, 18, 16]
    lines = report.worst_cells(judged(found)).splitlines()
    assert len(lines) == 12
    assert lines[2] == (
        "| int4 | 8192x8192 | 1 | 101 | 50.0 humming | **0.49** | in turns | 50.0 | 2.00 | measured | a model |"
    )


def test_results_come_back_and_make_the_page(tmp_path: Path) -> None:
    found = made_up()
    found.results.add(Row("humming", "int4", 8192, 8192, 1, None, problem="wrong result"))
    found.save(tmp_path / "a.models-1.json")
    again = ModelResults.load(tmp_path / "a.models-1.json")
    assert (again.problems, again.kinds, again.results.rows, again.seed) == (
        found.problems, found.kinds, found.results.rows, 5,
    )  # fmt: skip
    measured = Measured(tmp_path / "a.json", Results([RUN]), drawn={tmp_path / "a.models-1.json": again})
    page, details = (tmp_path / name for name in ("page.md", "measurements/random-problems.md"))
    text = pages(measured, page)[details]
    assert f"## Seed 5 on one {RUN.gpu}, schedules by measurements and estimate" in text
    assert "| 17 to 64 | 9 | 0.90 | **0.75** | 1.20x | **0.85** | 0.95 |" in text
    assert "- humming int4 8192x8192 M=1: wrong result" in text
    assert "| 17 to 64 | 1.20x | 0.95 | **0.75** (0.90; **0.85**; 9) |" in pages(measured, page)[page]
    drawn = measured.pictures()[tmp_path / "a-drawn.svg"]
    # Means of 4 to 7, 8 to 15, and 16 to 31 rows; of fewer there are not three problems.
    assert "of torch and humming, by rows of x; 19 problems" in drawn and drawn.count('width="4" height="4"') == 3
    assert "Random problems" not in pages(Measured(tmp_path / "a.json", Results([RUN])), page)[page]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "3"], "--seed: is only with --set models"),
        (["--set", "models", "--types", "int4"], "--types: is not with --set models, which draws what is measured"),
        (["--set", "models", "--kernels", ".", "--cells", "3"], "--cells: is of --prepare: the folder of --kernels"),
        (["--set", "models", "--kernels", "."], "--kernels: . has no problems.json; make it with"),
        (["--report", "m.json"], "--report: m.json is of --set models; the page of NAME.json shows what is beside it"),
    ],
)
def test_arguments_that_do_not_fit(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    made_up(1).save(Path("m.json"))
    assert main(["bench", *arguments]) == 1
    assert message in capsys.readouterr().err
