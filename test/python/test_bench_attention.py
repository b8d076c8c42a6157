"""`lowlp bench --attention` without a GPU: what is measured, the file, the tables, the page, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lowlp.benchmarks.attention.cases import ABLATED, ABLATION_CASES, APPEND, CASES, KINDS, Case, may_us, must_us
from lowlp.benchmarks.attention.results import (
    KEYS_ONLY,
    OURS,
    AttentionResults,
    AttentionRow,
    append_table,
    decode_table,
    limits_table,
)
from lowlp.benchmarks.attention.session import PEERS, Item, items_of, items_of_versions, run
from lowlp.benchmarks.attention.versions import versions_table
from lowlp.benchmarks.floor import TARGET_GPU
from lowlp.benchmarks.pages.writing import write_report
from lowlp.benchmarks.results import Results, Run
from lowlp.cli import main
from lowlp.cli.bench_attention import text_of
from lowlp.errors import LowlpValueError

RUN = Run("2026-01-01T00:00:00+00:00", TARGET_GPU, "1.0", {"lowlp": "0"}, empty_us=3.0, read_bytes_per_s=4.49e12)
LONG = Case(8, 8, 32768)


def fake(item: Item) -> AttentionRow:
    """A time that names what was measured; FlashInfer is not installed."""
    if item.who == "flashinfer":
        raise ImportError("No module named 'flashinfer'")
    case = item.case
    us = 5.5 if item.kind.startswith(APPEND) else case.floor_us(item.kind) * (1.2 if item.who == OURS else 1.5)
    if item.variant:
        us /= 2
    return AttentionRow(
        item.who, item.kind, case.kv_heads, case.batch, case.tokens, us, us, 7, item.variant, error=1e-4
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> AttentionResults:
    shown: list[Any] = []
    out = tmp_path_factory.mktemp("bench") / "deep" / "r.json"
    items = list(items_of(KINDS, CASES, PEERS))
    found = run(items, RUN, out, fake, lambda *step: shown.append(step))
    assert [step[0] for step in shown] == list(range(len(items) + 1))
    loaded = AttentionResults.load(out)
    assert (loaded.run, loaded.rows) == (found.run, found.rows)
    return loaded


def test_floors_and_targets() -> None:
    assert LONG.bytes_of("f16") == 8 * 32768 * 8 * 128 * 2 * 2
    assert LONG.bytes_of("int4") == 8 * 32768 * 8 * (64 + 2) * 2
    assert LONG.floor_us("f16") == pytest.approx(239, abs=1) and LONG.floor_us("cq-2") == pytest.approx(30, abs=1)
    assert LONG.floor_us("f16", 3.1e12) == pytest.approx(239 * 4.49 / 3.1, abs=1)
    assert must_us("f16", LONG, "another", 3.1e12) == pytest.approx(8 + 1.1 * LONG.floor_us("f16", 3.1e12))
    assert must_us("cq-4", LONG, "another") is None and may_us("cq-4", LONG, "another") is None
    assert must_us("int4", LONG) == pytest.approx(76, abs=1)
    assert (must_us("cq-4", LONG), may_us("cq-4", LONG)) == (140, 85)
    assert [must_us("cq-2", case) for case in CASES] == [65, 16, 125, 23, 23]
    assert must_us("int8", LONG) is None and must_us("int4", CASES[0]) is None and may_us("f16", LONG) is None


def test_tables_of_all_that_is_measured(results: AttentionResults) -> None:
    table = decode_table(results)
    lines = table.splitlines()
    assert lines[0] == "| what | torch f16 | FlashInfer f16 | " + " | ".join(KINDS) + " |"
    (long,) = [line for line in lines if "8 x 32768" in line]
    assert "not measured" in long and "| 71.7 (140, 85) |" in long and "**287 missed** (271)" in long
    assert limits_table(results).count("\n") == 1 + len(CASES) * len(KINDS)
    assert "| 8 KV heads, 8 x 32768 | cq-4 | 71.7 | 59.8 | 83% | 35.9 |" in limits_table(results)
    assert "| cq-2 | 32 | 8 | 5.5 (6) |" in append_table(results)
    text = text_of(results)
    assert "no time: flashinfer f16, 32 KV heads, 8 x 4096: ImportError: No module named 'flashinfer'" in text


def test_the_page_shows_it(results: AttentionResults, tmp_path: Path) -> None:
    data = tmp_path / "r.json"
    Results([RUN]).save(data)
    results.save(tmp_path / "r.attention-1.json")
    write_report(Results.load(data), data, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "## Attention" in page and decode_table(results) in page and append_table(results) in page
    assert "[results](r.attention-1.json)" in page
    with pytest.raises(LowlpValueError, match="expected 'lowlp attention 1', got 1"):
        AttentionResults.load(data)


def test_versions_of_attention(tmp_path: Path) -> None:
    items = list(items_of_versions(ABLATED, ABLATION_CASES))
    found = run(items, RUN, tmp_path / "r.attention-1.json", fake, lambda *_: None)
    table = versions_table(found)
    assert table.splitlines()[0].endswith("| GC | SC | O1 | O2 | O3 | O4 | lowlp |")
    assert table.count("\n") == 1 + 8 and "cq-2 | 32 KV heads, 8 x 4096 | 8.968 (1.00)" in table
    assert table in text_of(found) and versions_table(AttentionResults(RUN)) == ""
    Results([RUN]).save(tmp_path / "r.json")
    write_report(Results.load(tmp_path / "r.json"), tmp_path / "r.json", tmp_path / "page.md")
    page = (tmp_path / "measurements" / "attention.md").read_text()
    assert table in page and "keys only" not in page and "(../r.attention-1-versions.svg)" in page
    assert "Attention" not in (tmp_path / "page.md").read_text()
    assert "cq-4, 8 x 1024" in (tmp_path / "r.attention-1-versions.svg").read_text()


def test_a_deadline_leaves_out_what_comes_after_it(tmp_path: Path) -> None:
    item, out = Item(OURS, "int4", LONG), tmp_path / "r.json"
    found = run([item], replace(RUN, notes=[]), out, fake, lambda *_: None, deadline_s=-1)
    assert not found.rows and AttentionResults.load(out).run.notes[-1].startswith("the deadline came")


def test_variants_are_no_times_of_the_kernel() -> None:
    row = fake(Item(OURS, "cq-4", LONG, KEYS_ONLY))
    assert decode_table(AttentionResults(RUN, [row])).count("not measured") == 0
    assert AttentionResults(RUN, [row]).find(OURS, "cq-4", LONG) is None


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["--types", "int3"], "--types: must be among f16, bf16, f8e4m3, int8, int4, cq-4, cq-2, got 'int3'"),
        (["--peers", "humming"], "--peers: must be among torch, flashinfer with --attention, got 'humming'"),
        (["--m", "1"], "--m: is not with --attention"),
        (["--set", "models"], "--set: is not with --attention"),
        ([], "lowlp bench needs a GPU"),
    ):
        assert main(["bench", "--attention", *arguments]) == 1
        assert message in capsys.readouterr().err
