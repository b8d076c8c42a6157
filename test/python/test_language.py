"""Kernels of the DSL as a whole: the paper's programs, the `Kernel` object, parameters, grids, locations."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path

import pytest
from lowlp._mlir import ir
from lowlp._mlir.passmanager import PassManager

import lowlp
from lowlp import language as ll

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = lowlp.local(2, 1).spatial(8, 4).local(1, 2)


def canonical(text: str) -> str:
    """The program after canonicalisation, constants in one order."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        PassManager.parse("builtin.module(canonicalize,cse)").run(module.operation)
        lines = str(module).splitlines()
        constants = sorted(line for line in lines if " arith.constant " in line)
        rest = [line for line in lines if " arith.constant " not in line]
    return "\n".join(constants + rest)


@pytest.mark.parametrize(("name", "make"), [("fig2", "make_matmul"), ("transform_b", "make_transform_b")])
def test_figure_is_the_program_written_by_hand(name: str, make: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sizes = (1024,) * (3 if name == "fig2" else 2)
    kernel = getattr(importlib.import_module(name), make)(*sizes, "int6")
    assert canonical(kernel.mlir) == canonical((EXAMPLES / f"{name}.mlir").read_text())


@lowlp.kernel(grid=lambda n, m: (ll.ceildiv(m, 16), n // 8), num_threads=32)
def scale(
    x: ll.pointer("f16", align=16), y: ll.pointer("f32"), m: ll.i32, factor: ll.f32, n: ll.integer(64, divisible_by=8)
):
    bi, bj = ll.block_indices()
    x_view = ll.view_global(x, shape=[m, n])
    y_view = ll.view_global(y, shape=[m, n], strides=[n, 1])
    tile = ll.load_global(x_view, offsets=[bi * 16, bj * 8], layout=ROWS)
    ll.store_global(ll.cast(tile, "f32") * factor, y_view, offsets=[bi * 16, bj * 8], in_bounds=True)


def test_kernel_names_its_parameters() -> None:
    assert scale.name == "scale"
    assert [(p.name, p.kind, p.dtype, p.align, p.divisible_by) for p in scale.parameters] == [
        ("x", "pointer", "f16", 16, None),
        ("y", "pointer", "f32", None, None),
        ("m", "integer", "i32", None, None),
        ("factor", "float", "f32", None, None),
        ("n", "integer", "i64", None, 8),
    ]
    assert '%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "x"}' in scale.mlir
    assert '%n: i64 {lowlp.divisible_by = 8 : i64, lowlp.name = "n"}' in scale.mlir


def test_grid_maps_all_integer_parameters_in_order() -> None:
    assert "affine_map<(d0, d1) -> (d0 ceildiv 16, d1 floordiv 8)>" in scale.mlir


def test_integer_parameter_is_cast_once_at_entry() -> None:
    assert scale.mlir.count("arith.index_cast %m : i32 to index") == 1
    lines = [line.strip() for line in scale.mlir.splitlines()]
    assert lines.index("%0 = arith.index_cast %m : i32 to index") < next(
        i for i, line in enumerate(lines) if "block_indices" in line
    )


def test_ops_carry_the_line_of_the_kernel() -> None:
    text = str(scale.module().operation.get_asm(enable_debug_info=True, use_local_scope=True))
    source = Path(__file__).read_text().splitlines()
    for op in ("lowlp.load_global", "lowlp.store_global", "lowlp.view_global", "lowlp.mul"):
        (line, *_) = [line for line in text.splitlines() if f"{op} " in line]
        number = int(line.rsplit('.py":', 1)[1].split(":")[0])
        word = {"lowlp.mul": "* factor"}.get(op, op.replace("lowlp.", "ll."))
        assert word in source[number - 1]


def test_trace_key_depends_on_the_program_and_not_on_its_place() -> None:
    def make(number: float) -> ll.Kernel:
        @lowlp.kernel(grid=(1,), num_threads=32)
        def fill(y: ll.pointer("f32")):
            ll.store_global(ll.full(number, "f32", layout=ROWS), ll.view_global(y, shape=[16, 8]), offsets=[0, 0])

        return fill

    @lowlp.kernel(grid=(1,), num_threads=32)
    def fill(y: ll.pointer("f32")):
        tile = ll.full(1.0, "f32", layout=ROWS)
        ll.store_global(tile, ll.view_global(y, shape=[16, 8]), offsets=[0, 0])

    assert make(2.0).trace_key() != make(1.0).trace_key()
    one = fill.trace_key()
    assert one == fill.trace_key()
    assert len(one) == 64


def test_closures_and_globals_are_seen_as_they_are_when_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    extent = 3

    @lowlp.kernel(grid=(1,), num_threads=32)
    def kernel(y: ll.pointer("f32")):
        for _ in ll.range(extent):
            ll.store_global(ll.full(0.0, "f32", layout=ROWS), ll.view_global(y, shape=[16, 8]), offsets=[0, 0])

    assert "arith.constant 3 : index" in kernel.mlir
    extent = 5
    assert "arith.constant 5 : index" in kernel.mlir
    monkeypatch.setitem(globals(), "ROWS", lowlp.local(16, 1).spatial(1, 64))
    with pytest.raises(ll.KernelError):
        scale.module()


def test_every_trace_has_a_module_and_context_of_its_own() -> None:
    first, second = scale.module(), scale.module()
    assert first.context is not second.context
    assert str(first) == str(second)


def test_kernels_are_traced_in_several_threads_at_once() -> None:
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(scale.mlir)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [scale.mlir] * 8


def test_make_kernel_chooses_parameters() -> None:
    def body(x, bias, y):  # type: ignore[no-untyped-def]
        tile = ll.load_global(ll.view_global(x, shape=[16, 8]), offsets=[0, 0], layout=ROWS)
        if bias is not None:
            tile = tile + ll.load_global(
                ll.view_global(bias, shape=[16, 8], strides=[0, 1]), offsets=[0, 0], layout=ROWS
            )
        ll.store_global(tile, ll.view_global(y, shape=[16, 8]), offsets=[0, 0])

    pointer = ll.pointer("bf16")
    plain = ll.make_kernel(body, name="plain", parameters={"x": pointer, "y": pointer}, grid=(1,), num_threads=32)
    biased = ll.make_kernel(
        body, name="biased", parameters={"x": pointer, "bias": pointer, "y": pointer}, grid=2, num_threads=32
    )
    assert "lowlp.add" not in plain.mlir
    assert "lowlp.add" in biased.mlir
    assert [p.name for p in plain.parameters] == ["x", "y"]


def test_call_hands_the_kernel_to_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(
        "lowlp.compiler.launching.launch", lambda kernel, args, **options: calls.append((kernel, args, options))
    )
    scale(1, 2, stream=3)
    assert calls == [(scale, (1, 2), {"stream": 3})]


@pytest.mark.parametrize("dtype", ["int1", "uint3", "int6", "uint8", "f4e2m1", "f5e2m2", "f6e3m2", "f8e4m3", "f7e6m0"])
def test_every_code_type_is_loaded_and_cast(dtype: str) -> None:
    @lowlp.kernel(grid=(1,), num_threads=32)
    def kernel(q: ll.pointer(dtype), y: ll.pointer("bf16")):
        codes = ll.load_global(ll.view_global(q, shape=[16, 8]), offsets=[0, 0], layout=ROWS)
        ll.store_global(ll.cast(codes, "bf16"), ll.view_global(y, shape=[16, 8]), offsets=[0, 0])

    assert f"x8x{lowlp.dtype(dtype).mlir}, " in kernel.mlir.replace("16x8x", "x8x")
