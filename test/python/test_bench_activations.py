"""`lowlp bench --activations`: its numbers, kernels, targets and tables, without a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import lowlp
from lowlp.benchmarks.activations import preparing, report, targets
from lowlp.benchmarks.activations.cases import HUMMING, INT_MM, KINDS, PATHS, SCALED_MM, who
from lowlp.benchmarks.activations.session import Plan, units_of
from lowlp.benchmarks.cases import Shape
from lowlp.benchmarks.prepared import PreparedKernels
from lowlp.benchmarks.results import Results, Row, Run
from lowlp.benchmarks.timing import Effort
from lowlp.benchmarks.worker import Settings
from lowlp.cli import main
from lowlp.numeric.bit_planes import planes_of

SHAPE = Shape(64, 256)
ROWS = 5

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("activations")
    kinds = [KINDS[name] for name in ("w1a1", "w1a2", "w4a8-levels", "w4a8-fp8")]
    steps = list(preparing.prepare(path, "sm_90a", kinds, [SHAPE], [ROWS], PATHS, jobs=2, gpu="NVIDIA H200"))
    assert steps[-1][0] == steps[-1][1] == len({entry.file for entry in PreparedKernels.load_index(path).kernels})
    return path


def drawn_for(folder, name):
    from lowlp.benchmarks.activations.drawing import draw

    index, kind = PreparedKernels.load_index(folder), KINDS[name]
    return index, draw(kind, SHAPE, ROWS, index.weights[kind.weights.kind_for(kind.paths[0]).name].values, "cpu")


def given(drawn):
    """The same numbers as a user has them: x and weights."""
    kind = drawn.kind
    codes, scales = drawn.x_codes, drawn.x_scales[:, None]
    xq = lowlp.QuantizedActivations(codes, dtype=kind.activation, scales=scales)
    if kind.weights.has_levels:
        integers = (drawn.scale_numbers / drawn.super_scales.double()).to(torch.uint8)
        parts = {"super_scales": drawn.super_scales.numpy(), "scale_dtype": kind.weights.scale}
    else:
        integers, parts = drawn.scales, {}
    parts["group_size"] = SHAPE.k // drawn.scale_numbers.shape[1]
    return xq, lambda family: lowlp.QuantizedTensor(
        drawn.codes.numpy(), dtype=kind.weights.dtype, scales=integers.numpy(), activation=family, **parts
    )


@pytest.mark.parametrize("name", ["w1a1", "w1a2", "w4a8-levels", "w4a8-fp8"])
def test_what_is_wanted_is_what_linear_gives(folder, name):
    _, drawn = drawn_for(folder, name)
    xq, weights = given(drawn)
    wanted = drawn.wanted(torch.arange(SHAPE.n), halves=False).numpy()
    for path in drawn.kind.paths[:-1]:
        family = drawn.kind.weights.kind_for(path).activation
        y = np.asarray(lowlp.linear(xq, weights(family), path=path, out_dtype="f16"), np.float64)
        if drawn.is_one_sum:
            assert (y == wanted).all()
        else:
            assert np.linalg.norm(y - wanted) <= 2e-3 * np.linalg.norm(wanted)
    x, w = drawn.x_halves.numpy(), weights("f16")
    y = np.asarray(lowlp.linear(x, w), np.float64)
    wanted = drawn.wanted(torch.arange(SHAPE.n), halves=True).numpy()
    assert np.linalg.norm(y - wanted) <= 2e-3 * np.linalg.norm(wanted)


def test_kernels_are_given_planes_and_sums(folder):
    from lowlp.benchmarks.activations.measuring import PathProduct

    for name in ("w1a1", "w1a2"):
        index, drawn = drawn_for(folder, name)
        _, weights = given(drawn)
        product = PathProduct(index, drawn.kind, "planes", drawn, 16)
        kernel = index.load(index.entry(drawn.kind.kernel_kind("planes"), SHAPE, ROWS))
        found = product.arguments(kernel, ROWS, torch.empty(ROWS, SHAPE.n, dtype=torch.float16))
        assert list(found) == [parameter.name for parameter in kernel.description.parameters]
        planes = planes_of(np.asarray(drawn.x_codes) + (0 if name == "w1a1" else 2), drawn.kind.bits)
        assert (found["planes"].numpy().reshape(ROWS, drawn.kind.bits, -1) == planes).all()
        assert (found["weights"].numpy() == weights("b1").packed_for("b1")).all()
        assert (found["w_sums"].numpy() == weights("b1").code_sums.sum(1)).all()
        assert (found["x_sums"].numpy() == drawn.x_codes.numpy().astype(int).sum(1)).all()


def test_every_kernel_gets_what_it_takes(folder):
    from lowlp.benchmarks.activations.measuring import PathProduct

    for name in ("w1a1", "w4a8-levels", "w4a8-fp8"):
        index, drawn = drawn_for(folder, name)
        for path in drawn.kind.paths:
            product = PathProduct(index, drawn.kind, path, drawn, 16)
            kernel = index.load(index.entry(drawn.kind.kernel_kind(path), SHAPE, ROWS))
            found = product.arguments(kernel, ROWS, torch.empty(ROWS, SHAPE.n, dtype=torch.float16))
            assert set(found) == {parameter.name for parameter in kernel.description.parameters}


def test_units_measure_each_rival_once_and_before_ours(tmp_path):
    kinds, peers = (KINDS["w1a1"], KINDS["w1a2"], KINDS["w8a8"]), (INT_MM, SCALED_MM, *HUMMING)
    plan = Plan(kinds, (SHAPE,), (1,), PATHS, peers, Settings(tmp_path, Effort()), 1.0)
    found = [(unit.who, unit.kind) for unit in units_of(plan)]
    assert len(set(found)) == len(found)
    assert found[:3] == [(HUMMING[0], "int1"), (HUMMING[1], "int1"), (SCALED_MM, "f8e4m3")]
    assert found[3:6] == [(who(path), "w1a1") for path in ("planes", "s8", "f16")]
    assert (INT_MM, "int8") in found and (SCALED_MM, "int8") not in found


def results_of(times):
    run = Run("2026-11-23", "NVIDIA H200", "580", {}, 3.5, 4.49e12)
    shape = Shape(57344, 8192)
    return Results([run], [Row(name, kind, shape.n, shape.k, m, us) for (name, kind, m), us in times.items()])


def test_a_cell_is_held_to_its_factor_and_its_floor():
    results = results_of({(who("planes"), "w1a1", 1024): 200.0, (HUMMING[1], "int1", 1024): 700.0})
    (cell,) = targets.cells(results)
    assert cell.required_us("planes") == 175.0 and cell.over_required("planes") == pytest.approx(200 / 175)
    assert "**0.88 (3.50 of 4.0) missed**" in report.required_table(results)
    few = results_of({(who("planes"), "w1a1", 1): 18.0, (HUMMING[1], "int1", 1): 30.0})
    (cell,) = targets.cells(few)
    bytes_us = (57344 * 8192 / 8 + 57344 * 2 + 8192 / 8 + 2 * 57344) / 4.49e12 * 1e6
    assert cell.required_us("planes") == pytest.approx(3.5 + 1.08 * bytes_us)


def test_paths_that_are_chosen_badly_are_told():
    times = {(who("planes"), "w2a2", 4096): 1000.0, (who("s8"), "w2a2", 4096): 900.0, ("torch", "f16", 4096): 3100.0}
    results = results_of(times)
    assert report.badly_chosen(results) == ["W2A2 57344x8192 M = 4096: planes 1000, s8 900"]
    assert report.halves_lines(results) == ["W2A2 57344x8192 M = 4096: 3.44 times as fast as torch f16 (3.0 asked)"]
    assert "badly" not in report.text_of(results) and "more than 5 %" in report.text_of(results)


def test_the_page_shows_them_with_a_plot(tmp_path):
    from lowlp.benchmarks.pages.writing import write_report

    times = {(who("planes"), "w1a1", 4096): 500.0, (who("s8"), "w1a1", 4096): 2200.0, ("torch", "f16", 4096): 5600.0}
    data = tmp_path / "r.json"
    results_of({}).save(data)
    results_of(times).save(tmp_path / "r.activations-1.json")
    written = write_report(Results.load(data), data, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert tmp_path / "r.activations-1-tops.svg" in written and "(r.activations-1-tops.svg)" in page
    # 2 x 4096 x 57344 x 8192 operations in 500 us.
    assert ">7697.00<" in (tmp_path / "r.activations-1-tops.svg").read_text()
    details = (tmp_path / "measurements" / "quantised-activations.md").read_text()
    assert "## Quantised activations" in page and "| W1A1 | 57344x8192 | 4096 | **500** | 2200 |" in details


def test_commands(capsys):
    assert main(["bench", "--activations", "--codebooks"]) == 1
    assert "--codebooks: is not with --activations" in capsys.readouterr().err
    assert main(["bench", "--activations", "--types", "w9a9", "--prepare", "x"]) == 1
    assert "--types: must be among w1a1" in capsys.readouterr().err
