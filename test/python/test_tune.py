"""`lowlp tune` without a GPU: candidates, the folder of their kernels, the file of the fastest."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from without_extensions import output_of

from lowlp.cli import main
from lowlp.cli.tune import _show
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear import choosing
from lowlp.kernels.linear.candidates import CLASSES
from lowlp.kernels.linear.choosing import kind_of, schedule_for
from lowlp.kernels.linear.measured import Entry, MeasuredSchedules
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.tuning import measured as written
from lowlp.tuning import measuring
from lowlp.tuning.measuring import measure, merit
from lowlp.tuning.prepared import Kernel, PreparedCandidates
from lowlp.tuning.problems import Problem
from lowlp_runtime import KernelBinary

ROOT = Path(__file__).resolve().parents[2]
SPEC = LinearSpec(n=8192, k=8192, codec="int5 g128 f16", aligned=True)
PREPARE = ["tune", "--types", "int4,nf4", "--shapes", "256x512", "--m", "16", "--candidates", "2", "--jobs", "1"]


# --- candidates -------------------------------------------------------------------------------------------------------


def entry_for(kind: str, schedule: Schedule, m: int) -> Entry:
    return Entry(kind, 8192, 8192, m, "sm_90a", "NVIDIA H200", schedule)


EMPTY: dict[str, Any] = {"arch": "sm_90a", "schedule": {}, "us": {}}
"""What an entry needs that a test does not read."""


def with_measured(monkeypatch: pytest.MonkeyPatch, *entries: Entry) -> None:
    found = (MeasuredSchedules(Path("measured.json"), entries),)
    monkeypatch.setattr(choosing, "measured_schedules", lambda: found)


@pytest.mark.parametrize("m", [16, 64])
def test_candidates_are_those_of_the_estimate_and_what_other_weights_took(
    m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(SPEC, m)
    with_measured(monkeypatch)
    every = problem.shortlist(10**6)
    best, middle, last = every[:3], every[len(every) // 2], every[-1]
    of_int6, of_int4 = entry_for("int6 g128 f16", last, m), entry_for("int4 g128 f16", middle, m)
    far = dataclasses.replace(of_int4, n=4096)
    other_class = dataclasses.replace(of_int4, m=32)
    with_measured(monkeypatch, of_int6, of_int6, entry_for("int4 g128 f16", every[1], m), far, other_class)
    assert problem.shortlist(3) == [*best, last]
    with_measured(monkeypatch, of_int6, of_int4)
    assert problem.shortlist(1) == [best[0], middle, last]


def test_what_other_weights_took_must_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """In registers by estimate; what such weights themselves took was compiled."""
    fitting = Problem(SPEC, 16).shortlist(1)[0]
    large = dataclasses.replace(fitting, columns=16, row_tiles=8, warps=1, slices=16, steps=1, blocks_per_sm=1)
    for kind, found in ((kind_of(SPEC), 2), ("int6 g128 f16", 1)):
        with_measured(monkeypatch, entry_for(kind, large, 16))
        assert len(Problem(SPEC, 16).shortlist(1)) == found
    with_measured(monkeypatch, dataclasses.replace(entry_for(kind_of(SPEC), large, 16), arch="sm_80"))
    assert len(Problem(SPEC, 16).shortlist(1)) == 1


@pytest.mark.parametrize("m", CLASSES)
def test_what_was_measured_is_a_candidate_and_each_is_what_a_file_gives_back(
    m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Problem(SPEC, m).shortlist(100)
    assert schedule_for(SPEC, m) in found
    for schedule in found:
        with_measured(monkeypatch, entry_for(kind_of(SPEC), schedule, m))
        assert schedule_for(SPEC, m) == schedule


# --- the folder -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("tune")
    assert main([*PREPARE, "--prepare", str(found)]) == 0
    return found


def times_of_files(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_a_folder_holds_problems_and_machine_code(folder: Path) -> None:
    prepared = PreparedCandidates.load(folder)
    assert (prepared.arch, prepared.multiprocessors) == ("sm_90a", 132)
    table, plain = sorted(prepared.problems(), key=lambda problem: problem.kind, reverse=True)
    assert (str(plain), str(table)) == ("int4 g128 f16 256x512 M<=16", "lut4 g128 f16 256x512 M<=16")
    for problem in (plain, table):
        assert len(problem.candidates) == 2
        for candidate in problem.candidates:
            assert [kernel.m for kernel in candidate.kernels] == [1, 16]
            for kernel in candidate.kernels:
                binary = prepared.load_kernel(kernel)
                assert list(binary.cubins) == ["sm_90a"] and not binary.ptx
                product = binary.description.require_product()
                assert (product.n, product.k, product.operand("lut") is None) == (256, 512, problem is plain)


def test_preparing_goes_on_where_it_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = PreparedCandidates.load(folder)
    before = times_of_files(folder)
    problem = prepared.problems()[0]
    lost = problem.candidates[0].kernels[0].file
    for name in (problem.file, lost):
        (folder / name).unlink()
    assert main([*PREPARE, "--prepare", str(folder)]) == 0
    after = times_of_files(folder)
    assert {name for name in before if after[name] != before[name]} == {problem.file, lost}
    assert prepared.problems()[0] == problem


def test_what_spills_is_not_compiled_again_and_other_failures_are(folder: Path, tmp_path: Path) -> None:
    copy = dataclasses.replace(PreparedCandidates.load(folder), folder=tmp_path)
    copy.save()
    first, second = copy_of = PreparedCandidates.load(folder).problems()
    for problem, why in zip(copy_of, ("it spills", "no memory"), strict=True):
        failed = tuple(dataclasses.replace(candidate, problem=why) for candidate in problem.candidates)
        copy.save_problem(dataclasses.replace(problem, candidates=failed))
    assert main([*PREPARE, "--prepare", str(tmp_path)]) == 1
    found = copy.problems()
    assert {candidate.problem for candidate in found[0].candidates} == {"it spills"}
    assert (found[0].key, found[1]) == (first.key, second)


def test_a_folder_of_another_architecture_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*PREPARE, "--prepare", str(folder), "--arch", "sm_80"]) == 1
    error = capsys.readouterr().err
    assert f"--prepare: {folder} has kernels for sm_90a with 132 multiprocessors, by lowlp 0.1.0+" in error
    assert "and these are for sm_80 with 132 multiprocessors" in error
    with pytest.raises(LowlpValueError, match=r"has no index.json; make it with `lowlp tune --prepare"):
        PreparedCandidates.load(tmp_path)
    (tmp_path / "index.json").write_text("{}")
    with pytest.raises(LowlpValueError, match="no index of candidates"):
        PreparedCandidates.load(tmp_path)


def test_a_candidate_that_cannot_be_compiled_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOWLP_ASSEMBLER", "none such")
    assert main([*PREPARE, "--types", "int4", "--prepare", str(tmp_path)]) == 1
    assert "lowlp: int4 g128 f16 256x512 M<=16: no kernel: " in (error := capsys.readouterr().err)
    assert "none such" in error


# --- measuring --------------------------------------------------------------------------------------------------------


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were timed, each candidate a microsecond less than the one before."""
    names: list[str] = []

    class FakeOperands:
        def __init__(self, multiprocessors: int) -> None:
            assert multiprocessors == 132

        def time_us(self, prepared: PreparedCandidates, kernel: Kernel) -> float:
            assert isinstance(prepared.load_kernel(kernel), KernelBinary)
            names.append(kernel.file)
            return 100.0 - (len(names) - 1) // 2

        def wrong_files(self) -> set[str]:
            return set()

    monkeypatch.setattr(measuring, "Operands", FakeOperands)
    return names


