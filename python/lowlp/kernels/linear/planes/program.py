"""y = x @ w^T of integer codes by their bits: products of planes on the tensor cores' 1-bit instructions.

Codes of b bits are b planes, matrices of single bits: u = sum over i of 2^i u_i. Both operands count up from 0, so all
planes weigh positively, and a product of two planes is the population count of a bitwise and:

    D = sum over i, j of 2^(i + j) popcount(w_i & x_j)

A number is a linear function of its stored code, number = a u + c, with a = 1 for integers and 2 for bipolar types, and
c the least number, less the zero point where there is one. So one program serves unsigned, signed, bipolar and ternary
codes on either side; what the constants add is taken off afterwards by sums:

    acc = a_w a_x D + c_x(m) * a_w S_w[n] + c_w(n) * T_x[m]        S_w: of stored codes of w; T_x: of numbers of x

in int32, which wraps: acc is exact wherever it fits, whatever D is on the way. Then, each step rounded to f32 once,

    y = round(epilogue((f32(acc) * s_w[n]) * s_x[m] + bias[n]) + residual[m, n])

No code is decoded: words of weights in the family b1 of the packed format are registers of operand A as they are.
Sources: APT-LLM (section III), ABQ-LLM (arXiv 2408.08554). Accumulators by i + j and offsets by sums: ADR 0060.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from lowlp import language as ll
from lowlp.kernels.epilogues import applied
from lowlp.layouts.register_layout import Layout, layout
from lowlp.numeric.bit_planes import WORD_CODES
from lowlp.numeric.dtypes import DType, named_dtype
from lowlp_runtime.errors import LowlpValueError

STEP_K: Final = 256
"""Bits of K of an instruction, and of a unit of packed weights."""
STEP_WORDS: Final = STEP_K // WORD_CODES
UNIT_WORDS: Final = 128
"""Of a plane of a unit of packed weights: 4 registers of 32 lanes."""
OUT_TYPES: Final = ("f16", "bf16", "f32", "int32")
EPILOGUES: Final = ("", "relu", "gelu", "gelu_tanh", "silu")

# The fragments of mma.sync m16n8k256 (PTX ISA, "Matrix Fragments for mma.m16n8k256"), as bits and as words of 32.
A_BITS: Final = layout("column_local(2, 2).spatial(8, 4).local(1, 32)")
X_BITS: Final = layout("local(1, 2).spatial(8, 4).local(1, 32)")
X_WORDS: Final = layout("local(1, 2).spatial(8, 4)")
ACCUMULATORS: Final = layout("local(2, 1).spatial(8, 4).local(1, 2)")


@dataclass(frozen=True)
class LinearCode:
    """number = factor * stored code + least, of codes of so many bits."""

    bits: int
    factor: int
    least: int

    @classmethod
    def of(cls, dtype: str | DType) -> LinearCode:
        """Of an integer or bipolar type; 'ternary' is int2. Raises `LowlpValueError` for others."""
        found = named_dtype("int2" if dtype == "ternary" else dtype, "dtype")
        if found.is_float or found.bits > 8:
            raise LowlpValueError(
                "dtype: codes of planes are int1 to int8, uint1 to uint8, bipolar1 to bipolar8 or ternary, "
                f"got {found.name}"
            )
        return cls(found.bits, 1 if found.is_integer else 2, int(found.min))


_code_of = functools.cache(LinearCode.of)


@dataclass(frozen=True)
class PlanesSpec:
    """What a product of planes computes: y [M, N] of weights [N, K], packed in the family b1, and activations [M, K].

    n, k        the shape of the weights
    weight      the type of their codes; 'int1' to 'int8', 'uint1' to 'uint8', 'bipolar1' to 'bipolar8'
    activation  that of x; also 'ternary'
    zeros       weights have zero points, int32 [N]
    x_zeros     activations have, int32 [M]
    scale       of weights, [N]: 'f16', 'bf16' or 'f32'; '' for none
    x_scale     activations have scales, f32 [M]
    bias        'f16', 'bf16' or 'f32', [N]; '' for none
    epilogue    '', 'relu', 'gelu', 'gelu_tanh' or 'silu'
    residual    'f16', 'bf16' or 'f32', [M, N]; '' for none
    out         'f16', 'bf16', 'f32', or 'int32': the exact sums, with none of these
    """

    n: int
    k: int
    weight: str
    activation: str
    zeros: bool = False
    x_zeros: bool = False
    scale: str = ""
    x_scale: bool = False
    bias: str = ""
    epilogue: str = ""
    residual: str = ""
    out: str = "int32"

    def __post_init__(self) -> None:
        if self.out not in OUT_TYPES:
            raise LowlpValueError(f"out: must be one of {', '.join(OUT_TYPES)}, got {self.out!r}")
        if self.epilogue not in EPILOGUES:
            raise LowlpValueError(f"epilogue: must be one of {', '.join(EPILOGUES)} or '', got {self.epilogue!r}")
        if self.out == "int32" and (self.scale or self.x_scale or self.bias or self.epilogue or self.residual):
            raise LowlpValueError("out: exact sums, 'int32', have no scales, bias, epilogue and residual")
        for name in ("n", "k"):
            if getattr(self, name) < 1:
                raise LowlpValueError(f"{name}: must be at least 1, got {getattr(self, name)}")

    @property
    def w_code(self) -> LinearCode:
        """What codes of weights mean."""
        return _code_of(self.weight)

    @property
    def x_code(self) -> LinearCode:
        """What codes of x mean."""
        return _code_of(self.activation)

    @property
    def levels(self) -> int:
        """Sums i + j that planes of both have."""
        return self.w_code.bits + self.x_code.bits - 1

    @property
    def units_k(self) -> int:
        """Units of packed weights along K."""
        return -(-self.k // STEP_K)

    @property
    def words(self) -> int:
        """Words of a plane of a row of x in memory: whole chunks of 16 bytes, of which the last may hold zeros."""
        return -(-self.k // (4 * WORD_CODES)) * 4

    @property
    def exchanged_bytes(self) -> int:
        """Of an element that threads of warpgroups exchange before they store y: what residuals are added to is f32."""
        return 2 if self.out in ("f16", "bf16") and not self.residual else 4

    @property
    def takes_sums_of_weights(self) -> bool:
        """Whether offsets of x are taken off."""
        return self.x_zeros or self.x_code.least != 0

    @property
    def takes_sums_of_x(self) -> bool:
        """Whether offsets of weights are."""
        return self.zeros or self.w_code.least != 0


@dataclass(frozen=True)
class Operands:
    """What a kernel gets as it is traced; None for what it lacks.

    planes    uint32 [M, bits, words]: of the stored codes of x, in the order of `lowlp.numeric.bit_planes`
    weights   packed
    w_sums    int32 [N]: of stored codes
    x_sums    int32 [M]: of codes as activations have them, of bipolar ones stored, else numbers
    """

    planes: Any
    weights: Any
    y: Any
    m: Any
    scales: Any = None
    zeros: Any = None
    w_sums: Any = None
    x_scales: Any = None
    x_zeros: Any = None
    x_sums: Any = None
    bias: Any = None
    residual: Any = None


def make_planes(
    spec: PlanesSpec, trace: Callable[[Operands], None], grid: Callable[..., object], num_threads: int, **hints: Any
) -> ll.Kernel:
    """The kernel whose program `trace` writes; `grid` as `ll.make_kernel` takes it, `hints` fields of its schedule."""
    of_weights: dict[str, Any] = {}
    if spec.scale:
        of_weights["scales"] = ll.pointer(spec.scale, constant=True)
    if spec.zeros:
        of_weights["zeros"] = ll.pointer("int32", constant=True)
    if spec.takes_sums_of_weights:
        of_weights["w_sums"] = ll.pointer("int32", constant=True)
    of_x = {
        name: ll.pointer(kind)
        for name, kind, is_there in (
            ("x_scales", "f32", spec.x_scale),
            ("x_zeros", "int32", spec.x_zeros),
            ("x_sums", "int32", spec.takes_sums_of_x),
            ("residual", spec.residual, bool(spec.residual)),
        )
        if is_there
    }
    bias = {"bias": ll.pointer(spec.bias, constant=True)} if spec.bias else {}

    def body(**operands: Any) -> None:
        trace(Operands(**operands))

    return ll.make_kernel(
        body,
        name=re.sub(r"\W", "_", f"planes_{spec.weight}_{spec.activation}"),
        parameters={
            "planes": ll.pointer("uint32", align=16),
            "weights": ll.pointer("uint32", align=16, constant=True),
            **of_weights,
            **of_x,
            **bias,
            # Stored 16 bytes at a time where rows are whole ones.
            "y": ll.pointer(spec.out, align=16),
            "m": ll.i32,
        },
        grid=grid,
        num_threads=num_threads,
        schedule=ll.KernelSchedule(**hints),
    )


def view_of_weights(spec: PlanesSpec, weights: ll.Pointer) -> Any:
    """The packed words: [units of 16 rows, units of 256 of K, planes, words: 4 registers of operand A of each lane].

    The words of a plane of a unit are one dimension, 512 bytes. With lanes and registers as two, tensor copies of 16
    bytes along the last brought half of what memory gives (an H200), whatever the schedule."""
    return ll.view_global(weights, shape=[-(-spec.n // 16), spec.units_k, spec.w_code.bits, UNIT_WORDS])


def combined(tiles: list[ll.Tile]) -> ll.Tile:
    """The sum of tiles of accumulators, tile s times 2^s."""
    total = tiles[0]
    for level, tile in enumerate(tiles[1:], 1):
        total = total + (tile << level)
    return total


def finished(
    spec: PlanesSpec,
    total: ll.Tile,
    operands: Operands,
    row: ll.Scalar,
    column: ll.Scalar,
    stored: Layout | None = None,
) -> ll.Tile:
    """A tile of y^T from `row` and `column` on as it is stored, from its D: offsets, scales, bias, epilogue, residual.

    stored  how threads hold it then; None: as D
    """
    rows = total.layout.reduce([1], keep_dims=True)
    columns = total.layout.reduce([0], keep_dims=True)

    def of_rows(array: ll.Pointer) -> ll.Tile:
        return ll.load_global(ll.view_global(array, shape=[spec.n, 1]), offsets=[row, 0], layout=rows)

    def of_columns(array: ll.Pointer) -> ll.Tile:
        return ll.load_global(ll.view_global(array, shape=[1, operands.m]), offsets=[0, column], layout=columns)

    acc = _with_offsets(spec, total, operands, of_rows, of_columns)
    if spec.out == "int32":
        return acc if stored is None else ll.convert_layout(acc, stored)
    y = ll.cast(acc, "f32")
    if spec.scale:
        y = y * ll.cast(of_rows(operands.scales), "f32")
    if spec.x_scale:
        y = y * of_columns(operands.x_scales)
    if spec.bias:
        y = y + ll.cast(of_rows(operands.bias), "f32")
    y = applied(spec.epilogue, (y,))
    if not spec.residual:
        y = ll.cast(y, spec.out)
    if stored is not None:
        y = ll.convert_layout(y, stored)
    if spec.residual:
        # Rows of y, along which accesses are wide.
        view = ll.view_global(operands.residual, shape=[operands.m, spec.n])
        rows_of_y = ll.load_global(view, offsets=[column, row], layout=y.layout.permute([1, 0]))
        y = ll.cast(y + ll.cast(ll.transpose(rows_of_y), "f32"), spec.out)
    return y


def _with_offsets(
    spec: PlanesSpec,
    total: ll.Tile,
    operands: Operands,
    of_rows: Callable[[ll.Pointer], ll.Tile],
    of_columns: Callable[[ll.Pointer], ll.Tile],
) -> ll.Tile:
    """The exact sums of products of numbers."""
    w_code, x_code = spec.w_code, spec.x_code
    acc = total * (w_code.factor * x_code.factor) if w_code.factor * x_code.factor > 1 else total
    if spec.takes_sums_of_weights:
        sums = of_rows(operands.w_sums)
        if spec.x_zeros:
            least = (of_columns(operands.x_zeros) * -1 + x_code.least) * w_code.factor
            acc = acc + ll.broadcast_to(sums, acc.layout) * least
        else:
            acc = acc + sums * (x_code.least * w_code.factor)
    if spec.takes_sums_of_x:
        sums = _numbers_of_x(spec, operands, of_columns)
        if spec.zeros:
            least = of_rows(operands.zeros) * -1 + w_code.least
            acc = acc + ll.broadcast_to(least, acc.layout) * sums
        else:
            acc = acc + sums * w_code.least
    return acc


def _numbers_of_x(spec: PlanesSpec, operands: Operands, of_columns: Callable[[ll.Pointer], ll.Tile]) -> ll.Tile:
    """T_x: the sums of the numbers of x, less zero points."""
    code, sums = spec.x_code, of_columns(operands.x_sums)
    if code.factor == 2:
        sums = sums * 2 + spec.k * code.least
    return sums - of_columns(operands.x_zeros) * spec.k if spec.x_zeros else sums


def view_of_y(spec: PlanesSpec, operands: Operands) -> Any:
    """y as rows, [M, N]."""
    return ll.view_global(operands.y, shape=[operands.m, spec.n])


def as_bits(words: ll.Tile, held: Layout) -> ll.Tile:
    """Words as the bits that they are."""
    return ll.view(words, dtype="uint1", layout=held)
