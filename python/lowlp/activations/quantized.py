"""`QuantizedActivations`: codes, and the scale of each row or group."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from lowlp.numeric.bit_planes import planes_of
from lowlp.numeric.dtypes import DType
from lowlp.numeric.host_array import as_host_array, as_torch_tensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

from .kinds import ActivationKind, activation_kind


class QuantizedActivations:
    """Activations [..., K] as codes of 1 to 8 bits with a scale for each row, or for each group of a row.

        value = scale * q                       int2 to int8, ternary, f8e4m3, f8e5m2
        value = scale * (q - zero)              uint1 to uint8, int2 to int8
        value = scale * (2 q - (2^b - 1))       bipolar1 to bipolar8 (APT-LLM, section III-A)

    codes       [..., K], K >= 1: int8 for int2 to int8 and ternary, the number itself; uint8 for uint and bipolar, the
                code, which counts up from 0; float8_e4m3fn or float8_e5m2 for floats
    dtype       'int2' to 'int8', 'uint1' to 'uint8', 'bipolar1' to 'bipolar8', 'ternary', 'f8e4m3', 'f8e5m2', or a
                `DType`
    scales      float32 [..., 1], or [..., K / group_size]; or one number, which is repeated for every row. NaN marks a
                row that held NaN or an infinity
    zeros       int32 of the shape of scales, integers only; or one number; None: 0
    sums        int32 [...], or [..., K / group_size]: the sums of codes along K, or along each group; None: computed
                at first use
    group_size  divides K; None: a row has one scale

    Arrays are numpy's, or tensors of PyTorch, all on one device; none is copied. Codes beyond the type are refused,
    but those on a GPU are not read. Raises `LowlpTypeError` and `LowlpValueError`, which name the argument.
    """

    __slots__ = ("_codes", "_group_size", "_kind", "_make_planes", "_planes", "_scales", "_sums", "_zeros")

    def __init__(
        self,
        codes: Any,
        *,
        dtype: str | DType,
        scales: Any,
        zeros: Any = None,
        sums: Any = None,
        group_size: int | None = None,
    ) -> None:
        self._kind = activation_kind(dtype)
        self._codes = _checked_codes(codes, self._kind)
        self._group_size = checked_group_size(group_size, self.shape[-1])
        if zeros is not None and not self._kind.dtype.is_integer:
            raise LowlpValueError(f"zeros: allowed for integers only, got dtype {self._kind.name}")
        self._scales = self._factor("scales", scales, "float32")
        self._zeros = None if zeros is None else self._factor("zeros", zeros, "int32")
        self._sums = None if sums is None else self._part("sums", sums, "int32", self._shape_of_sums())
        self._planes: Any = None
        self._make_planes: Callable[[QuantizedActivations], Any] | None = None

    @classmethod
    def _of(
        cls,
        kind: ActivationKind,
        codes: Any,
        scales: Any,
        zeros: Any,
        sums: Any,
        group_size: int | None,
        planes: Any = None,
        make_planes: Callable[[QuantizedActivations], Any] | None = None,
    ) -> QuantizedActivations:
        """Of parts that were just made, and need no check; `make_planes` makes planes when they are asked for."""
        made = cls.__new__(cls)
        made._kind, made._codes, made._scales, made._zeros, made._sums = kind, codes, scales, zeros, sums
        made._group_size, made._planes, made._make_planes = group_size, planes, make_planes
        return made

    @property
    def dtype(self) -> DType:
        """The type of the codes: `lowlp.int2` for ternary."""
        return self._kind.dtype

    @property
    def is_ternary(self) -> bool:
        """True where only -1, 0 and 1 are used."""
        return self._kind.ternary

    @property
    def shape(self) -> tuple[int, ...]:
        """[..., K]."""
        return tuple(self._codes.shape)

    @property
    def group_size(self) -> int | None:
        """Codes that share a scale; None: all of a row."""
        return self._group_size

    @property
    def codes(self) -> Any:
        """[..., K]; see the class for their types."""
        return self._codes

    @property
    def scales(self) -> Any:
        """float32 [..., 1], or [..., K / group_size]."""
        return self._scales

    @property
    def zeros(self) -> Any:
        """int32 of the shape of scales, or None."""
        return self._zeros

    @property
    def sums(self) -> Any:
        """int32 [...], with groups [..., K / group_size]: the sums of `codes` as integers. None for floats."""
        if self._sums is None and not self._kind.is_float:
            grouped = self._codes.reshape(self._shape_of_groups())
            torch: Any = sys.modules.get("torch")
            kind = torch.int32 if is_torch_tensor(grouped) else np.int32
            self._sums = grouped.sum(-1, dtype=kind).reshape(self._shape_of_sums())
        return self._sums

    @property
    def planes(self) -> Any:
        """uint32 [..., bits, ceil(K / 32)]: bit i of 32 codes in a word, in the order of
        `lowlp.numeric.bit_planes.BIT_OF_CODE`; made at first use.

        Of codes that count up from the type's least number: of int b, of u = q + 2^(b - 1), of ternary as of int2. The
        codes that the last word lacks are 0. Raises `LowlpTypeError` for floats.
        """
        if self._planes is None:
            if self._kind.is_float:
                raise LowlpTypeError(f"planes: integers and bipolar types have planes, {self._kind.name} has none")
            self._planes = (self._make_planes or _planes_on_host)(self)
        return self._planes

    def dequantize(self) -> Any:
        """float32 [..., K], in the library and on the device of the codes: the exact meaning, rounded once."""
        is_torch = is_torch_tensor(self._codes)
        kind: Any = sys.modules["torch"].float32 if is_torch else np.float32
        values = self._codes.to(kind) if is_torch else self._codes.astype(kind)
        if self._kind.is_bipolar:
            values = values * 2 - self._kind.high
        grouped = values.reshape(self._shape_of_groups())
        if self._zeros is not None:
            zeros = self._zeros[..., None]
            grouped = grouped - (zeros.to(kind) if is_torch else zeros.astype(kind))
        with np.errstate(invalid="ignore", over="ignore"):
            return (grouped * self._scales[..., None]).reshape(self.shape)

    def __repr__(self) -> str:
        grouped = "" if self._group_size is None else f", group_size={self._group_size}"
        return f"QuantizedActivations({list(self.shape)}, {self._kind.name}{grouped})"

    def _shape_of_groups(self) -> tuple[int, ...]:
        scales = self._shape_of_scales()
        return (*scales, self.shape[-1] // scales[-1])

    def _shape_of_scales(self) -> tuple[int, ...]:
        return (*self.shape[:-1], 1 if self._group_size is None else self.shape[-1] // self._group_size)

    def _shape_of_sums(self) -> tuple[int, ...]:
        shape = self._shape_of_scales()
        return shape[:-1] if self._group_size is None else shape

    def _factor(self, argument: str, value: Any, dtype: str) -> Any:
        """Scales or zero points: an array of the right shape, or one number for all rows."""
        shape = self._shape_of_scales()
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number:
            return self._part(argument, value, dtype, shape)
        bits = 31 if dtype == "int32" else 128
        if (dtype == "int32" or isinstance(value, int)) and not abs(value) < 2**bits:
            raise LowlpValueError(f"{argument}: must be below 2^{bits} in magnitude, got {value!r:.40}")
        if dtype == "float32" and math.isfinite(value) and not abs(value) < 2.0**bits:
            raise LowlpValueError(f"{argument}: must be finite in float32, or NaN, got {value!r:.40}")
        if dtype == "int32" and value != int(value):
            raise LowlpValueError(f"{argument}: must be a whole number, got {value}")
        if is_torch_tensor(self._codes):
            torch: Any = sys.modules["torch"]
            return torch.full(shape, value, dtype=getattr(torch, dtype), device=self._codes.device)
        return np.full(shape, value, dtype)

    def _part(self, argument: str, value: Any, dtype: str, shape: tuple[int, ...]) -> Any:
        like = "a tensor on its device" if is_torch_tensor(self._codes) else "a numpy array"
        same = is_torch_tensor(value) if is_torch_tensor(self._codes) else isinstance(value, np.ndarray)
        if not same or (is_torch_tensor(value) and value.device != self._codes.device):
            raise LowlpTypeError(f"{argument}: expected {like}, as codes are one, got {type(value).__name__}")
        if str(value.dtype).removeprefix("torch.") != dtype:
            raise LowlpTypeError(f"{argument}: expected {dtype}, got {value.dtype}")
        if tuple(value.shape) != shape:
            raise LowlpValueError(f"{argument}: must have shape {shape}, got {tuple(value.shape)}")
        return value


def checked_group_size(group_size: object, k: int) -> int | None:
    """A divisor of K, or None. Raises `LowlpTypeError` and `LowlpValueError`."""
    if group_size is None:
        return None
    if isinstance(group_size, bool) or not isinstance(group_size, int | np.integer):
        raise LowlpTypeError(f"group_size: expected None or an int, got {group_size!r:.40}")
    if group_size < 1 or k % group_size:
        raise LowlpValueError(f"group_size: must divide K = {k}, got {group_size}")
    return int(group_size)


def _planes_on_host(activations: QuantizedActivations) -> Any:
    kind, codes = activations._kind, activations.codes
    host = as_host_array(codes.cpu() if is_torch_tensor(codes) else codes, "codes")
    counted = (host.astype(np.int16) - kind.low).astype(np.uint8)
    planes = planes_of(counted, kind.dtype.bits)
    return as_torch_tensor(planes).to(codes.device) if is_torch_tensor(codes) else planes


def _checked_codes(codes: Any, kind: ActivationKind) -> Any:
    if not is_torch_tensor(codes) and not isinstance(codes, np.ndarray):
        raise LowlpTypeError(f"codes: expected a numpy array or a tensor of PyTorch, got {type(codes).__name__}")
    if isinstance(codes, np.ma.MaskedArray):
        raise LowlpTypeError("codes: masked arrays are not supported; pass .filled(value), or .data without the mask")
    if is_torch_tensor(codes) and "strided" not in str(codes.layout):
        raise LowlpTypeError(f"codes: expected a dense tensor, got one of {codes.layout}; use .to_dense()")
    if str(codes.dtype).removeprefix("torch.") != str(kind.stored):
        raise LowlpTypeError(f"codes: of {kind.name} are {kind.stored}, got {codes.dtype}")
    if len(codes.shape) < 1 or not codes.shape[-1]:
        raise LowlpValueError(f"codes: must have a last dimension K of at least 1, got shape {tuple(codes.shape)}")
    on_host = isinstance(codes, np.ndarray) or codes.device.type == "cpu"
    if kind.is_float or not on_host or 0 in codes.shape:
        return codes
    low, high = (-1, 1) if kind.ternary else (kind.low, kind.high)
    least, most = int(codes.min()), int(codes.max())
    if least < low or most > high:
        raise LowlpValueError(f"codes: of {kind.name} are {low} to {high}, got {least if least < low else most}")
    return codes
