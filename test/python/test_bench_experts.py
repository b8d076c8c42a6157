"""`lowlp bench --experts`: what is measured, what is asked of it, and the table."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from lowlp.benchmarks.experts import results, session
from lowlp.benchmarks.experts.cases import MODELS, Case, cases_of
from lowlp.benchmarks.floor import TARGET_GPU
from lowlp.benchmarks.results import Run
from lowlp.cli import main
from lowlp.kernels.linear.experts_choosing import schedule_for_experts

GPT = "gpt-oss-120b"
RUN = Run("2026-01-01T00:00:00+00:00", TARGET_GPU, "1.0", {"lowlp": "0"}, empty_us=3.0, read_bytes_per_s=4.49e12)


def test_cases() -> None:
    case = Case(GPT, "gate_up", "mxfp4", 64, "zipf")
    rows = case.rows_of_experts()
    assert rows.sum() == case.rows == 256 and rows[0] == rows.max() <= 64 and (rows == case.rows_of_experts()).all()
    assert rows.max() > Case(GPT, "gate_up", "mxfp4", 64, "uniform").rows_of_experts().max()
    # One token has four experts.
    one = Case(GPT, "gate_up", "mxfp4", 1, "uniform")
    assert one.rows_of_experts().max() == 1
    assert one.floor_us() == pytest.approx(4 * 5760 * (2880 // 2 + 90) / 4.49e6)
    assert str(Case("qwen3-30b-a3b", "down", "int4", 1, "zipf").codec) == "int4 g128 f16"
    for each in cases_of(tuple(MODELS), ("int4",), (1,))[::8]:
        assert schedule_for_experts(each.spec, each.rows).stages > 0


def test_what_is_measured_and_asked(tmp_path: Path) -> None:
    cases = cases_of((GPT,), ("mxfp4", "int4"), (1, 1024))
    items = session.items_of(cases, ("torch", "humming", "loop"))
    assert len(items) == 3 * 16 + 4 * 2 and len(set(items)) == len(items)

    def measure(who: str, case: Case) -> results.ExpertsRow:
        if case.product == "down":
            raise ValueError("no room")
        return results.ExpertsRow(
            who, case, us={results.OURS: 30.0, results.TORCH: 28.0, results.HUMMING: 27.0}.get(who, 99.0)
        )

    found = session.run(items, RUN, tmp_path / "r.json", measure, lambda *_: None)
    one, many = cases[0], cases[1]
    assert results.must_us(found, one) == pytest.approx(3 + 1.15 * one.floor_us())
    slower = results.ExpertsResults(dataclasses.replace(RUN, read_bytes_per_s=3.1e12), found.rows)
    assert results.must_us(slower, one) == pytest.approx(3 + 1.15 * one.floor_us(3.1e12))
    assert results.must_us(found, many) == pytest.approx(27 / 0.97)
    table = results.table(found)
    assert "gpt-oss-120b gate_up mxfp4 | uniform | 1 | **30.0 missed**" in table and "99.0" in table
    saved = json.loads((tmp_path / "r.json").read_text())
    assert len(saved["rows"]) == len(items) and saved["rows"][-1]["problem"] == "ValueError: no room"
    again = results.ExpertsResults.load(tmp_path / "r.json")
    assert again.rows == found.rows and results.summary_table(again).startswith("| what | 1 tokens | 1024 tokens |")


def test_mistakes_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["--experts", "--models", "x"], "--models: must be among gpt-oss-120b, qwen3-30b-a3b, deepseek-v3"),
        (["--experts", "--types", "int8"], "--types: must be among mxfp4, int4 with --experts, got 'int8'"),
        (["--experts", "--prepare", "x"], "--prepare: is not with --experts"),
        (["--models", GPT], "--models: is only with --experts"),
        (["--gpu", "NVIDIA H200"], "--gpu: is only with --prepare"),
    ):
        assert main(["bench", *arguments]) != 0
        assert message in capsys.readouterr().err
