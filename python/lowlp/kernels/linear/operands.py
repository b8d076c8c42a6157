"""What a kernel for `linear` takes of quantised weights, as arrays of the host."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from lowlp.errors import LowlpValueError, PaddingWarning, frames_to_user
from lowlp.numeric.dtypes import dtype
from lowlp.numeric.scale_types import SCALE_DTYPES
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.operand_arrays import host_operands as arrays_of_operands
from lowlp_runtime.operands import Operand

from .activations import HALVES
from .codebooks.book_sums import largest_book
from .codebooks.lattice_tables import lattice_tables
from .operand_list import TAKES_ALL, operands_of_weights
from .scaled_weights import can_scale_weights, fit_of, holds_weights, keeps_values
from .schedule import Schedule
from .slabs import slab_schedule, slab_spec
from .spec import LinearSpec, check_codec
from .two_levels import SIGNIFICANT_BITS

NUMPY_TYPES: Final[dict[str, np.dtype[Any]]] = {
    **SCALE_DTYPES,
    **{name: np.dtype(name) for name in ("int8", "uint8", "int16", "int32")},
    "s32": np.dtype("int32"),
    "f8e4m3": np.dtype("uint8"),
    "f8e5m2": np.dtype("uint8"),
}
"""The types of activations, results, scales, zero points and offsets."""

# From this part of the bytes on, padding gets a warning.
_NOTABLE_PADDING: Final = 1 / 8


def matrix_shape(qw: QuantizedTensor) -> tuple[int, int]:
    """(N, K). Raises `LowlpValueError` for the weights of several experts."""
    if len(qw.shape) != 2:
        raise LowlpValueError(f"qw: expected weights [N, K], got {list(qw.shape)} of experts; take one with qw[e]")
    return qw.shape[0], qw.shape[1]


def spec_for(
    qw: QuantizedTensor,
    activation: str,
    out: str,
    bias: str = "",
    aligned: bool = False,
    epilogue: str = "",
    residual: str = "",
    *,
    x_scale: str = "",
    x_zeros: bool = False,
    x_bipolar: int = 0,
) -> LinearSpec:
    """The spec of the kernel for these weights, [N, K] or of experts [E, N, K]. Raises `LowlpValueError`, which names
    `qw`, where there is none."""
    n, k = qw.shape[-2:]
    check_codec(qw.codec, activation, "qw")
    return LinearSpec(
        n=n,
        k=k,
        codec=qw.codec,
        activation=activation,
        out=out,
        bias=bias,
        epilogue=epilogue,
        residual=residual,
        aligned=aligned,
        row_scale2=isinstance(qw.scale2, np.ndarray),
        x_scale=x_scale,
        x_zeros=x_zeros,
        x_bipolar=x_bipolar,
        experts=qw.shape[0] if len(qw.shape) > 2 else 0,
    )


def spec_of_operands(qw: QuantizedTensor, activation: str, epilogue: str = "") -> LinearSpec:
    """A spec of kernels for these weights, by which what they take of them is known."""
    is_of_halves = activation in HALVES
    out, x_scale = (activation, "") if is_of_halves else ("f32", "token")
    return spec_for(qw, activation, out, epilogue=epilogue, x_scale=x_scale)


def for_weights(spec: LinearSpec, qw: QuantizedTensor) -> LinearSpec:
    """The spec of these weights' kernels: of e8m0 with f16 one of kernels that scale weights there, where f16 has all
    of their scales that matter; of books with scales, of kernels that know the largest; and one of kernels that scale
    accumulators alone, where results of f16 would not all be `dequantize()` rounded once by a kernel that scales
    weights (`keeps_values`)."""
    usual = like_most(spec)
    if usual.largest_book >= 0:
        spec = replace(spec, largest_book=_largest_book(qw))
    if usual.f16_powers and _keeps_values(usual, qw):
        return usual
    if usual.f32_differences and _are_held_in_f32(spec, qw):
        spec = usual
    return spec if spec.out != "f16" or _keeps_values(spec, qw) else replace(spec, scales_weights=False)


def like_most(spec: LinearSpec) -> LinearSpec:
    """The spec of kernels for weights of this codec that are as most are: what `for_weights` asks them for is so."""
    if spec.scale == "e8m0" and spec.activation == "f16" and not spec.experts:
        by_powers = replace(spec, f16_powers=True)
        if can_scale_weights(by_powers):
            return by_powers
    if spec.vectors is not None and spec.vectors.has_book_scales and spec.vectors.books > 1:
        return replace(spec, largest_book=0)
    if spec.zeros not in SIGNIFICANT_BITS or spec.super_scale or spec.activation not in HALVES:
        return spec
    is_exact = SIGNIFICANT_BITS[spec.zeros] + SIGNIFICANT_BITS[spec.scale] <= SIGNIFICANT_BITS["f32"]
    return replace(spec, f32_differences=True) if is_exact else spec


def _largest_book(qw: QuantizedTensor) -> int:
    def ask() -> dict[str, float]:
        entries = None if qw.codebooks is None else np.asarray(qw.codebooks)
        return {"is largest": float(largest_book(np.asarray(qw.book_scales), entries))}

    return int(qw.derived("largest book", ask)["is largest"])


def _are_held_in_f32(spec: LinearSpec, qw: QuantizedTensor) -> bool:
    """Whether f32 holds every code less its zero point, which is a float: the lowest of its bits is that of the zero
    point."""

    def ask() -> dict[str, float]:
        assert qw.zeros is not None
        differences = float(dtype(spec.weight).max) - np.asarray(qw.zeros).astype(np.float64)
        return {"are held": float(np.array_equal(differences, differences.astype(np.float32)))}

    return bool(qw.derived("differences in f32", ask)["are held"])


def _keeps_values(spec: LinearSpec, qw: QuantizedTensor) -> bool:
    """`keeps_values` of these weights; True where nothing is multiplied by 2^-p."""
    fit = fit_of(spec, TAKES_ALL)
    if fit is None:
        return True
    kept = qw.derived(
        f"fit {fit}{' powers' * spec.f16_powers}",
        lambda: {"is kept": float(keeps_values(spec, fit, dict(qw.meaning.arrays()), _least_value(qw)))},
    )
    return bool(kept["is kept"])


def slabs_of(spec: LinearSpec, qw: QuantizedTensor) -> tuple[LinearSpec, Schedule] | None:
    """The spec and the schedule of the kernel that decodes slabs of these weights for a product (`slabs`); None where
    no slabs have what `spec` asks for: anything beside the product, columns in another order, or weights that the
    activation type does not hold as they are meant."""
    if spec.bias or spec.epilogue or spec.residual or qw.permutation is not None:
        return None
    of_slabs = slab_spec(spec)
    schedule = slab_schedule(of_slabs)
    if schedule is None:
        return None
    found = qw.derived(
        f"as {spec.activation}", lambda: {"are held": float(holds_weights(of_slabs, dict(qw.meaning.arrays())))}
    )
    return (of_slabs, schedule) if found["are held"] else None


def _least_value(qw: QuantizedTensor) -> float:
    """The least unscaled value that is not 0, in absolute value; of integers with integer zero points 1."""
    values = np.abs((qw.codec.values() if qw.lut is None else qw.lut).astype(np.float64))
    return 1.0 if qw.zeros is not None else float(values[np.isfinite(values) & (values > 0)].min(initial=np.inf))


def form_of_operands(spec: LinearSpec) -> str:
    """Operands of weights in one form are alike, those that kernels have: by the activation type, and whether gate and
    up are packed apart."""
    return spec.family + (" apart" if spec.is_packed_apart else "")


def host_operands(
    qw: QuantizedTensor,
    activation: str,
    epilogue: str = "",
    schedule: Schedule | None = None,
    wanted: Sequence[Operand] | None = None,
) -> dict[str, Any]:
    """What kernels take of the weights, by name, as `operand_list` lists it: arrays and numbers. The packed
    weights are those that `qw` holds where it is of the family of the activations.

    schedule  of the kernel; None: of any that does not scale weights
    wanted    some of its operands, of which alone arrays are given; None: all
    """
    spec = spec_of_operands(qw, activation, epilogue)
    _warn_of_padding(spec)
    operands = operands_of_weights(spec, schedule)
    stored = dict(qw.meaning.arrays())
    if wanted is None or any(operand.role == "packed" for operand in wanted):
        apart = spec.is_packed_apart
        stored["packed"] = qw.packed_apart(spec.family, spec.products) if apart else qw.packed_for(spec.family)
    else:
        operands = tuple(operand for operand in operands if operand.role != "packed")
    if spec.vectors is not None and spec.vectors.lattices:
        stored["codebooks"] = lattice_tables(spec.vectors)
    made: dict[str, Any] = arrays_of_operands(operands, stored)
    for name in ("table", "codebooks"):
        if name in made and made[name].dtype == np.uint16:
            # Bits of bf16, as they come without `ml_dtypes`.
            made[name] = made[name].view(NUMPY_TYPES["bf16"])
    return made


def padded_row(spec: LinearSpec) -> int:
    """Weights for which the units of a row have room."""
    return -(-spec.k // spec.unit_k) * spec.unit_k


def padding_bytes(spec: LinearSpec) -> tuple[int, int]:
    """Bytes of packed weights, and how many of these pad the last unit of each row."""
    rows = spec.products * spec.packed_rows_of_product
    shape = spec.placement.packed_shape(rows, spec.k)
    packed = 4 * math.prod(shape)
    return packed, packed - shape[0] * spec.rows_of_unit * spec.bits_of_row // 8


@functools.cache
def _warn_of_padding(spec: LinearSpec) -> None:
    """Warns, once for each kind and shape of weights, of padding that takes a notable part of the bytes."""
    packed, padding = padding_bytes(spec)
    if padding > _NOTABLE_PADDING * (packed - padding):
        warnings.warn(
            f"qw: rows of {spec.k} weights are padded to {padded_row(spec)}, a multiple of {spec.unit_k}: {packed} "
            f"bytes instead of {packed - padding}; slower but exact",
            PaddingWarning,
            stacklevel=frames_to_user(),
        )
