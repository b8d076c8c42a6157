"""`lowlp bench --codebooks` without a GPU: kernels and operands in a folder, random weights, targets, the table."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.benchmarks import preparing
from lowlp.benchmarks.ablation import ablation_table
from lowlp.benchmarks.book_form import BookForm, book_form
from lowlp.benchmarks.book_targets import ABSENT, MET, MISSED, TARGETS, book_cells, book_table, scaled_us, skewed_table
from lowlp.benchmarks.cases import (
    ALL_KINDS,
    BOOK_KINDS,
    BOOK_ROWS,
    BOOK_SHAPES,
    FORMAT_KINDS,
    KINDS,
    SKEWED_KINDS,
    VERSION_KINDS,
    VERSIONS,
    Shape,
    version_name,
)
from lowlp.benchmarks.floor import TARGET_GPU, weight_bytes
from lowlp.benchmarks.pages.measured import Measured
from lowlp.benchmarks.pages.writing import pages
from lowlp.benchmarks.peers import NAMES, supports
from lowlp.benchmarks.plots import ablation_picture, plots
from lowlp.benchmarks.prepared import PreparedKernels
from lowlp.benchmarks.requirements import LARGEST
from lowlp.benchmarks.results import Results, Row, Run
from lowlp.cli import main
from lowlp.drawing.svg import to_svg
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.codebooks import versions as codebook_versions

RUN = Run("2026-01-01T00:00:00+00:00", TARGET_GPU, "1.0", {"lowlp": "0"}, empty_us=3.5, read_bytes_per_s=4.49e12)
SHAPE = Shape(320, 512)
ENTRY_TYPES = {"f16": np.float16, "int8": np.int8, "f8e4m3": ml_dtypes.float8_e4m3fn}


def row(who: str, kind: str, shape: Shape, m: int, us: float | None) -> Row:
    return Row(who, kind, shape.n, shape.k, m, us)


@pytest.mark.parametrize("name", [name for name, kind in BOOK_KINDS.items() if kind.bits < 16] + ["e8p"])
def test_operands_of_other_weights_are_made_from_data_alone(name: str, tmp_path: Path) -> None:
    """On the CPU as on a GPU: what kernels take is what the compiler's own functions make of the same weights."""
    torch = pytest.importorskip("torch")
    from lowlp.benchmarks.random_books import random_books
    from lowlp.kernels.linear.operand_list import TAKES_ALL
    from lowlp.kernels.linear.operands import host_operands

    kind = BOOK_KINDS[name]
    index = PreparedKernels(tmp_path, "sm_90a", "1", 132)
    preparing.add_kind(index, kind, [SHAPE])
    index.save()
    prepared = PreparedKernels.load_index(tmp_path)
    assert prepared.kinds[name] == kind
    saved, sample = prepared.weights_in(name, SHAPE)
    assert saved.spread == ("exchange" if name == "aqlm-3" else "")
    drawn = random_books(saved, sample, SHAPE, torch.device("cpu"))
    form, vectors = drawn.form, kind.codec.vectors
    assert vectors is not None
    codes = drawn.codes.numpy().astype(vectors.code_dtype)
    books: dict[str, Any] = {"codebooks": str(vectors)}
    if form.entries:
        factors = drawn.operands.get("book_scales")
        entries = drawn.values.numpy().reshape(form.shape_in(SHAPE))
        if factors is not None:
            books["book_scales"] = factors.numpy()
            entries = entries / books["book_scales"][..., None, None]
            entries = np.rint(entries) if form.entries == "int8" else entries
        books["codebooks"] = entries.astype(ENTRY_TYPES[form.entries])
        books["book_per"] = vectors.book_per if vectors.block else None
    qw = lowlp.QuantizedTensor(codes, scales=drawn.scales.numpy(), **books)
    qw = qw.spread() if saved.spread else qw
    np.testing.assert_allclose(drawn.dequantized(saved).numpy(), qw.dequantize(), rtol=1e-5, atol=1e-6)
    some = torch.tensor([3, 299])
    assert (drawn.dequantized(saved, some) == drawn.dequantized(saved)[some]).all()
    for operand, expected in host_operands(qw, "f16", schedule=TAKES_ALL).items():
        found = drawn.operands[operand]
        assert (
            np.asarray(found if isinstance(found, float) else found.numpy()).tobytes() == np.asarray(expected).tobytes()
        )


def test_kernels_have_the_blocks_of_their_shape(tmp_path: Path) -> None:
    """The sample has one block along K; weights of other shapes have several."""
    kind = BOOK_KINDS["gptvq-2"]
    spec = preparing.add_kind(PreparedKernels(tmp_path, "sm_90a", "1", 132), kind, [])
    assert spec.shape_of_books == (1, 1, 1, 256, 4)
    assert preparing.spec_in(spec, kind, Shape(512, 1024)).shape_of_books == (2, 4, 1, 256, 4)


