"""What a kernel for `linear` takes of quantised weights, as arrays of the host."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lowlp.errors import PaddingWarning
from lowlp.numeric.host_array import AnyArray
from lowlp.numeric.scale_types import SCALE_DTYPES
from lowlp.weights.packing import packed_shape, placement_name
from lowlp.weights.quantized_tensor import QuantizedTensor

from .spec import TABLE_EXPONENT, LinearSpec, check_weight

NUMPY_TYPES: Final[dict[str, np.dtype[Any]]] = {
    **SCALE_DTYPES,
    **{name: np.dtype(name) for name in ("int8", "uint8", "int16")},
}
"""The types of activations, results, scales, zero points and offsets."""

ALIGN_BYTES: Final = 16
"""Of weights always; of x and its rows where wide loads are to read them."""
# From this part of the bytes on, padding gets a warning.
_NOTABLE_PADDING: Final = 1 / 8
# So that f32 holds the inverse of the power of two.
_LEAST_POWER: Final = -127
_MOST_POWER: Final = 149


def spec_for(
    qw: QuantizedTensor,
    activation: str,
    out: str,
    bias: str = "",
    aligned: bool = False,
    epilogue: str = "",
    residual: str = "",
) -> LinearSpec:
    """The spec of the kernel for these weights. Raises `LowlpValueError`, which names `qw`, where there is none."""
    n, k = qw.shape
    table = qw.codec.table
    if table is None:
        check_weight(qw.dtype, activation, "qw")
    return LinearSpec(
        n=n,
        k=k,
        weight=qw.dtype.name if table is None else f"lut{qw.bits}",
        group_size=qw.group_size,
        activation=activation,
        out=out,
        scale=qw.codec.scale,
        zeros=qw.codec.zeros or "",
        offsets=qw.codec.offsets or "",
        table="" if table is None else table.scope,
        scale2=qw.scale2 is not None,
        bias=bias,
        epilogue=epilogue,
        residual=residual,
        aligned=aligned,
    )


def form_of_operands(spec: LinearSpec) -> str:
    """Operands of weights in one form are alike: by the activation type, and whether gate and up are packed apart."""
    return spec.activation + (" apart" if spec.products * spec.packed_rows_of_product > spec.n else "")


def host_operands(qw: QuantizedTensor, activation: str, epilogue: str = "") -> tuple[AnyArray | float, ...]:
    """Packed weights, scales, zeros or offsets, the table and its inverse factor, scale2: what a kernel takes between x
    and the bias, without what these weights do not have. The packed weights are those that `qw` holds where it is of
    the family of the activations.

    With gate and up whose rows are no whole units, the packed weights are those of gate, and after them those of up.
    """
    spec = spec_for(qw, activation, activation, epilogue=epilogue)
    _warn_of_padding(spec)
    is_apart = spec.products * spec.packed_rows_of_product > spec.n
    packed = qw.packed_apart(activation, spec.products) if is_apart else qw.packed_for(activation)
    parts: list[AnyArray | float] = [np.ascontiguousarray(packed), _per_row(qw, qw.scales)]
    corrector = qw.zeros if qw.zeros is not None else qw.offsets
    if corrector is not None:
        parts.append(_per_row(qw, corrector))
    if qw.lut is not None:
        parts.extend(table_entries(qw.lut, activation))
    if qw.scale2 is not None:
        parts.append(float(qw.scale2))
    return tuple(parts)


def table_entries(lut: AnyArray, activation: str) -> tuple[AnyArray, float]:
    """The entries of tables times a power of two, in the activation type, and the inverse of that power.

    The power brings the largest entry, of all tables, to the top of f16's range, to at least 2^15; or in bf16 between
    1/2 and 1 (to 2, where it is 2^127 and more). Entries are rounded to nearest even, so they are exact where any power
    makes all of them exact (in bf16: and they span less than 2^126). None overflows, and those that become subnormal
    are 2^-29 of the largest or less.

    Where scales go on weights, kernels take entries of at most 1 (`parts.decoder`): of f16 entries times 2^-16.
    What entries far below the largest lose by that is less than 2^-24 of the largest.
    """
    largest = float(np.abs(lut.astype(np.float64)).max())
    exponent = TABLE_EXPONENT[activation] - int(np.frexp(largest)[1]) if largest else 0
    factor = 2.0 ** min(max(exponent, _LEAST_POWER), _MOST_POWER)
    entries = _rounded(lut, factor, activation)
    if not np.isfinite(entries.astype(np.float64)).all():
        # By rounding up; half of it is a power of two then.
        factor /= 2
        entries = _rounded(lut, factor, activation)
    # The largest numbers of float32 may not become infinite by rounding up.
    too_large = np.abs(entries.astype(np.float64)) > float(np.finfo(np.float32).max) * factor
    entries = np.where(too_large, np.nextafter(entries, entries.dtype.type(0)), entries)
    return np.ascontiguousarray(entries), 1.0 / factor


def _rounded(lut: AnyArray, factor: float, activation: str) -> AnyArray:
    # float64 -> bfloat16 would round twice in ml_dtypes; float32 has all 24 bits of an entry.
    with np.errstate(over="ignore"):
        return (lut.astype(np.float64) * factor).astype(np.float32).astype(NUMPY_TYPES[activation])


def padding_bytes(spec: LinearSpec) -> tuple[int, int]:
    """Bytes of packed weights, and how many of these pad the rows' groups."""
    rows = spec.products * spec.packed_rows_of_product
    shape = packed_shape(rows, spec.k, spec.group_size, placement_name(spec.weight, spec.activation))
    packed = 4 * math.prod(shape)
    return packed, packed - shape[0] * spec.rows_of_unit * spec.k * spec.bits // 8


@functools.cache
def _warn_of_padding(spec: LinearSpec) -> None:
    """Warns, once for each kind and shape of weights, of padding that takes a notable part of the bytes."""
    packed, padding = padding_bytes(spec)
    if padding > _NOTABLE_PADDING * (packed - padding):
        warnings.warn(
            f"qw: groups of {spec.group_size} in rows of {spec.k} are padded to 16, 32 or a multiple of 64, and rows "
            f"to multiples of 64: {packed} bytes instead of {packed - padding}; slower but exact",
            PaddingWarning,
            stacklevel=2,
        )


def _per_row(qw: QuantizedTensor, part: AnyArray) -> AnyArray:
    """Scales, zeros or offsets as kernels read them, [K / group_size, N]: one of the whole tensor is repeated."""
    n, k = qw.shape
    spread: NDArray[Any] = np.ascontiguousarray(np.broadcast_to(part, (n, k // qw.group_size)).T)
    # Launches know floats of 8 bits as bytes.
    return spread.view(np.uint8) if spread.itemsize == 1 else spread
