"""`lowlp bench --set models` without a GPU: shapes, the draw, the folder, the ranking of candidates."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lowlp.benchmarks import preparing
from lowlp.benchmarks.cases import KINDS, Shape, WeightKind
from lowlp.benchmarks.models import preparing as models_preparing
from lowlp.benchmarks.models import ranking, ranking_parts, session
from lowlp.benchmarks.models.drawing import DECODE_RANGES, PREFILL_RANGES, Cell, draw, draw_kind, name_of
from lowlp.benchmarks.models.folder import PreparedProblems
from lowlp.benchmarks.models.judging import judged
from lowlp.benchmarks.models.model_results import ModelResults, Turns
from lowlp.benchmarks.models.preparing import Choice
from lowlp.benchmarks.models.ranking import Ranking
from lowlp.benchmarks.models.shapes import MODELS, MOST_WEIGHTS, Model, products, shapes
from lowlp.benchmarks.peers import peer
from lowlp.benchmarks.prepared import KernelEntry, PreparedKernels
from lowlp.benchmarks.results import Row, Run
from lowlp.benchmarks.worker import Facts, Settings, Unit, serve
from lowlp.cli import main
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear import choosing
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operands import spec_for
from lowlp.kernels.linear.spec import LinearSpec
from lowlp_runtime import KernelBinary

RUN = Run("2026-01-01T00:00:00+00:00", "a GPU", "1.0", {"lowlp": "0"}, empty_us=3.5, read_bytes_per_s=4.49e12)


def kind(text: str) -> WeightKind:
    """The drawn kind of that name."""
    generator = random.Random(0)
    return next(found for _ in range(20000) if (found := draw_kind(generator, 256)).name == text)


def spec_of(cell: Cell) -> LinearSpec:
    """Of a problem's kernels."""
    sample = preparing.sample_of(cell.kind)
    return preparing.spec_in(spec_for(sample, "f16", "f16", aligned=True), cell.kind, cell.shape)


# --- shapes -----------------------------------------------------------------------------------------------------------


def test_shapes_of_a_model() -> None:
    llama = [str(product.shape) for product in MODELS[0].products(1)]
    assert llama == ["6144x4096", "4096x4096", "28672x4096", "4096x14336"]
    cut = [str(product.shape) for product in MODELS[0].products(4)]
    assert cut == ["1536x4096", "4096x1024", "7168x4096", "4096x3584"]
    # 40 heads with 10 of keys are 20 with 5 on two GPUs, and none on four.
    phi = next(model for model in MODELS if model.name == "Phi-4")
    assert [str(product.shape) for product in phi.products(2)][:2] == ["3840x5120", "5120x2560"]
    assert not list(phi.products(4))


def test_few_heads_of_keys_are_repeated() -> None:
    one = Model("one", "", 1024, 16, 2, 4096)
    assert next(one.products(8)).shape == Shape((2 + 1 + 1) * 128, 1024)


def test_dense_products_of_latent_attention() -> None:
    latent = {product.name: str(product.shape) for product in MODELS[-1].products(1)}
    assert latent == {
        "q_a and kv_a": "2112x7168",
        "q_b": "24576x1536",
        "kv_b": "32768x512",
        "o": "7168x16384",
        "gate_up": "36864x7168",
        "down": "7168x18432",
        "shared gate_up": "4096x7168",
        "shared down": "7168x2048",
    }


def test_all_shapes_are_possible_on_a_gpu() -> None:
    found = shapes()
    assert {product.model for those in found.values() for product in those} == {model.name for model in MODELS}
    assert all(shape.k % 16 == 0 and shape.n * shape.k <= MOST_WEIGHTS for shape in found)
    left_out = {str(product) for product in products()} - {str(one) for those in found.values() for one in those}
    assert left_out == {"Llama 3.1 405B gate_up"}


# --- the draw ---------------------------------------------------------------------------------------------------------


def test_a_seed_repeats_its_problems() -> None:
    first = draw(20, 250)
    assert first == draw(20, 250)
    assert first != draw(21, 250)
    assert str(first[0]) == "f6e3m2 g128 f16 5376x5376 M=1"


def test_ranges_of_rows_have_equal_parts() -> None:
    cells = draw(3, 250)
    for ranges, count in ((DECODE_RANGES, 20), (PREFILL_RANGES, 12)):
        for least, most in ranges:
            assert sum(least <= cell.m <= most for cell in cells) in (count, count + 1)
    assert len({cell.shape for cell in cells}) == len(shapes())


