"""Random products on the CPU target, compared with float64: any grid of warps, any number and order of fragments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.compiler import compilation
from lowlp.layouts import register_layout

Random = np.random.Generator

# By the type in IR: how NumPy holds it.
TYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "si8": np.int8,
    "ui8": np.uint8,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "ui1": np.uint8,  # 8 of them
}
KINDS = [["f16"], ["bf16"], ["si8", "ui8"], ["f8E4M3FN", "f8E5M2"], ["ui1"]]
BITS = {"f16": 16, "bf16": 16, "ui1": 1}


def units(element: str) -> dict[str, str]:
    """What a warp holds in one register of the fragments of mma."""
    e = 32 // BITS.get(element, 8)
    return {
        "a": f"spatial(8, 4).local(1, {e})",
        "b": f"column_spatial(4, 8).local({e}, 1)",
        "c": "spatial(8, 4).local(1, 2)",
    }


def pick(random: Random, *choices: Any) -> Any:
    return choices[random.integers(len(choices))]


@dataclass
class Product:
    """d = a * b + c by warps in a grid, each with a grid of fragments that lie side by side or interleaved."""

    elements: dict[str, str]
    warps: tuple[int, int]
    fragments: tuple[int, int, int]
    layouts: dict[str, lowlp.Layout]

    @property
    def sums(self) -> Any:
        return np.float32 if self.elements["c"] == "f32" else np.int32


def random_product(random: Random) -> Product:
    """Of each dimension's digits, warp, fragment, and register in a fragment, the first two lie in any order. A warp
    holds its registers in any order, which need not keep those of a fragment together."""
    kind = KINDS[random.integers(len(KINDS))]
    elements = {"a": pick(random, *kind), "b": pick(random, *kind)}
    elements["c"] = "si32" if elements["a"] in ("si8", "ui8", "ui1") else "f32"
    warps = pick(random, (1, 1), (2, 1), (1, 2), (3, 1), (2, 2), (1, 4), (1, 3))
    fragments = tuple(int(n) for n in random.integers(1, 3 if kind == ["ui1"] else 4, 3))
    swapped = {letter: random.random() < 0.5 for letter in "mn"}
    sizes = {"m": (warps[0], fragments[0], 2), "n": (warps[1], fragments[1], 1), "k": (1, fragments[2], 2)}
    made = {}
    for operand, letters in (("a", "mk"), ("b", "kn"), ("c", "mn")):
        extents = []
        warp_modes: dict[str, tuple[int | None, int]] = {"m": (None, warps[0]), "n": (None, warps[1])}
        registers: list[tuple[int | None, int]] = []
        for d, letter in enumerate(letters):
            warp, fragment, half = sizes[letter]
            swap = bool(swapped.get(letter))
            extents.append([fragment, warp, half] if swap else [warp, fragment, half])
            warp_modes[letter] = (3 * d + swap, warp)
            registers += [(3 * d + 1 - swap, fragment), (3 * d + 2, half)]
        order = random.permutation(len(registers)) if random.random() < 0.5 else [0, 2, 3, 1]
        digits = [warp_modes.get(letter, (None, 1)) for letter in "mnk" if letter in warp_modes]
        outer = register_layout.from_modes(extents, digits, [registers[i] for i in order])
        made[operand] = outer * lowlp.layout(units(elements["a"])[operand])
    return Product(elements, warps, fragments, made)  # type: ignore[arg-type]


def product_text(product: Product) -> str:
    """Loads of a, b and c, one `dot`, and a store over c."""
    types = product.elements
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
        f"lowlp.store_global %d, %c_view[%z, %z] : {tiles['c']}, !lowlp.global<{text['c']}x{types['c']}>",
        "lowlp.return",
    ]
    threads = 32 * math.prod(product.warps)
    attributes = f"grid = affine_map<() -> (1)>, num_threads = {threads} : i64"
    head = f"lowlp.kernel @f({parameters}) attributes {{{attributes}}} {{"
    return "\n  ".join([head, *body]) + "\n}"


def random_values(random: Random, element: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of the type; of bits, 0 and 1."""
    if element.startswith(("ui", "si")):
        bits = BITS.get(element, 8)
        low = -(2 ** (bits - 1)) if element.startswith("si") else 0
        return random.integers(low, low + 2**bits, shape).astype(TYPES[element])
    return random.standard_normal(shape).astype(TYPES[element])


def as_argument(values: np.ndarray, element: str) -> np.ndarray:
    """The buffer that holds them; floats of 8 bits as bytes."""
    if element == "ui1":
        return np.packbits(values.reshape(-1), bitorder="little")
    return values.view(np.uint8) if element.startswith("f8") else values


def run_product(product: Product, random: Random, seed: int) -> tuple[np.ndarray, np.ndarray, str]:
    """What the CPU target gives, and the exact product."""
    types = product.elements
    m, k = product.layouts["a"].shape
    n = product.layouts["b"].shape[1]
    a, b = random_values(random, types["a"], (m, k)), random_values(random, types["b"], (k, n))
    c = (1000 * random.standard_normal((m, n))).astype(product.sums)
    exact_type = np.float64 if product.sums is np.float32 else np.int64
    exact = a.astype(exact_type) @ b.astype(exact_type) + c
    text = product_text(product)
    compilation.compile_cpu(text)(as_argument(a, types["a"]), as_argument(b, types["b"]), c, seed=seed)
    return c, exact, text


@pytest.mark.parametrize("number", range(30))
def test_dot(number: int) -> None:
    random = np.random.default_rng([3, number])
    product = random_product(random)
    found, exact, text = run_product(product, random, number)
    if product.sums is np.int32:
        np.testing.assert_array_equal(found, exact, err_msg=text)
    else:
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-4, err_msg=text)


def test_every_type_is_drawn() -> None:
    drawn = {tuple(random_product(np.random.default_rng([3, n])).elements.values()) for n in range(30)}
    assert {a for a, _, _ in drawn} == set(TYPES), drawn
