"""Matrix instructions: mma of every type, ldmatrix and stmatrix of every kind, and the f16 product of the examples."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import lowlp
from cases.case import EXAMPLES, Case
from lowlp.compiler.targets import target

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import small_type_products as products

# Sums of 8-bit floats: tensor cores keep fewer bits of them than f32 has.
PAIRS: dict[tuple[str, str], float] = {
    ("f16", "f16"): 1e-5, ("bf16", "bf16"): 1e-5,
    ("int8", "int8"): 0.0, ("int8", "uint8"): 0.0, ("uint8", "int8"): 0.0, ("uint8", "uint8"): 0.0,
    ("f8e4m3", "f8e4m3"): 1e-3, ("f8e4m3", "f8e5m2"): 1e-3, ("f8e5m2", "f8e4m3"): 1e-3, ("f8e5m2", "f8e5m2"): 1e-3,
    ("uint1", "uint1"): 0.0,
}  # fmt: skip
SHARED = ("local(32, 32)", "column_local(32, 32)", "swizzle(local(32, 4), dim=1).local(1, 8)")
MATMULS = [(130, 136, 72), (33, 35, 70), (1000, 1000, 1000), (2048, 2048, 2048), (4096, 4096, 4096)]


def product_case(a_type: str, b_type: str, tolerance: float, shape: tuple[int, int, int], arch: str) -> Case:
    m, n, k = shape
    a, b = products.random_matrix((m, k), a_type, 1), products.random_matrix((n, k), b_type, 2)
    wanted = products.exact_product(a, b, a_type)
    arguments: dict[str, Any] = {
        "a": products.as_buffer(a, a_type),
        "b": products.as_buffer(b, b_type),
        "c": np.zeros((m, n), np.int32 if wanted.dtype == np.int32 else np.float32),
    }
    kernel = lowlp.compile(products.make_product(m, n, k, a_type, b_type), arch)
    name = f"product_{a_type}_{b_type}_{m}x{n}x{k}"
    return Case(name, kernel, arguments, "c", wanted, tolerance, {"shape": [m, n, k]})


def move_text(layout: str, shared: str) -> str:
    """x -> registers -> shared memory -> registers -> y, a tile of 32 x 32 f16."""
    tile, memory = f"!lowlp.tile<32x32xf16, {layout}>", f"!lowlp.shared<32x32xf16, {shared}>"
    rows = "!lowlp.tile<32x32xf16, spatial(32, 1).local(1, 32)>"
    view = "!lowlp.global<32x32xf16>"
    return f"""
    lowlp.kernel @move(%x: !lowlp.ptr<f16> {{lowlp.name = "x", lowlp.align = 16 : i64}},
                       %y: !lowlp.ptr<f16> {{lowlp.name = "y", lowlp.align = 16 : i64}})
        attributes {{grid = affine_map<() -> (1)>, num_threads = 32 : i64}} {{
      %c0 = arith.constant 0 : index
      %s = lowlp.alloc_shared : {memory}
      %t = lowlp.alloc_shared : {memory}
      %from = lowlp.view_global %x shape [32, 32] : !lowlp.ptr<f16> -> {view}
      %to = lowlp.view_global %y shape [32, 32] : !lowlp.ptr<f16> -> {view}
      %a = lowlp.load_global %from[%c0, %c0] : {view} -> {rows}
      lowlp.store_shared %a, %s[%c0, %c0] : {rows}, {memory}
      lowlp.synchronize
      %b = lowlp.load_shared %s[%c0, %c0] : {memory} -> {tile}
      lowlp.synchronize
      lowlp.store_shared %b, %t[%c0, %c0] : {tile}, {memory}
      lowlp.synchronize
      %c = lowlp.load_shared %t[%c0, %c0] : {memory} -> {rows}
      lowlp.store_global %c, %to[%c0, %c0] : {rows}, {view}
      lowlp.return
    }}"""


def move_cases(arch: str) -> Iterator[Case]:
    """Registers of 32 x 32 numbers through ldmatrix and stmatrix, plain and transposed."""
    x = np.arange(32 * 32, dtype=np.float16).reshape(32, 32)
    for unit, kind in (("spatial(8, 4).local(1, 2)", "rows"), ("column_spatial(4, 8).local(2, 1)", "columns")):
        for order in ("local(4, 4)", "column_local(4, 4)"):
            for number, shared in enumerate(SHARED):
                kernel = lowlp.compile(move_text(f"{order}.{unit}", shared), arch)
                arguments = {"x": x, "y": np.zeros_like(x)}
                name = f"matrices_{kind}_{order.split('(')[0]}_{number}"
                yield Case(name, kernel, arguments, "y", x.astype(np.float64), 0.0)


def narrow_cases(arch: str) -> Iterator[Case]:
    """One and two matrices at once: tiles of 8 x 8 and 24 x 16 in a corner of the tile of 32 x 32."""
    x = np.arange(32 * 32, dtype=np.float16).reshape(32, 32)
    for rows, columns, outer in ((8, 8, "local(1, 1)"), (16, 8, "local(2, 1)"), (24, 16, "local(3, 2)")):
        for unit in ("spatial(8, 4).local(1, 2)", "column_spatial(4, 8).local(2, 1)"):
            text = move_text("@", "local(32, 32)")
            whole = "!lowlp.tile<32x32xf16, @>"
            text = text.replace(whole, f"!lowlp.tile<{rows}x{columns}xf16, {outer}.{unit}>")
            # Only the corner is written the second time.
            text = text.replace("%t = lowlp.alloc_shared", "%unused = lowlp.alloc_shared").replace("%t[", "%s[")
            text = text.replace(" 0 : index\n", " 0 : index\n      %c8 = arith.constant 8 : index\n", 1)
            text = text.replace("%b, %s[%c0, %c0]", "%b, %s[%c8, %c8]")
            wanted = x.copy()
            wanted[8 : 8 + rows, 8 : 8 + columns] = x[:rows, :columns]
            kernel = lowlp.compile(text, arch)
            arguments = {"x": x, "y": np.zeros_like(x)}
            name = f"matrices_{rows}x{columns}_{unit.split('(')[0]}"
            yield Case(name, kernel, arguments, "y", wanted.astype(np.float64), 0.0)


def matmul_cases(arch: str) -> Iterator[Case]:
    """The example, at sizes that its blocks cover and at some that they do not, with times."""
    sys.path.insert(0, str(EXAMPLES))
    make_matmul = importlib.import_module("matmul").make_matmul
    rng = np.random.default_rng(3)
    for m, n, k in MATMULS:
        a, b = (rng.standard_normal(shape, np.float32).astype(np.float16) for shape in ((m, k), (k, n)))
        arguments = {"a": a, "b": b, "c": np.zeros((m, n), np.float16), "m": m}
        kernel = lowlp.compile(make_matmul(n, k), arch)
        wanted = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float64)
        yield Case(f"matmul_{m}x{n}x{k}", kernel, arguments, "c", wanted, 2e-3, {"shape": [m, n, k]})


def cases(arch: str) -> Iterator[Case]:
    has_f8 = target(arch).instructions["mma.sync.m16n8k32 e4m3, e5m2"]
    for (a_type, b_type), tolerance in PAIRS.items():
        if a_type.startswith("f8") and not has_f8:
            continue
        for shape in ((33, 40, 640), (128, 96, 1024)):
            yield product_case(a_type, b_type, tolerance, shape, arch)
    yield from move_cases(arch)
    yield from narrow_cases(arch)
    yield from matmul_cases(arch)