def test_all_that_is_drawn_is_valid() -> None:
    cells = [cell for seed in range(8) for cell in draw(seed, 250)]
    for cell in cells:
        for one in filter(None, (cell.kind, cell.twin)):
            assert cell.shape.k % one.group_in(cell.shape.k) == 0
            assert one.name == name_of(one)
        assert cell.kind.scale_bytes > 1 or cell.kind.group in (16, 32)
        assert not (cell.kind.scale_bytes == 1 and cell.kind.zeros)
        assert (cell.kind.dtype, cell.kind.scale) != ("int1", "e8m0")
    by_name = {one.name: one for cell in cells for one in filter(None, (cell.kind, cell.twin))}
    for one in by_name.values():
        assert one.codec.scale == one.scale
    groups = Counter(cell.kind.group for cell in cells)
    assert set(groups) == {0, 16, 32, 64, 128}
    assert max(groups.values()) < 1.3 * min(groups.values())
    assert len(by_name) > 500


def test_what_is_timed_beside_a_kind() -> None:
    found = {cell.kind.name: cell.twin.name if cell.twin else "" for seed in range(30) for cell in draw(seed, 250)}
    assert found["int4 g128 f16"] == found["int4 g64 f16"] == found["int4 channel f16"] == ""
    assert found["int4 g32 f16"] == "int4 g128 f16"
    assert found["int4 g64 f32"] == "int4 g128 f16"
    assert found["uint4 g16 f16 zeros:uint8"] == "uint4 g128 f16 zeros:uint8"
    assert found["nf4 g64 f16"] == "int4 g128 f16"
    assert found["uint3 g128 bf16 x:bf16"] == "int3 g128 bf16 x:bf16"


def test_kinds_that_humming_has() -> None:
    humming = peer("humming")
    for name in ("int4 g32 f16", "uint2 channel f16 zeros:uint8", "f4e2m1 g16 e4m3", "int3 g16 bf16 x:bf16"):
        assert humming.supports(kind(name)), name
    for name in ("nf4 g64 f16", "bipolar2 g32 f16", "uint4 g32 f16", "int4 g32 f32", "int4 g32 bf16"):
        assert not humming.supports(kind(name)), name


