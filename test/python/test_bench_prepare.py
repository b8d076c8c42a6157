"""`lowlp bench` without a GPU: kernels compiled ahead, weights made from data alone, the worker, the report."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failing_worker import failing_worker
from without_extensions import output_of

import lowlp
from lowlp.benchmarks import timing
from lowlp.benchmarks.cases import ACTIVATION, KINDS, SHAPES, Shape, parse_rows
from lowlp.benchmarks.pages.measured import Measured
from lowlp.benchmarks.pages.writing import pages, write_report
from lowlp.benchmarks.peers import NAMES, parse_peers, peer
from lowlp.benchmarks.prepared import KernelEntry, PreparedKernels
from lowlp.benchmarks.preparing import _jobs, describe, prepare, sample_of
from lowlp.benchmarks.results import Results, Row, Run
from lowlp.benchmarks.saved_weights import SavedWeights
from lowlp.benchmarks.timing import Effort, fills_for, time_call
from lowlp.benchmarks.worker import Facts, Settings, Unit, Worker, units_of
from lowlp.cli import main
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear import measured
from lowlp.kernels.linear.candidates import for_rows
from lowlp.kernels.linear.choosing import kind_of, schedule_for
from lowlp.kernels.linear.operand_list import TAKES_ALL
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp.numeric.array_ops import NumpyOps
from lowlp.schedules.device import device_ahead
from lowlp_runtime import KernelBinary
from lowlp_runtime.timing import Timing

ROOT = Path(__file__).resolve().parents[2]
SHAPE = Shape(256, 256)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("kernels")
    steps = list(prepare(found, "sm_90a", [KINDS["uint4z"]], [SHAPE], [1, 2, 8], jobs=1))
    assert [step[0] for step in steps] == list(range(1, len(steps) + 1))
    assert all(step[1] == len(steps) for step in steps)
    return found


def test_schedules_that_do_not_depend_on_m(tmp_path: Path) -> None:
    rows = (1, 16, 1024)
    # A shape where `linear` shares tiles of few rows, and takes warpgroups for many.
    found = {}
    for name, batch_invariant in (("chosen", False), ("invariant", True)):
        kinds, shapes = [KINDS["int1"]], [Shape(3584, 7168)]
        steps = prepare(tmp_path / name, "sm_90a", kinds, shapes, rows, jobs=1, batch_invariant=batch_invariant)
        assert all(done <= total for done, total, _ in steps)
        kernels = PreparedKernels.load_index(tmp_path / name)
        found[name] = [kernels.entry("int1", Shape(3584, 7168), m).schedule for m in rows]
    assert all(Schedule(**schedule).has_tile_each for schedule in found["invariant"])
    assert found["invariant"][0] == found["invariant"][1] != found["chosen"][1]
    assert found["chosen"][0]["share_tiles"]
    assert found["chosen"][2]["warpgroups"]


def test_a_folder_has_kernels_of_one_choice_of_schedules(tmp_path: Path) -> None:
    for kind, batch_invariant, kept in (("int1", False, 1), ("int2", False, 2), ("int4", True, 1)):
        for _ in prepare(tmp_path, "sm_90a", [KINDS[kind]], [SHAPE], [1], jobs=1, batch_invariant=batch_invariant):
            pass
        index = PreparedKernels.load_index(tmp_path)
        assert len(index.kernels) == kept
        assert index.batch_invariant == batch_invariant


def test_batch_invariant_script(tmp_path: Path) -> None:
    script = ROOT / "benchmarks" / "batch_invariant.py"
    command = [sys.executable, str(script), "--types", "int4", "--shapes", "256x256", "--m", "1,2", "--prepare"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("chosen", "invariant"):
        entry = PreparedKernels.load_index(tmp_path / name).entry("int4", Shape(256, 256), 2)
        assert (tmp_path / name / entry.file).is_file()
    # What measures them imports no compiler.
    imports = f"import runpy; runpy.run_path({str(script)!r})"
    assert output_of(imports, tmp_path) == ("[]\n", "")


def test_what_was_measured_is_printed_without_the_compiler(tmp_path: Path) -> None:
    """Where prepared kernels are timed there is none."""
    printing = (
        "from lowlp.benchmarks.results import Results; from lowlp.cli import bench; bench._print_summary(Results())"
    )
    found, errors = output_of(printing, tmp_path)
    assert (found.splitlines()[-1:], errors) == (["[]"], "")


# --- weights as data --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_operands_of_other_weights_are_made_from_data_alone(name: str) -> None:
    kind = KINDS[name]
    sample = sample_of(kind)
    saved = describe(kind, sample, spec_for(sample, ACTIVATION, ACTIVATION, aligned=True), [SHAPE], {})
    saved = SavedWeights.from_json(json.loads(json.dumps(saved.to_json())))
    weights = np.random.default_rng(1).normal(size=(SHAPE.n, SHAPE.k)).astype(np.float32)
    options: dict[str, Any] = {"lut": lowlp.nf(4)} if kind.table else {"dtype": kind.dtype}
    qw = lowlp.quantize(weights, group_size=128, zero_point=bool(kind.zero_bytes), **options)
    made = saved.make_operands(NumpyOps(), qw.codes, qw.scales, qw.zeros)
    wanted = host_operands(qw, ACTIVATION, schedule=TAKES_ALL)
    assert list(made) == list(wanted)
    for operand, found in made.items():
        np.testing.assert_array_equal(found, wanted[operand])
    values = np.array(saved.values, np.float32)[qw.codes].reshape(SHAPE.n, -1, 128)
    values = values - (0 if qw.zeros is None else qw.zeros[:, :, None].astype(np.float32))
    np.testing.assert_array_equal((values * qw.scales[:, :, None]).reshape(qw.shape), qw.dequantize())


def test_a_sample_that_packs_otherwise_is_refused(folder: Path) -> None:
    prepared = PreparedKernels.load_index(folder)
    saved, sample = prepared.weights["uint4z"], prepared.sample("uint4z")
    saved.check_sample(NumpyOps(), sample)
    with pytest.raises(LowlpValueError, match=r"operand .weights. differs from what the compiler makes"):
        dataclasses.replace(saved, flip=1).check_sample(NumpyOps(), sample)
    sample["zeros"] = sample["zeros"] ^ 1
    with pytest.raises(LowlpValueError, match=r"operand .correctors. differs"):
        saved.check_sample(NumpyOps(), sample)


# --- kernels ----------------------------------------------------------------------------------------------------------


def test_kernels_are_found_by_their_rows(folder: Path) -> None:
    prepared = PreparedKernels.load_index(folder)
    assert prepared.arch == "sm_90a"
    entry = prepared.entry("uint4z", SHAPE, 8)
    assert entry.rows == (2, 8)
    product = prepared.load(entry).description.require_product()
    roles = [operand.role for operand in product.of_source("weights")]
    assert roles == ["packed", "scales", "zeros"]
    assert {*roles, "fit", "unfit"} == {operand.role for operand in prepared.weights["uint4z"].operands}
    assert isinstance(prepared.load_empty(), KernelBinary)
    with pytest.raises(LowlpValueError, match="no kernel of uint4z 256x256 for M = 3; prepare it"):
        prepared.entry("uint4z", SHAPE, 3)


def test_kernels_are_for_a_gpu_of_one_size(folder: Path) -> None:
    prepared = PreparedKernels.load_index(folder)
    prepared.check_device(132)
    with pytest.raises(
        LowlpValueError, match="prepared for a GPU of 132 multiprocessors, and this one has 78; prepare"
    ):
        prepared.check_device(78)


def test_preparing_again_keeps_the_others(folder: Path) -> None:
    list(prepare(folder, "sm_90a", [KINDS["int2"]], [SHAPE], [1], jobs=1))
    kinds = {entry.kind for entry in PreparedKernels.load_index(folder).kernels}
    assert kinds == {"int2", "uint4z"}


def test_a_kernel_that_cannot_be_compiled_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOWLP_ASSEMBLER", "none such")
    command = ["bench", "--prepare", str(tmp_path), "--types", "int4", "--shapes", "128x128", "--m", "1", "--jobs", "1"]
    status = main(command)
    assert status == 1
    assert "none such" in capsys.readouterr().err


def test_kernels_that_spill_or_wait_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bench", "--prepare", str(tmp_path / "kernels"), "--types", "int4", "--m", "1,250", "--jobs", "1"]
    command += ["--shapes", "768x512"]
    assert main(command) == 0
    assert capsys.readouterr().out.endswith(", 0 failed, 0 spill registers, 0 make products wait\n")
    # Three warpgroups have no registers for 256 columns each.
    schedule = {"warpgroups": 3, "row_tiles": 1, "column_tiles": 2, "scales_on": "weights", "stages": 2}
    entry = {"kind": "int4 g128 f16", "n": 768, "k": 512, "m": 256, "arch": "sm_90a", "schedule": schedule}
    table = tmp_path / "mine.json"
    table.write_text(json.dumps({"format": 1, "gpu": "a GPU", "entries": [entry]}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOWLP_TUNED", str(table))
        assert main(command) == 1
    said = capsys.readouterr()
    assert said.out.endswith(", 0 failed, 1 spill registers, 1 make products wait\n")
    (line,) = [line for line in said.err.splitlines() if line.startswith("lowlp: ")]
    pattern = (
        r"lowlp: int4 768x512, M = \(250,\): \d+ bytes of registers of each thread are spilled; the assembler makes"
    )
    assert re.match(pattern, line)


@pytest.mark.parametrize(
    ("fields", "status", "counts", "says"),
    [
        ({}, 0, "0 failed, 0 spill registers, 0 make products wait", ""),
        (
            {"spilled_bytes": 8},
            1,
            "0 failed, 1 spill registers, 0 make products wait",
            "8 bytes of registers of each thread are spilled",
        ),
        (
            {"product_remarks": 2},
            1,
            "0 failed, 0 spill registers, 1 make products wait",
            "the assembler makes products of warpgroups wait, in 2 remarks",
        ),
        ({"problem": "no memory"}, 1, "1 failed, 0 spill registers, 0 make products wait", "no memory"),
    ],
)
def test_each_reason_to_fail_is_said(
    fields: dict[str, Any],
    status: int,
    counts: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def prepare(folder: Path, *rest: object) -> Iterator[tuple[int, int, str]]:
        entry = KernelEntry("int4", 64, 128, (1, 8), "file", **fields)
        PreparedKernels(folder, "sm_90a", "version", 132, {}, [entry]).save()
        yield from ()

    monkeypatch.setattr("lowlp.benchmarks.preparing.prepare", prepare)
    assert main(["bench", "--prepare", str(tmp_path)]) == status
    said = capsys.readouterr()
    assert said.out == f"{0 if 'problem' in fields else 1} kernels for sm_90a in {tmp_path}, {counts}\n"
    assert said.err == (f"lowlp: int4 64x128, M = (1, 8): {says}\n" if says else "")
    (entry,) = PreparedKernels.load_index(tmp_path).kernels
    assert entry == dataclasses.replace(entry, **fields)


def test_all_that_is_shipped_is_prepared() -> None:
    """By what `.ci/run` gives to `lowlp bench --prepare`: every shipped entry, and what most rows take. A tenth of
    the kinds, since each takes a second."""
    command = re.search(r"bench --prepare \S+ --m (\S+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert command
    rows = parse_rows(command[1])
    shipped = {of_gpu.entries[0].gpu: of_gpu.entries for of_gpu in measured.measured_schedules()}
    index = PreparedKernels(Path(), "sm_90a", "", 132)
    keys = set()
    for number, kind in enumerate(KINDS.values()):
        sample = spec_for(sample_of(kind), ACTIVATION, ACTIVATION, aligned=True)
        keys |= {(kind_of(sample), shape.n, shape.k) for shape in SHAPES}
        if number % 10:
            continue
        for shape in SHAPES:
            spec = dataclasses.replace(sample, n=shape.n, k=shape.k)
            for gpu, entries in shipped.items():
                device = device_ahead(index.arch, index.multiprocessors, gpu)
                found = {job.schedule for job in _jobs(index, kind, spec, rows, gpu, batch_invariant=False)}
                for m in (1, 16, 1000, 4096, 8192):
                    assert schedule_for(spec, m, device, gpu=gpu) in found, f"{spec}, M = {m}"
                for entry in entries:
                    if (entry.kind, entry.n, entry.k) == (kind_of(spec), shape.n, shape.k):
                        assert for_rows(spec, entry.schedule, entry.m, device) in found, entry
    # Products of quantised activations are prepared by `bench --activations --prepare`.
    halves = [entry for entries in shipped.values() for entry in entries if entry.kind.split()[2:3] == [ACTIVATION]]
    assert keys == {(entry.kind, entry.n, entry.k) for entry in halves}


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LowlpValueError, match=r"has no index.json; make it with `lowlp bench --prepare"):
        PreparedKernels.load_index(tmp_path)
    (tmp_path / "index.json").write_text("{}")
    with pytest.raises(LowlpValueError, match="no index of kernels"):
        PreparedKernels.load_index(tmp_path)


def test_what_runs_on_the_gpu_needs_no_extension(tmp_path: Path) -> None:
    """`measuring` but for PyTorch, and the command."""
    imports = (
        "from lowlp.benchmarks import measuring, report, session\n"
        "from lowlp.benchmarks.models import ahead, ranking, report, session\n"
        "from lowlp.benchmarks.peers import NAMES, peer\n[peer(name) for name in NAMES]\nfrom lowlp.cli import main"
    )
    assert output_of(imports, tmp_path) == ("[]\n", "")


# --- the worker -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("fails", "RuntimeError: fails at 8"),
        ("lost", "RuntimeError: lost at 8; the device is lost"),
        ("dies", "the process ended with status 9"),
        ("hangs", "no answer within 4 s; the process was ended"),
    ],
)
def test_only_the_row_that_fails_is_lost(kind: str, problem: str) -> None:
    worker = Worker(Settings(None, Effort()), 4.0 if kind == "hangs" else 60.0, failing_worker)
    try:
        assert worker.facts() == Facts(empty_us=3.5)
        rows = list(worker.measure(Unit("lowlp", kind, SHAPE, (1, 8, 16))))
        assert [(row.m, row.us, row.problem) for row in rows] == [(1, 1.0, ""), (8, None, problem), (16, 16.0, "")]
        after = list(worker.measure(Unit("lowlp", "good", SHAPE, (1, 2, 1))))
        assert [row.us for row in after] == [1.0, 2.0, 1.0]
    finally:
        worker.close()


def test_a_unit_that_cannot_be_opened_fails_in_all_rows() -> None:
    worker = Worker(Settings(None, Effort()), 60.0, failing_worker)
    try:
        rows = list(worker.measure(Unit("humming", "unopened", SHAPE, (1, 8))))
    finally:
        worker.close()
    assert [(row.m, row.us, row.problem) for row in rows] == [
        (1, None, "ValueError: no such weights"),
        (8, None, "ValueError: no such weights"),
    ]


def test_the_order_of_units() -> None:
    units = units_of(["torch", "humming"], True, ["int4", "nf4"], [SHAPE], [1], lambda who, kind: kind != "nf4")
    assert [(unit.who, unit.kind) for unit in units] == [
        ("torch", "f16"), ("lowlp", "int4"), ("humming", "int4"), ("lowlp", "nf4"),
    ]  # fmt: skip


def test_repeats_and_fills() -> None:
    assert Effort(budget_ms=10, least=3, most=50).repeats(100.0) == 50
    assert Effort(budget_ms=10, least=3, most=500).repeats(100.0) == 100
    assert Effort(budget_ms=10, least=3, most=50).repeats(1e6) == 3
    assert (fills_for(10.0), fills_for(100.0), fills_for(1e6)) == (1, 3, 16)


def test_what_follows_a_pause_is_put_for_some_time_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now, timed = [0.0], []

    def measure(run: object, repeats: int, **_: object) -> Timing:
        now[0] += 0.01
        timed.append(repeats)
        return Timing((10.0,))

    monkeypatch.setattr(timing, "measure", measure)
    monkeypatch.setattr(timing.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(timing._Clock, "ended", -math.inf)
    counts = []
    for pause in (0.0, 0.0, 1.0):
        now[0] += pause
        timed.clear()
        time_call(lambda: None, 0, Effort())
        counts.append(len(timed))
    assert counts[1] == 2 and counts[0] == counts[2] >= 6


# --- peers ------------------------------------------------------------------------------------------------------------


def test_which_peer_has_which_weights() -> None:
    supported = {name: {kind for kind in KINDS if peer(name).supports(KINDS[kind])} for name in NAMES}
    assert supported["torch"] == set()
    assert peer("torch").supports(None)
    assert supported["humming"] == set(KINDS) - {"nf4"}
    assert supported["gemlite"] == {"int1", "int2", "int4", "int8", "uint4z"}
    assert supported["bitsandbytes"] == {"nf4"}


def test_lists_of_peers() -> None:
    assert parse_peers("all") == NAMES
    assert parse_peers("humming,torch") == ("torch", "humming")
    with pytest.raises(LowlpValueError, match=r"--peers: must be 'all' or among torch, .*, got 'marlin'"):
        parse_peers("marlin")


# --- the command and its report ---------------------------------------------------------------------------------------


def made_up() -> Results:
    run = Run(
        "2026-01-01T00:00:00+00:00", "a GPU", "1.0", {"lowlp": "0", "gemlite": ""}, 3.5, 4.49e12, notes=["a note"]
    )
    results = Results([run])
    for shape in (Shape(57344, 8192), Shape(4096, 4096)):
        for m in (1, 16, 256):
            results.add(Row("torch", "f16", shape.n, shape.k, m, 100.0 + m))
            results.add(Row("lowlp", "int4", shape.n, shape.k, m, 50.0 + m))
            results.add(Row("humming", "int4", shape.n, shape.k, m, 70.0 + m))
    results.add(Row("humming", "int8", 4096, 4096, 1, None, problem="no compiler"))
    return results


def test_the_report_is_written_from_results_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, page = tmp_path / "results" / "made-up.json", tmp_path / "docs" / "performance.md"
    made_up().save(data)
    data.with_name("made-up.notes.md").write_text("Bytes limit it.\n")
    assert main(["bench", "--report", str(data), "--page", str(page)]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    details = page.parent / "measurements" / "weights.md"
    assert written[-2:] == [page, details]
    text = page.read_text(encoding="utf-8")
    assert "Bytes limit it." in text and "[Details](measurements/weights.md)" in text
    assert "absent: gemlite; a note" in text
    assert "- humming int8 4096x4096, M = 1: no compiler" in details.read_text(encoding="utf-8")
    for picture in written[:-2]:
        assert picture.read_text(encoding="utf-8").startswith("<svg")
        assert f"(../../results/{picture.name})" in details.read_text(encoding="utf-8")
    assert [path.name for path in written[:-2]] == ["made-up-fraction-of-floor.svg", "made-up-time-over-m.svg"]


def test_the_page_shows_tokens_per_second(tmp_path: Path) -> None:
    data = tmp_path / "r.json"
    made_up().save(data)
    rows = [("bf16", 1, 1, 4.0), ("int4", 1, 1, 2.0), ("int4", 1, 64, 3.2)]
    steps = [dict(zip(("kind", "batch", "tokens", "ms"), row, strict=True)) for row in rows]
    text = json.dumps({"shape": {"name": "8b"}, "device": "NVIDIA GPU", "results": steps})
    (tmp_path / "r.decoding-1.json").write_text(text)
    (tmp_path / "r.decoding-2.json").write_text(text.replace("8b", "qwen-0.5b"))
    written = write_report(Results.load(data), data, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "| weights | batch 1 | prompt of 64 |" in page and "| int4 | 500 (2.00x) | 20000 |" in page
    assert tmp_path / "r.decoding-1.svg" in written and "(r.decoding-1.svg)" in page
    assert "Qwen" not in page and "| int4 | 500 (2.00x) |" in (tmp_path / "measurements/models.md").read_text()
    (tmp_path / "r.decoding-1.json").write_text("{}")
    with pytest.raises(LowlpValueError, match=r"no results of benchmarks/decode_model\.py"):
        write_report(Results.load(data), data, tmp_path / "page.md")


def test_several_results_are_put_together(tmp_path: Path) -> None:
    results = made_up()
    first, second, both = (tmp_path / f"{name}.json" for name in ("first", "second", "both"))
    Results(results.runs, [row for row in results.rows if row.who == "lowlp"]).save(first)
    Results(results.runs, [row for row in results.rows if row.who != "lowlp"]).save(second)
    page = ["--page", str(tmp_path / "page.md")]
    assert main(["bench", "--report", str(first), str(second), *page]) == 1
    assert main(["bench", "--report", str(first), str(second), "--out", str(both), *page]) == 0
    assert len(Results.load(both).rows) == len(results.rows)
    assert len(Results.load(both).runs) == 2


def test_the_command_needs_a_gpu_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lowlp_runtime.why_no_device", lambda: "there is none")
    assert main(["bench", "--quick"]) == 1
    assert capsys.readouterr().err == "lowlp: error: lowlp bench needs a GPU: there is none\n"
    assert main(["bench", "--peers-only"]) == 1
    assert "--peers-only: needs --peers" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "folder"), [("2026-11-22-h200.json", "docs"), ("2026-11-27-h100.json", "docs/h100")])
def test_pages_and_plots_are_those_of_their_results(name: str, folder: str, tmp_path: Path) -> None:
    newest, page = ROOT / "benchmarks" / "results" / name, ROOT / folder / "performance.md"
    copy = tmp_path / "benchmarks" / "results" / newest.name
    copy.parent.mkdir(parents=True)
    for path in newest.parent.glob(f"{newest.stem}*"):
        copy.with_name(path.name).write_bytes(path.read_bytes())
    written = write_report(Results.load(newest), copy, tmp_path / folder / "performance.md")
    for path in written:
        assert path.read_text("utf-8") == (ROOT / path.relative_to(tmp_path)).read_text("utf-8"), path.name
    assert page.is_file() and len(page.read_text("utf-8").splitlines()) <= 400


def test_the_same_results_give_the_same_page() -> None:
    found = [pages(Measured(Path("r.json"), made_up()), Path("page.md")) for _ in range(2)]
    assert found[0] == found[1]