def test_kernels_are_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bench", "--codebooks", "--types", "vec2", "--shapes", "128x256", "--m", "1", "--jobs", "1"]
    assert main([*command, "--prepare", str(tmp_path)]) == 0
    assert "1 kernels for sm_90a" in capsys.readouterr().out
    prepared = PreparedKernels.load_index(tmp_path)
    product = prepared.load(prepared.entry("vec2", Shape(128, 256), 1)).description.require_product()
    taken = {operand.name for operand in product.of_source("weights")}
    made = {operand.name for operand in prepared.weights["vec2"].operands}
    assert {"weights", "scales", "codebooks"} <= taken <= made


def test_bytes_of_weights() -> None:
    assert weight_bytes(BOOK_KINDS["aqlm-2x8"], LARGEST) == 57344 * 8192 // 4 + 57344 * 2 + 2 * 256 * 8 * 2
    assert weight_bytes(BOOK_KINDS["gptvq-2"], Shape(512, 300)) == 512 * 75 + 512 * 2 + 4 * 256 * 4 * 2
    assert weight_bytes(BOOK_KINDS["aqlm-3-int8"], Shape(64, 64)) == 64 * 64 * 3 // 8 + 128 + 2 * 4096 * 8
    assert weight_bytes(BOOK_KINDS["quip-4"], Shape(64, 64)) == 64 * 64 // 2 + 128
    assert book_form("vec4:1x8:f16:256x256") == BookForm(4, 1, 8, "f16", 256, 256)
    with pytest.raises(
        LowlpValueError, match="the bench draws books of f16, int8 and f8e4m3, and e8p, not 'vec8:2x8:bf16'"
    ):
        book_form("vec8:2x8:bf16")


def test_targets_are_of_all_kinds_and_scaled_to_other_shapes() -> None:
    assert list(TARGETS) == list(BOOK_KINDS)
    assert {m for target in TARGETS.values() for m in target.must} <= set(BOOK_ROWS)
    assert LARGEST in BOOK_SHAPES and scaled_us(88, LARGEST) == 88
    assert scaled_us(88, Shape(8192, 8192)) == pytest.approx((88 - 15.7) / 7 + 3.7 + 6)
    assert scaled_us(88, Shape(8192, 28672)) == pytest.approx((88 - 15.7) / 2 + 3.7 + 6)


def test_cells_and_their_table() -> None:
    rows = [
        row("lowlp", "aqlm-2x8", LARGEST, 1, 71.25),
        row("aqlm", "aqlm-2x8", LARGEST, 1, 180.0),
        row("lowlp", "aqlm-2x8", LARGEST, 8, 90.0),
        row("lowlp", "aqlm-2x8", LARGEST, 16, None),
        row("lowlp", "aqlm-2x8", LARGEST, 1024, 1380.0),
        row("lowlp", "int4", LARGEST, 1024, 1320.0),
        row("lowlp", "vec2", LARGEST, 1024, 1.0),
    ]
    results = Results([RUN], rows)
    found = {(cell.kind, cell.m): cell for cell in book_cells(results)}
    assert [found["aqlm-2x8", m].status for m in (1, 8, 16, 1024)] == [MET, MISSED, ABSENT, MET]
    assert found["aqlm-2x8", 1024].must_us == pytest.approx(1386)
    assert found["vec2", 1024].status == ""
    table = book_table(results)
    assert (
        "| AQLM 2x8 | 57344x8192 | 71.2 (88, 42; AQLM 180) | **90 missed** (88, 72) | not measured (100, 80) |" in table
    )
    assert "| 1380 (1386) |" in table and book_table(Results([RUN], rows[5:6])) == ""


def test_microseconds_are_asked_of_an_h200_alone() -> None:
    rows = [row("lowlp", "aqlm-2x8", LARGEST, m, 1380.0) for m in (1, 1024)] + [
        row("lowlp", "int4", LARGEST, 1024, 9.0)
    ]
    found = {cell.m: cell for cell in book_cells(Results([dataclasses.replace(RUN, gpu="another")], rows))}
    assert (found[1].must_us, found[1].may_us, found[1].status) == (None, None, "")
    assert found[1024].status == MISSED