def entries(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["entries"]
    return found


def test_the_fastest_is_written_and_other_entries_stay(folder: Path, tmp_path: Path, timed: list[str]) -> None:
    prepared, path = PreparedCandidates.load(folder), tmp_path / "new" / "measured.json"
    written.MeasuredFile(path, "a GPU").put(("int4 g128 f16", 4096, 4096, 16), EMPTY)
    first, second = prepared.problems()
    # Interrupted after the first problem; then both, of which one is there.
    assert list(measure(prepared, [first], written.MeasuredFile(path, "a GPU"))) == [first]
    assert list(measure(prepared, [first, second], written.MeasuredFile(path, "a GPU"))) == [first, second]
    assert len(timed) == 8
    other, *found = entries(path)
    assert other == {"kind": "int4 g128 f16", "n": 4096, "k": 4096, "m": 16, **EMPTY}
    for problem, entry in zip((first, second), found, strict=True):
        assert entry["schedule"] == problem.candidates[1].schedule
        assert (entry["arch"], entry["candidates"]) == ("sm_90a", 2)
    assert found[0]["us"] == {"1": 99.0, "16": 99.0} and found[0]["us_of_estimate"] == {"1": 100.0, "16": 100.0}


def test_anew_measures_what_other_kernels_were_measured_for(folder: Path, tmp_path: Path, timed: list[str]) -> None:
    prepared, path = PreparedCandidates.load(folder), tmp_path / "measured.json"
    problems = prepared.problems()
    for problem in problems:
        written.MeasuredFile(path, "a GPU").put(problem.key, EMPTY)
    for anew, count in ((False, 0), (True, 8), (True, 8)):
        list(measure(prepared, problems, written.MeasuredFile(path, "a GPU"), anew))
        assert len(timed) == count
    newer = dataclasses.replace(prepared, version="another")
    list(measure(newer, problems[:1], written.MeasuredFile(path, "a GPU"), anew=True))
    assert len(timed) == 12
    assert [entry["kind"] for entry in entries(path)] == [problem.kind for problem in problems]


def test_what_has_a_problem_is_not_measured(folder: Path, tmp_path: Path, timed: list[str]) -> None:
    prepared, file = PreparedCandidates.load(folder), written.MeasuredFile(tmp_path / "measured.json", "a GPU")
    first, second = prepared.problems()
    spilling = [dataclasses.replace(candidate, problem="it spills") for candidate in first.candidates]
    one = dataclasses.replace(first, candidates=(spilling[0], first.candidates[1]))
    none = dataclasses.replace(second, candidates=(spilling[0],))
    list(measure(prepared, [one, none], file))
    assert timed == [kernel.file for kernel in first.candidates[1].kernels]
    found = file.find(first.key)
    assert found and found["us"] == found["us_of_estimate"] and not file.find(second.key)


def test_a_single_row_counts_twice() -> None:
    assert merit({1: 10.0, 16: 20.0}) < merit({1: 12.0, 16: 15.0})
    assert merit({64: 7.0}) == 7.0


def test_measurements_of_another_gpu_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    written.MeasuredFile(path, "a GPU").put(("int4", 1, 1, 16), EMPTY)
    with pytest.raises(LowlpValueError, match=r"--out: .* has schedules measured on a GPU, and this GPU is another"):
        written.MeasuredFile(path, "another")
    path.write_text("[]")
    with pytest.raises(LowlpValueError, match=r"--out: .*: no measured schedules"):
        written.MeasuredFile(path, "a GPU")


@pytest.mark.parametrize(
    ("capability", "size", "fits"), [((9, 0), 132, True), ((9, 0), 78, False), ((8, 0), 132, False)]
)
def test_kernels_are_for_one_gpu(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], size: int, fits: bool
) -> None:
    monkeypatch.setattr("lowlp.tuning.prepared.compute_capability", lambda ordinal: capability)
    monkeypatch.setattr("lowlp.tuning.prepared.multiprocessors", lambda ordinal: size)
    prepared = PreparedCandidates.load(folder)
    if fits:
        prepared.check_device(0)
        return
    with pytest.raises(
        LowlpValueError, match=r"--kernels: .* is for sm_90a with 132 multiprocessors, and this GPU has"
    ):
        prepared.check_device(0)


