"""Random products on the CPU target, compared with float64: any grid of warps, any number and order of fragments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp import compiler, layouts

Random = np.random.Generator

TYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
FRAGMENTS = {
    "a": "column_local(2, 2).spatial(8, 4).local(1, 2)",
    "b": "local(2, 1).column_spatial(4, 8).local(2, 1)",
    "c": "local(2, 1).spatial(8, 4).local(1, 2)",
}


def pick(random: Random, *choices: Any) -> Any:
    return choices[random.integers(len(choices))]


@dataclass
class Product:
    """d = a * b + c by warps in a grid, each with a grid of fragments that lie side by side or interleaved."""

    element: str
    warps: tuple[int, int]
    fragments: tuple[int, int, int]
    layouts: dict[str, lowlp.Layout]


def random_product(random: Random) -> Product:
    """Of each dimension's two digits, warp and fragment, either may be the outer one; registers hold any order."""
    warps = pick(random, (1, 1), (2, 1), (1, 2), (3, 1), (2, 2), (1, 4), (1, 3))
    fragments = tuple(int(n) for n in random.integers(1, 4, 3))
    swapped = {letter: random.random() < 0.5 for letter in "mn"}
    sizes = {"m": (warps[0], fragments[0]), "n": (warps[1], fragments[1]), "k": (1, fragments[2])}
    made = {}
    for operand, letters in (("a", "mk"), ("b", "kn"), ("c", "mn")):
        extents = [sizes[letter][:: -1 if swapped.get(letter) else 1] for letter in letters]
        warp_mode = [2 * d + bool(swapped.get(letter)) for d, letter in enumerate(letters)]
        digits: dict[str, tuple[int | None, int]] = {"m": (None, warps[0]), "n": (None, warps[1])}
        digits |= {letter: (warp_mode[d], sizes[letter][0]) for d, letter in enumerate(letters) if letter != "k"}
        local = [(2 * d + 1 - bool(swapped.get(letter)), sizes[letter][1]) for d, letter in enumerate(letters)]
        threads = [digits["m"], digits["n"]] + [(warp_mode[d], 1) for d, letter in enumerate(letters) if letter == "k"]
        outer = layouts.from_modes(extents, threads, local[:: pick(random, 1, -1)])
        made[operand] = outer * lowlp.layout(FRAGMENTS[operand])
    return Product(pick(random, "f16", "bf16"), warps, fragments, made)  # type: ignore[arg-type]


def product_text(product: Product) -> str:
    """Loads of a, b and c, one `dot`, and a store over c."""
    types = {"a": product.element, "b": product.element, "c": "f32"}
    shapes = {name: layout.shape for name, layout in product.layouts.items()}
    text = {name: "x".join(map(str, shape)) for name, shape in shapes.items()}
    tiles = {name: f"!lowlp.tile<{text[name]}x{types[name]}, {product.layouts[name]}>" for name in "abc"}
    parameters = ", ".join(f"%{name}: !lowlp.ptr<{types[name]}>" for name in "abc")
    body = ["%z = arith.constant 0 : index"]
    for name in "abc":
        view = f"!lowlp.global<{text[name]}x{types[name]}>"
        body += [
            f"%{name}_view = lowlp.view_global %{name} shape {list(shapes[name])}"
            f" : !lowlp.ptr<{types[name]}> -> {view}",
            f"%{name}_tile = lowlp.load_global %{name}_view[%z, %z] : {view} -> {tiles[name]}",
        ]
    body += [
        f"%d = lowlp.dot %a_tile, %b_tile, %c_tile : {tiles['a']}, {tiles['b']}, {tiles['c']}",
        f"lowlp.store_global %d, %c_view[%z, %z] : {tiles['c']}, !lowlp.global<{text['c']}xf32>",
        "lowlp.return",
    ]
    threads = 32 * math.prod(product.warps)
    attributes = f"grid = affine_map<() -> (1)>, num_threads = {threads} : i64"
    head = f"lowlp.kernel @f({parameters}) attributes {{{attributes}}} {{"
    return "\n  ".join([head, *body]) + "\n}"


@pytest.mark.parametrize("number", range(12))
def test_dot(number: int) -> None:
    random = np.random.default_rng([3, number])
    product = random_product(random)
    m, k = product.layouts["a"].shape
    n = product.layouts["b"].shape[1]
    a = random.standard_normal((m, k)).astype(TYPES[product.element])
    b = random.standard_normal((k, n)).astype(TYPES[product.element])
    c = random.standard_normal((m, n)).astype(np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    text = product_text(product)
    compiler.compile_cpu(text)(a, b, c, seed=number)
    np.testing.assert_allclose(c, exact, rtol=0, atol=2e-6 * (k + 4), err_msg=text)