def test_skewed_codes(tmp_path: Path) -> None:
    """Of both kinds the same codes, of one in the order of their frequencies; times are held to 0.6 and 0.85."""
    torch = pytest.importorskip("torch")
    from lowlp.benchmarks.random_books import random_books

    index = PreparedKernels(tmp_path, "sm_90a", "1", 132)
    drawn = []
    for name, kind in SKEWED_KINDS.items():
        preparing.add_kind(index, kind, [SHAPE])
        index.save()
        prepared = PreparedKernels.load_index(tmp_path)
        drawn.append(random_books(prepared.weights[name], prepared.sample(name), SHAPE, torch.device("cpu")).codes)
    assert (
        torch.equal(drawn[0], (drawn[1] * 40503 + (1 << 15)) % (1 << 16))
        and 0.02 < (drawn[1] == 0).float().mean() < 0.2
        and drawn[1].max() > 30000
    )
    times = [("aqlm-1x16", 370.0), ("aqlm-1x16-zipf", 200.0), ("aqlm-1x16-zipf-frequent", 190.0)]
    table = skewed_table(Results([RUN], [row("lowlp", kind, LARGEST, 8, us) for kind, us in times]))
    assert "| 57344x8192 | 8 | 370 | 200 (0.54 of 0.6) | **190 (0.95 of 0.85) missed** |" in table
    assert skewed_table(Results([RUN], [row("lowlp", "aqlm-1x16", LARGEST, 8, 370.0)])) == ""


def test_versions_of_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their names are those of schedules, and each has kernels of its own."""
    assert VERSIONS == codebook_versions.VERSIONS
    command = ["bench", "--codebooks", "--ablation", "--types", "gptvq-2", "--shapes", "256x512", "--m", "1"]
    assert main([*command, "--jobs", "1", "--prepare", str(tmp_path)]) == 0
    assert "7 kernels for sm_90a" in capsys.readouterr().out
    prepared = PreparedKernels.load_index(tmp_path)
    found = [prepared.entry(version_name("gptvq-2", version), Shape(256, 512), 1).schedule for version in VERSIONS]
    assert [schedule["codebooks"] for schedule in found] == list(VERSIONS)
    assert [schedule["splits"] > 1 for schedule in found] == [False] * 4 + [True] * 2
    assert not any(supports(name, VERSION_KINDS["aqlm-3-o4"]) for name in NAMES)


def test_the_table_and_the_picture_of_versions() -> None:
    times = {"gc": 200.0, "sc": 150.0, "o1": 150.0, "o2": None, "o3": 120.0, "o4": 90.0, "": 60.0}
    rows = [row("lowlp", version_name("aqlm-3", name), LARGEST, 1, us) for name, us in times.items()]
    results = Results([RUN], [*rows, row("lowlp", "gptvq-2", LARGEST, 1, 50.0)])
    table = ablation_table(results)
    assert "| AQLM-3 | 57344x8192 | 1 | 200 (1.00) | 150 (0.75) | 150 (0.75) | no time | 120 (0.60) | 90" in table
    assert "| 90 (0.45) | 60 (0.30) |" in table
    picture = ablation_picture(results)
    assert picture is not None and plots(results)["codebook-versions"] is not None
    drawn = to_svg(picture)
    assert "AQLM-3, M = 1" in drawn and ">0.45<" in drawn and ">0.30<" in drawn and "GPTVQ" not in drawn
    details = pages(Measured(Path("r.json"), results), Path("page.md"))[Path("measurements/codebooks.md")]
    assert "## Versions of the paper" in details and "| 90 (0.45) |" in details
    without = Results([RUN], [row("lowlp", "gptvq-2", LARGEST, 1, 50.0)])
    assert ablation_table(without) == "" and ablation_picture(without) is None


def test_which_peers_have_codebooks() -> None:
    found = {name: [kind for kind in BOOK_KINDS if supports(name, BOOK_KINDS[kind])] for name in NAMES}
    assert {name: kinds for name, kinds in found.items() if kinds} == {
        "aqlm": ["aqlm-2x8", "aqlm-1x8", "aqlm-3", "aqlm-1x16"]
    }
    assert not any(supports("aqlm", kind) for kind in KINDS.values())
    assert {name for name in NAMES for kind in FORMAT_KINDS.values() if supports(name, kind)} == {"humming"}
    assert list(ALL_KINDS) == [*KINDS, *FORMAT_KINDS, *BOOK_KINDS, *SKEWED_KINDS, *VERSION_KINDS]


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--codebooks", "--types", "int8", "--prepare", "x"]) == 1
    assert "--types: must be among int4, aqlm-2x8" in capsys.readouterr().err
    assert main(["bench", "--ablation"]) == 1
    assert "--ablation: is only with --codebooks" in capsys.readouterr().err
    assert main(["bench", "--set", "models", "--codebooks"]) == 1
    assert "--codebooks: is not with --set models" in capsys.readouterr().err