def test_what_did_not_compile_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = PreparedCandidates.load(folder).problems()
    failed, spilling = (dataclasses.replace(first.candidates[0], problem=why) for why in ("no memory", "it spills"))
    some = dataclasses.replace(first, candidates=(failed, *first.candidates))
    assert _show("tune", iter([some, dataclasses.replace(second, candidates=(spilling, *second.candidates))]), 2) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("lowlp: ")]
    assert said == [f"lowlp: {first}: 1 of 3 candidates did not compile: no memory"]


# --- the command ------------------------------------------------------------------------------------------------------


def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    facts: dict[str, Callable[..., object]] = {
        "lowlp.benchmarks.session.why_not": lambda: "",
        "lowlp_runtime.device.current_device": lambda: 0,
        "lowlp_runtime.device.device_name": lambda ordinal: "a GPU",
        "lowlp_runtime.device.multiprocessors": lambda ordinal: 132,
        "lowlp_runtime.device.compute_capability": lambda ordinal: (9, 0),
        "lowlp.tuning.prepared.compute_capability": lambda ordinal: (9, 0),
        "lowlp.tuning.prepared.multiprocessors": lambda ordinal: 132,
        "lowlp.compiler.architectures.compute_capability": lambda ordinal: (9, 0),
    }
    for name, fact in facts.items():
        monkeypatch.setattr(name, fact)


def test_two_steps_and_one_write_the_same_file(
    folder: Path, tmp_path: Path, timed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_gpu(monkeypatch)
    two, one = tmp_path / "two.json", tmp_path / "one.json"
    assert main(["tune", "--kernels", str(folder), "--out", str(two)]) == 0
    timed.clear()
    assert main([*PREPARE, "--out", str(one)]) == 0
    assert entries(one) == entries(two) and len(entries(one)) == 2
    timed.clear()
    assert main([*PREPARE, "--out", str(one)]) == 0
    assert not timed


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--prepare", "d", "--out", "t"], "--out: is of measuring, not with --prepare, got t"),
        (["--kernels", "d", "--m", "16", "--out", "t"], "--m: is of compiling, not with --kernels, got 16"),
        (["--out", "t", "--arch", "sm_80"], "--arch: is only with --prepare; else of the GPU that is here, got sm_80"),
        (["--kernels", "d"], "--out: must name a file for the measured schedules, got none"),
        (["--prepare", "d", "--m", "17"], "--m: must be among 16, 32, 64, 128, 256, 1024, got '17'"),
        (["--prepare", "d", "--group-size", "96"], "--group-size: must divide K = 8192, got 96"),
        (
            ["--prepare", "d", "--arch", "h200"],
            "--arch: expected an architecture such as 'sm_90a', got 'h200'; `lowlp targets` lists all",
        ),
        (["--kernels", "d", "--out", "t"], "lowlp tune needs a GPU: there is none"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lowlp_runtime.why_no_device", lambda: "there is none")
    assert main(["tune", *arguments]) == 1
    assert capsys.readouterr().err == f"lowlp: error: {error}\n"


def test_measuring_needs_no_extension(tmp_path: Path) -> None:
    imports = (
        "from lowlp.tuning import measured, measuring\nfrom lowlp.benchmarks import session\nfrom lowlp.cli import main"
    )
    assert output_of(imports, tmp_path) == ("[]\n", "")
