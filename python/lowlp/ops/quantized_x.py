"""Quantised activations as kernels of `linear` take them, and the sums of weights that zero points of x multiply."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lowlp.activations.quantized import QuantizedActivations
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.integer_sums import takes_sums_of_rows, takes_sums_of_weights
from lowlp.kernels.linear.operands import spec_for
from lowlp.kernels.linear.paths import Path, choose_path
from lowlp.kernels.linear.spec import SUMS, LinearSpec
from lowlp.numeric.dtypes import DType, dtype_among, library_name
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.array import is_torch_tensor

RESULTS: Final = ("f16", "bf16", "f32", SUMS)
OF_X: Final = ("x_scales", "x_sums", "x_zeros", "weight_sums")
"""Roles of operands that come with x."""
_DEFAULT_RESULT: Final = "f16"


@dataclass(frozen=True)
class QuantizedX:
    """Activations, by what kernels take of them.

    activation  'int8', 'uint8', 'f8e4m3' or 'f8e5m2': the elements of the codes
    bits        of a code
    bipolar     the same of bipolar codes; 0: others
    codes       [..., K]
    given       the activations they are of
    """

    activation: str
    bits: int
    bipolar: int
    codes: Any
    given: QuantizedActivations

    @staticmethod
    def of(x: QuantizedActivations) -> QuantizedX:
        """Raises `LowlpValueError` for scales of groups."""
        if x.group_size is not None:
            raise LowlpValueError(
                f"x: linear takes activations with a scale for each row or one for all, got groups of {x.group_size}"
            )
        kind, is_signed = x.dtype, x.dtype.is_integer and x.dtype.is_signed
        activation = kind.name if kind.is_float else "int8" if is_signed else "uint8"
        is_bipolar = not kind.is_float and not kind.is_integer
        return QuantizedX(activation, kind.bits, kind.bits if is_bipolar else 0, x.codes, x)

    @property
    def has_zeros(self) -> bool:
        """Whether rows have zero points."""
        return self.given.zeros is not None

    def path(self, qw: QuantizedTensor, arch: str, wanted: str | None) -> Path:
        """By which products these weights are multiplied."""
        n, k = qw.shape[-2:]
        rows = math.prod(self.codes.shape[:-1])
        return choose_path(qw.codec, n, k, self.activation, self.bits, arch, wanted, qw.family, rows)

    def spec(self, qw: QuantizedTensor, out: str, bias: str, aligned: bool, epilogue: str, residual: str) -> LinearSpec:
        """Of the kernel for these weights."""
        return spec_for(
            qw,
            self.activation,
            out,
            bias,
            aligned,
            epilogue,
            residual,
            x_scale="" if out == SUMS else "token",
            x_zeros=self.has_zeros,
            x_bipolar=self.bipolar,
        )

    def operands(self, spec: LinearSpec, qw: QuantizedTensor) -> dict[str, Any]:
        """What kernels for `spec` take beside the codes, by role: arrays of one dimension, in the library of x, and
        sums of weights as numpy's."""
        found: dict[str, Any] = {}
        if spec.x_scale:
            found["x_scales"] = self.given.scales.reshape(-1)
        if not spec.is_of_integers:
            return found
        if takes_sums_of_rows(spec):
            found["x_sums"] = self.given.sums.reshape(-1)
        if spec.x_zeros:
            found["x_zeros"] = self.given.zeros.reshape(-1)
        if takes_sums_of_weights(spec):
            found["weight_sums"] = sums_of_weights(spec, qw)
        return found

    def dequantized(self, dtype: Any) -> Any:
        """The values as `dtype`, for products of halves."""
        values = self.given.dequantize()
        return values.to(dtype) if is_torch_tensor(values) else values.astype(dtype)


def result_of(out_dtype: object, default: str = _DEFAULT_RESULT) -> str:
    """The type of results by name. Raises `LowlpValueError` for others than `RESULTS`."""
    if out_dtype is None:
        return default
    if library_name(out_dtype) in (SUMS, "int32"):
        return SUMS
    found: str = dtype_among(out_dtype, "out_dtype", RESULTS[:-1])
    return found


def sums_of_weights(spec: LinearSpec, qw: QuantizedTensor) -> NDArray[Any]:
    """The sum of the numbers of each row, [N], of experts [E N]: int32, as integer scales of groups multiply them;
    float32 of the weights where scales of groups are floats, without second scales."""
    key = f"sums of weights {spec.adds_integers} {spec.has_integer_scales}"
    return np.asarray(qw.derived(key, lambda: {"sums": _sums_of_weights(spec, qw)})["sums"])


def _sums_of_weights(spec: LinearSpec, qw: QuantizedTensor) -> NDArray[Any]:
    *rows, k = qw.shape
    if not spec.adds_integers:
        total = qw.dequantize().sum(-1, dtype=np.float64)
        return np.asarray(total / _second_scales(qw), np.float32).reshape(-1)
    code = qw.codec.code
    assert isinstance(code, DType)
    numbers = code.decode(np.arange(1 << code.bits, dtype=np.uint8)).astype(np.int64)[qw.codes]
    grouped = numbers.reshape(*rows, -1, qw.group_size or k)
    if qw.zeros is not None:
        grouped = grouped - np.asarray(qw.zeros).astype(np.int64)[..., None]
    of_groups = grouped.sum(-1)
    if spec.has_integer_scales:
        of_groups = of_groups * np.asarray(qw.scales).astype(np.int64)
    return np.asarray(of_groups.sum(-1), np.int32).reshape(-1)


def _second_scales(qw: QuantizedTensor) -> Any:
    return 1.0 if qw.scale2 is None else np.asarray(qw.scale2, np.float64)
