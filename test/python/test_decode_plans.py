"""Decode plans in lowered programs, on the CPU target: every code at every place of a unit, for every type."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from lowlp._layout import Placement
from packed_products import (
    ACTIVATIONS,
    packed_product,
    packed_weights,
    unrolled_product,
    valid_codes,
    values_of,
)

import lowlp
from lowlp import language as ll
from lowlp.compiler import compilation
from lowlp.compiler.pipelines import name_of, passes_of
from lowlp.packing import placement_name

INTEGERS = [f"{sign}int{bits}" for bits in range(1, 9) for sign in ("", "u")]
FLOATS = [f"f{bits}e{x}m{bits - 1 - x}" for bits in range(3, 9) for x in range(1, bits)]
PAIRS = [
    (weight, activation)
    for weight in INTEGERS + FLOATS
    for activation in ACTIVATIONS
    if lowlp.Codec(lowlp.dtype(weight), "channel").prescale(activation)
]
# The passes that make programs faster; a program is right without them.
OPTIONAL = {"lowlp-plan-decode", "lowlp-vectorize-lookups", "lowlp-decompose-bit-slices", "canonicalize", "cse"}


def every_code(weight: str, activation: str) -> np.ndarray[Any, Any]:
    """Codes [N, 64] of so many units that each place has each code once, and its neighbours others."""
    codes = valid_codes(weight)
    rows = Placement.find(placement_name(lowlp.dtype(weight), activation)).unit_rows
    unit, row, k = np.ogrid[: len(codes), :rows, :64]
    return codes[(unit + 5 * row + 11 * k) % len(codes)].reshape(-1, 64)


# Of bf16 every third: what differs from f16 is how few types' values are exact.
FEW_OF_BF16 = [pair for pair in PAIRS if pair[1] == "bf16"][::3]


@pytest.mark.sampled(18)
@pytest.mark.parametrize(
    ("weight", "activation"),
    [pair for pair in PAIRS if pair[1] == "f16" or pair in FEW_OF_BF16],
    ids=lambda value: value,
)
def test_every_code_at_every_place(weight: str, activation: str) -> None:
    codes = every_code(weight, activation)
    kernel = compilation.compile_cpu(packed_product(len(codes), 64, 64, weight, activation), opt_level=1)
    y = np.full((64, len(codes)), np.nan, np.float32)
    kernel(np.eye(64, dtype=ACTIVATIONS[activation]), packed_weights(codes, weight, activation), y, checks=False)
    factor = lowlp.Codec(lowlp.dtype(weight), "channel").prescale(activation)
    np.testing.assert_array_equal(y.T, values_of(codes, weight) * factor)
    assert any(str(note).startswith("decode ") for note in kernel.description.notes)


def exact_inputs(weight: str, n: int, k: int, m: int, activation: str) -> tuple[Any, Any, Any]:
    """Codes, x and their product, all sums of which are exact in f32 in any order."""
    random = np.random.default_rng(7)
    codes = random.choice(valid_codes(weight), (n, k))
    x = random.integers(-3, 4, (m, k)).astype(ACTIVATIONS[activation])
    return codes, x, x.astype(np.float64) @ values_of(codes, weight).T


@pytest.mark.parametrize("weight", ["int1", "int3", "uint4", "int6", "f6e3m2", "f4e2m1", "uint8"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_without_optimisation(weight: str, activation: str) -> None:
    codes, x, expected = exact_inputs(weight, 128, 192, 16, activation)
    program = packed_product(128, 192, 16, weight, activation)
    packed = packed_weights(codes, weight, activation)
    for level in (0, 1):
        y = np.full(expected.shape, np.nan, np.float32)
        compilation.compile_cpu(program, opt_level=level)(x, packed, y)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("weight", ["int3", "int6", "f6e3m2"])
def test_every_prefix_of_the_pipeline(weight: str) -> None:
    """The first passes of the pipeline, and of the rest only those that cannot be left out, give the same result."""
    from lowlp._mlir._mlir_libs import _compiler

    codes, x, expected = exact_inputs(weight, 64, 128, 8, "f16")
    packed = packed_weights(codes, weight, "f16")
    program = packed_product(64, 128, 8, weight, "f16")
    with compilation.open_program(program).context as context:
        passes = passes_of("lowlp-to-cpu{opt-level=3}", context)
    names = [name_of(entry) for entry in passes]
    assert "lowlp-plan-decode" in names
    texts = set()
    for length in range(len(passes) + 1):
        if length and names[length - 1] not in OPTIONAL:
            continue
        chosen = [entry for at, entry in enumerate(passes) if at < length or names[at] not in OPTIONAL]
        module = compilation.open_program(program)
        compilation.run_pipeline(module, ",".join(chosen))
        texts.add(str(module))
        description = compilation._only_kernel(compilation.read_kernels(module, compiler_version="", notes={}))
        y = np.full(expected.shape, np.nan, np.float32)
        compilation.CpuKernel(description, _compiler.CpuProgram(module.operation, 1))(x, packed, y)
        np.testing.assert_array_equal(y, expected)
    assert len(texts) >= 3


@pytest.mark.parametrize("weight", ["int1", "int2", "int3", "int4"])
@pytest.mark.parametrize("warps", [2, 4])
def test_warps_take_units_or_share_one(weight: str, warps: int) -> None:
    codes, x, expected = exact_inputs(weight, 256, 128, 8, "f16")
    packed = packed_weights(codes, weight, "f16")
    program = packed_product(256, 128, 8, weight, "f16", warps=warps)
    for level in (0, 1):
        y = np.full(expected.shape, np.nan, np.float32)
        compilation.compile_cpu(program, opt_level=level)(x, packed, y)
        np.testing.assert_array_equal(y, expected)


def test_report_prints_the_plan() -> None:
    kernel = compilation.compile(packed_product(64, 64, 8, "int6", "f16"), "sm_90a", assemble=False)
    for report in (kernel.report(), kernel.report(verbose=True)):
        assert "decode int6.f16" in report
        assert "instructions per weight" in report
    assert "lop3" not in kernel.report()
    assert "lop3" in report
    assert "exponent -24" in report


def test_offsets_between_units_are_reported() -> None:
    layout = "local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)"

    def body(weights, y, k):  # type: ignore[no-untyped-def]
        view = ll.view_packed(weights, shape=[16, 128], dtype="int6", placement="int6.f16")
        codes = ll.load_packed(view, offsets=[0, k], layout=layout)
        ll.store_global(ll.cast(codes, "f16"), ll.view_global(y, shape=[16, 64]), offsets=[0, 0])

    parameters = {"weights": ll.pointer("uint32"), "y": ll.pointer("f16"), "k": ll.i32}
    program = ll.make_kernel(body, name="between", parameters=parameters, grid=lambda k: (1,), num_threads=32)
    kernel = compilation.compile_cpu(program)
    words, y = np.zeros(2 * 192, np.uint32), np.zeros((16, 64), np.float16)
    kernel(words, y, 64)
    with pytest.raises(lowlp.LowlpError, match="64"):
        kernel(words, y, 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": "f16"}, "source: must be a pointer to uint32, found one to f16"),
        ({"shape": [16]}, "shape: expected 2 extents, rows and K, or 3 with their number first, found 1"),
        ({"placement": "int6"}, "^placement: packed format 5 has none named 'int6'"),
        ({"placement": 6}, "^placement: must be a name such as 'int6.f16', found int 6"),
        ({"dtype": "int4"}, r"^dtype: must be int6 or uint6 for the placement int6\.f16, found int4"),
        ({"dtype": "f16"}, r"^dtype: must be int6 or uint6 for the placement int6\.f16, found f16"),
        ({"placement": "e3m2.f16"}, r"^dtype: must be f6e3m2 for the placement e3m2\.f16, found int6"),
        ({"placement": "lut6.f16"}, r"^dtype: must be uint6 for the placement lut6\.f16, found int6"),
        ({"offsets": [0]}, "offsets: expected a row and k, found 1"),
        ({"offsets": 3}, "offsets: must be a list"),
        ({"first_step": 1.5}, "first_step: must be an int"),
        ({"view": 3}, "view: must be a view made by ll.view_packed"),
        ({"source": 3}, "source: must be a pointer parameter"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"weights": "uint32", "shape": [16, 64], "dtype": "int6", "placement": "int6.f16"}
    given |= {"offsets": [0, 0], "first_step": 0, **change}

    def body(weights):  # type: ignore[no-untyped-def]
        source = given.get("source", weights)
        view = ll.view_packed(source, shape=given["shape"], dtype=given["dtype"], placement=given["placement"])
        layout = "local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)"
        ll.load_packed(given.get("view", view), offsets=given["offsets"], layout=layout, first_step=given["first_step"])

    with pytest.raises(lowlp.LowlpError, match=message):
        program = ll.make_kernel(
            body, name="wrong", parameters={"weights": ll.pointer(given["weights"])}, grid=lambda: (1,), num_threads=32
        )
        compilation.open_program(program)


# The most instructions of the ALU a pair of weights, for scales on accumulators.
MOST_ALU = {"uint1": 1.15, "uint2": 1.15, "uint3": 1.5, "uint4": 1.25, "uint5": 2.0, "uint6": 2.0, "uint7": 2.3}
MOST_ALU |= {"uint8": 1.05, "f6e3m2": 2.5, "f4e2m1": 2.5, "f8e4m3": 4, "f5e2m2": 4, "f3e1m1": 4}
ALU = re.compile(r"^\s+(lop3|and|or|xor|not|prmt|shf\S*|shl|shr|bfe|bfi)\.[bsu]32", re.MULTILINE)


@pytest.mark.parametrize("weight", MOST_ALU)
def test_instructions_in_ptx(weight: str) -> None:
    """What two more units add to a straight line of PTX is what the plan says, and no more than it may be."""
    kernels = {
        units: compilation.compile(unrolled_product(units, weight, "f16"), "sm_90a", assemble=False, cache=False)
        for units in (1, 3)
    }
    found = len(ALU.findall(kernels[3].ptx)) - len(ALU.findall(kernels[1].ptx))
    pairs = 2 * Placement.find(placement_name(lowlp.dtype(weight), "f16")).slots
    assert found <= MOST_ALU[weight] * pairs
    (plan,) = (note for name, note in kernels[3].description.notes.items() if name.startswith("decode "))
    assert isinstance(plan, dict)
    steps = [line.split()[0] for line in plan.values() if isinstance(line, str)]
    assert found == 2 * sum(step in ("lop3", "prmt", "rotate") for step in steps)