# --- weights and checks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["f4e2m1 g16 e4m3", "int5 g32 e8m0", "uint3 g64 f16 zeros:f16 x:bf16", "nf3 channel f32 x:bf16"]
)
def test_random_weights_mean_what_kernels_compute(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from lowlp.benchmarks.checking import OUR_TOLERANCE, reference, relative_error, tolerance
    from lowlp.benchmarks.random_weights import random_activations, random_weights
    from lowlp.kernels.linear.operand_list import product_of
    from lowlp.ops.linear_kernels import cpu_kernel

    one, shape, device = kind(name), Shape(48, 256), torch.device("cpu")
    index = PreparedKernels(tmp_path, "sm_90a", "", 132)
    spec = dataclasses.replace(preparing.add_kind(index, one, [shape]), n=shape.n, k=shape.k)
    index.save()
    index = PreparedKernels.load_index(tmp_path)
    assert index.kinds == {name: one}
    weights = random_weights(index.weights[name], index.sample(name), shape, device)
    x = random_activations(3, shape.k, device, one.activation)
    schedule = schedule_for(spec, 3)
    product = product_of(spec, schedule)
    y = np.empty((3, shape.n), np.float16 if one.activation == "f16" else ml_dtypes.bfloat16)
    taken = {operand.name for operand in product.of_source("weights")}
    operands = {key: array_of(array) for key, array in weights.operands.items() if key in taken}
    numbers = product.launch_numbers(3, shape.k, None, 5)
    cpu_kernel(spec, schedule)(**operands, **product.by_name({"x": array_of(x), "y": y, **numbers}))
    wanted = reference(x, weights.dequantized(index.weights[name]))
    assert relative_error(torch.from_numpy(y.astype(np.float32)), wanted) < tolerance(OUR_TOLERANCE, one.activation)


def array_of(value: Any) -> Any:
    """A tensor as the CPU target takes it."""
    if isinstance(value, float):
        return value
    if str(value.dtype) == "torch.bfloat16":
        return value.view(dtype=__import__("torch").int16).numpy().view(ml_dtypes.bfloat16)
    return value.numpy()


def test_columns_that_are_compared_leave_no_tile_out() -> None:
    torch = pytest.importorskip("torch")
    from lowlp.benchmarks.checking import relative_error, sampled_columns

    assert sampled_columns(512, 512, "cpu") is None
    columns = sampled_columns(1000, 100, "cpu")
    assert (columns // 10).tolist() == list(range(100))
    y = torch.ones(2, 1000)
    assert relative_error(y, y[:, columns], columns) == 0
    y[0, (set(range(1000)) - set(columns.tolist())).pop()] = float("nan")
    assert relative_error(y, y[:, columns], columns) == float("inf")


# --- the folder -------------------------------------------------------------------------------------------------------


def in_process(index: PreparedKernels, wanted: Any, *_: object, **__: object) -> Iterator[tuple[int, KernelEntry]]:
    """In place of the compiler, last job first."""
    yield from reversed([(number, job.entry) for number, job in enumerate(wanted)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(models_preparing, "compiled", in_process)
    return tmp_path / "problems"


CELLS = [
    Cell(KINDS["int4"], Shape(4096, 4096), 40, None, "a model"),
    Cell(kind("int4 g64 f32"), Shape(2048, 1024), 3, kind("int4 g128 f16"), "another"),
]


def test_problems_come_back_from_their_folder(folder: Path) -> None:
    steps = list(models_preparing.prepare(folder, CELLS, 7, Choice("sm_90a")))
    assert [done for done, total, _ in steps] == [1, 2, 3]
    found, index = PreparedProblems.load(folder), PreparedKernels.load_index(folder)
    assert (found.seed, found.with_measured) == (7, True)
    assert [(one.kind, one.m, one.twin) for one in found.problems] == [
        ("int4", 40, ""),
        ("int4 g64 f32", 3, "int4 g128 f16"),
    ]
    assert all(one.estimated_us and one.estimated_us > 3 for one in found.problems)
    names = [unit.kind for unit in session.units_of(found.problems[1], index, ["torch", "humming"])]
    assert names == ["int4 g64 f32", "f16", "int4 g128 f16"]
    assert index.entry("int4 g128 f16", Shape(2048, 1024), 3).schedule["stages"] >= 2
    with pytest.raises(LowlpValueError, match="has problems already; name another folder, or remove it"):
        next(models_preparing.prepare(folder, CELLS, 8, Choice("sm_90a")))


def test_candidates_differ_from_the_chosen_schedule(folder: Path) -> None:
    list(models_preparing.prepare(folder, CELLS[:1], 7, Choice("sm_90a", with_measured=False, candidates=9)))
    (problem,) = PreparedProblems.load(folder).problems
    assert problem.by == "estimate"
    chosen = PreparedKernels.load_index(folder).entry("int4", problem.shape, 40).schedule
    others = [one.entry.schedule for one in problem.candidates]
    assert len(others) == 9
    assert all(first != second for first, second in itertools.combinations([chosen, *others], 2))
    assert all(one.estimated_us >= problem.estimated_us for one in problem.candidates if problem.estimated_us)


def test_slabs_where_linear_takes_them(folder: Path) -> None:
    shape = Shape(5120, 5120)
    cells = [Cell(kind("nf8 g64 f16"), shape, m, None, "") for m in (512, 8192)]
    list(models_preparing.prepare(folder, cells, 7, Choice("sm_90a")))
    few, many = PreparedProblems.load(folder).problems
    index = PreparedKernels.load_index(folder)
    assert (few.by, index.entry("nf8 g64 f16", shape, 512).slabs) == ("estimate", ())
    entry = index.entry("nf8 g64 f16", shape, 8192)
    assert (many.by, entry.slabs, entry.problem) == ("slabs", ((0, 5120, 1600),), "")
    assert few.estimated_us and many.estimated_us and few.estimated_us < many.estimated_us
    (job,) = preparing._jobs(index, cells[1].kind, spec_of(cells[1]), [8192, 9000], "", False)
    assert (job.entry.rows, job.entry.slabs) == ((8192, 9000), entry.slabs)
    decodes = job.compile("sm_90a").description
    assert [parameter.name for parameter in decodes.parameters][-4:] == ["slab", "first", "rows", "blocks"]
    assert all(
        not job.entry.slabs for job in preparing._jobs(index, cells[1].kind, spec_of(cells[1]), [8192], "", True)
    )


@pytest.fixture
def measured_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured has for the first of `CELLS` what no estimate would choose."""
    schedule = {"columns": 64, "warpgroups": 2, "row_tiles": 1, "steps": 1, "stages": 2}
    entry = {"kind": "int4 g128 f16", "n": 4096, "k": 4096, "m": 64, "arch": "sm_90a", "schedule": schedule}
    measured = tmp_path / "mine.json"
    measured.write_text(json.dumps({"format": 1, "gpu": "a GPU", "entries": [entry]}))
    monkeypatch.setenv("LOWLP_TUNED", str(measured))
    monkeypatch.setattr(choosing, "_ABOUT", math.inf)


def test_measurements_may_be_left_out(folder: Path, measured_elsewhere: None) -> None:
    for with_measured, by in ((True, "measured"), (False, "estimate")):
        place = folder / by
        list(models_preparing.prepare(place, CELLS[:1], 7, Choice("sm_90a", with_measured=with_measured)))
        (problem,) = PreparedProblems.load(place).problems
        chosen = PreparedKernels.load_index(place).entry("int4", problem.shape, 40).schedule
        assert (problem.by, chosen["steps"] == 1) == (by, with_measured)


def test_a_kernel_may_be_saved_without_what_it_was_made_of(tmp_path: Path) -> None:
    shape = Shape(128, 256)
    index = PreparedKernels(tmp_path, "sm_90a", "", 132)
    spec = dataclasses.replace(preparing.add_kind(index, KINDS["int4"], [shape]), n=shape.n, k=shape.k)
    entry = KernelEntry("int4", shape.n, shape.k, (1,), "kernel.lowlp")
    job = preparing.Job(spec, schedule_for(spec, 1), entry)
    assert not preparing._compile(job, "sm_90a", str(tmp_path), True).problem
    kernel = KernelBinary.load(tmp_path / "kernel.lowlp")
    assert (set(kernel.cubins), kernel.ptx, kernel.ir) == ({"sm_90a"}, {}, {})


# --- a run ------------------------------------------------------------------------------------------------------------


def fake_worker(connection: Any, settings: Settings) -> None:
    """Measures nothing: ours takes 10 us, humming 9, torch 20; candidates take what their number says."""
    times = {"lowlp": 10.0, "humming": 9.0, "torch": 20.0}

    def open_unit(unit: Unit) -> Any:
        def measure(m: int) -> Row:
            if isinstance(unit, ranking.KernelsUnit):
                us = [8.0, 9.0, 7.0, None][m]
                return Row(unit.who, unit.kind, unit.shape.n, unit.shape.k, unit.m, us)
            return Row(unit.who, unit.kind, unit.shape.n, unit.shape.k, m, times[unit.who])

        return measure

    serve(connection, lambda: Facts(empty_us=3.5), open_unit, lambda: "")


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (session, ranking):
        monkeypatch.setattr(module, "check_machine", lambda: None)
        monkeypatch.setattr(module, "multiprocessors", lambda: 132)
        monkeypatch.setattr(module, "run_worker", fake_worker)
        monkeypatch.setattr(module, "calibrated_run", lambda worker, peers: RUN)
    monkeypatch.setattr(ranking_parts, "check_machine", lambda: None)
    monkeypatch.setattr("lowlp.benchmarks.peers.version", lambda name: "1.0")
    monkeypatch.setattr(session, "compile_ahead", lambda *_: ["compiled ahead"])


@pytest.mark.usefixtures("no_gpu")
def test_a_run_times_the_worst_again_in_turns(folder: Path) -> None:
    list(models_preparing.prepare(folder, CELLS, 7, Choice("sm_90a")))
    out = folder / "out.json"
    session.run(session.Plan(folder, ("torch", "humming")), out, lambda *_: None)
    found = ModelResults.load(out)
    first, second = judged(found)
    assert (first.plain, first.ratio, first.is_apart) == (pytest.approx(0.9), pytest.approx(0.9), False)
    assert (second.plain, second.over_twin, second.is_apart) == (2.0, 1.0, True)
    assert found.turns[0] == Turns(0, "humming", (10.0,) * 3, (9.0,) * 3)
    assert "compiled ahead" in found.run.notes


@pytest.mark.usefixtures("no_gpu")
def test_candidates_are_ranked(folder: Path, measured_elsewhere: None) -> None:
    list(models_preparing.prepare(folder, CELLS[:1], 7, Choice("sm_90a", candidates=2)))
    found = ranking.measure(folder, folder / "ranks.json", None, lambda *_: None)
    (one,) = found.problems
    assert one.problem.by_estimate == 1
    assert (one.us, one.rank(), one.timed) == ((8.0, 9.0, 7.0, None), 2, 2)
    assert one.again == {0: (8.0,) * 3, 1: (9.0,) * 3, 2: (7.0,) * 3}
    assert ranking.summary(found) == [
        "seed 7: 1 problems, 2 candidates each in the mean",
        "chosen by measurements and estimate: 1 problems have times",
        "  within 6% of the best: 0.0%",
        "  within 12% of the best: 0.0%",
        "  within 25% of the best: 100.0%",
        "  1.14x the best, place 2 of 3: int4 4096x4096 M=40",
        "chosen by estimate alone: 1 problems have times",
        "  within 6% of the best: 0.0%",
        "  within 12% of the best: 0.0%",
        "  within 25% of the best: 0.0%",
        "  1.29x the best, place 3 of 3: int4 4096x4096 M=40",
    ]


def measured_parts(folder: Path, *_: object) -> Ranking:
    """In place of the GPU."""
    prepared = PreparedProblems.load(folder)
    times = [ranking.Ranked(one, (8.0, 7.0), {0: (8.0,), 1: (7.0,)}, (1.0, 2.0), ({}, {})) for one in prepared.problems]
    return Ranking(prepared.seed, prepared.with_measured, dataclasses.replace(RUN, notes=[]), times)


@pytest.mark.usefixtures("no_gpu")
def test_a_ranking_goes_on_where_it_ended(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking_parts, "PART", 1)
    monkeypatch.setattr(ranking, "measure", measured_parts)
    out, choice, shown = tmp_path / "ranks.json", Choice("sm_90a", candidates=2), []
    first = ranking_parts.Plan(CELLS[:1], 7, choice, folder)
    assert [one.problem.m for one in ranking_parts.rank(first, out, lambda *_: None).problems] == [40]
    both = dataclasses.replace(first, cells=CELLS)
    found = ranking_parts.rank(both, out, lambda *what: shown.append(what))
    assert ([one.problem.m for one in found.problems], found.run.notes) == ([40, 3], [])
    assert ranking.summary(found) == ranking.summary(Ranking.load(out))
    assert shown == [(2, 2, "int4 g64 f32 2048x1024 M=3")] and not list(folder.iterdir())
    with pytest.raises(LowlpValueError, match="seed 7 on a GPU, chosen by measurements too; name another file"):
        ranking_parts.rank(dataclasses.replace(both, seed=8), out, lambda *_: None)
    late = dataclasses.replace(both, deadline_s=0)
    with pytest.raises(LowlpValueError, match="no problem was timed: all came after --deadline"):
        ranking_parts.rank(late, tmp_path / "none.json", lambda *_: None)


def test_candidates_of_a_problem_do_not_depend_on_the_others(folder: Path) -> None:
    choice = Choice("sm_90a", candidates=3)
    for name, cells in (("all", CELLS), ("last", CELLS[1:])):
        list(models_preparing.prepare(folder / name, cells, 7, choice))
    everything, last = (PreparedProblems.load(folder / name).problems[-1] for name in ("all", "last"))
    assert [one.entry.schedule for one in everything.candidates] == [one.entry.schedule for one in last.candidates]


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_the_seed_and_what_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = []
    for name in ("one", "two"):
        assert main(["bench", "--set", "models", "--cells", "2", "--prepare", str(folder / name)]) == 0
        said = capsys.readouterr().out.splitlines()
        assert said[1].startswith("2 problems, ")
        seeds.append(int(said[0].removeprefix("seed ")))
    assert seeds[0] != seeds[1]
    again = folder / "again"
    assert main(["bench", "--set", "models", "--cells", "2", "--seed", str(seeds[0]), "--prepare", str(again)]) == 0
    assert PreparedProblems.load(again) == PreparedProblems.load(folder / "one")
