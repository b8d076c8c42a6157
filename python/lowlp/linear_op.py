"""`lowlp.linear`: activations times quantised weights, where the activations are."""

from __future__ import annotations

import functools
import sys
from dataclasses import asdict
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from lowlp_runtime.array import is_torch_tensor

from .compiler import DEFAULT_ARCH, CompiledKernel, compile, compile_cpu, current_arch
from .dtypes import DType, dtype, dtype_among, named_dtype
from .errors import LowlpTypeError, LowlpValueError
from .host_array import as_host_array, as_torch_tensor
from .kernel_cache import Once
from .kernels.linear import ACTIVATIONS, OUTPUTS, LinearSpec, check_weight, linear_kernel
from .packing_0 import PACKED_FORMAT_VERSION, pack, packed_shape
from .quantized_tensor import QuantizedTensor, group_size_of

AnyArray = NDArray[Any]

_NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
}
_ALIGN_BYTES = 16
_INT32_MAX = 2**31 - 1
_kernels = Once()


def linear(
    x: Any,
    qw: QuantizedTensor,
    *,
    bias: Any = None,
    out_dtype: str | DType | None = None,
    batch_invariant: bool = False,
    stream: object = None,
) -> Any:
    """y = x @ w^T + bias, with w the quantised weights.

    x                [..., K], float16 or bfloat16, any row stride; numpy, or a tensor of PyTorch on the CPU: the CPU
                     target computes; on a GPU: that GPU does, on `stream` or PyTorch's current one
    qw               weights [N, K]; packed at their first use on a device, and kept
    bias             [N], float16, bfloat16 or float32, or None
    out_dtype        'f16', 'bf16' or 'f32'; None: as x
    batch_invariant  a row's result does not depend on M. Always so with the present kernels.

    Returns [..., N] of `out_dtype`, in the library of x. Sums are f32, in one fixed order; the result is rounded once.
    Raises `LowlpTypeError` and `LowlpValueError` for arguments that do not fit, `CpuTargetError`, `DeviceError`.
    """
    if not isinstance(qw, QuantizedTensor):
        raise LowlpTypeError(f"qw: expected a QuantizedTensor, got {type(qw).__name__}")
    _check_bool(batch_invariant, "batch_invariant")
    out = None if out_dtype is None else dtype_among(out_dtype, "out_dtype", OUTPUTS)
    if isinstance(x, np.ndarray):
        if stream is not None:
            raise LowlpValueError("stream: allowed for CUDA tensors only, and x is a numpy array")
        return _linear_numpy(x, qw, bias, out)
    if is_torch_tensor(x):
        if x.is_cuda:
            return _linear_torch(x, qw, bias, out, stream)
        if stream is not None:
            raise LowlpValueError("stream: allowed for CUDA tensors only, and x is on the CPU")
        host_bias = bias if bias is None else as_host_array(bias, "bias")
        return as_torch_tensor(_linear_numpy(as_host_array(x, "x"), qw, host_bias, out))
    raise LowlpTypeError(f"x: expected a numpy array or a tensor of PyTorch, got {type(x).__name__}")


def compile_linear(
    *,
    n: int,
    k: int,
    weight: str | DType,
    m: tuple[int, int] | None = None,
    group_size: int | None = 128,
    activation: str | DType = "f16",
    target: str = DEFAULT_ARCH,
    schedule: None = None,
    out_dtype: str | DType | None = None,
    scale_dtype: str | DType = "f16",
    zeros: bool = False,
    offsets: bool = False,
    scale2: bool = False,
    bias: str | DType | None = None,
) -> CompiledKernel:
    """Compiles the kernel of `linear` ahead of time.

    n, k         the weights' shape [N, K], each up to 2**31 - 1
    weight       type of the codes, by name or as a `DType`: an integer or float of 1 to 8 bits
    m            the least and the largest number of rows it is meant for; the kernel is right for every number
    group_size   divides K; None or -1: one group a row
    activation   type of x: 'f16' or 'bf16'
    target       architecture, 'sm_90a' for example
    schedule     None: there is one
    out_dtype    'f16', 'bf16' or 'f32'; None: as the activation
    scale_dtype  type of the scales: 'f16', 'bf16' or 'f32'
    zeros        with zero points, f32 [N, K / group_size]; integers only
    offsets      with offsets, f32 [N, K / group_size]
    scale2       with a second scale of the whole tensor, an f32 number; excludes offsets
    bias         type of a bias [N]: 'f16', 'bf16' or 'f32'; or None

    The kernel takes x, the packed weights (`lowlp.packing.pack`), scales, zeros or offsets, scale2, bias, y, m and
    the row stride of x, in this order, without those it does not have; x is 16-byte aligned and its stride a multiple
    of 8.
    Raises `LowlpTypeError` and `LowlpValueError`, which name the argument, and `AssembleError` where ptxas is missing.
    """
    if schedule is not None:
        raise LowlpValueError(f"schedule: expected None, got {schedule!r}")
    rows, columns = _extent(n, "n"), _extent(k, "k")
    meant_for = _rows_meant(m)
    found = named_dtype(weight, "weight")
    x_type = dtype_among(activation, "activation", ACTIVATIONS)
    check_weight(found, x_type)
    _check_bool(zeros, "zeros")
    _check_bool(offsets, "offsets")
    _check_bool(scale2, "scale2")
    if zeros and offsets:
        raise LowlpValueError("zeros, offsets: at most one of them may be given, got both")
    if zeros and not found.is_integer:
        raise LowlpValueError(f"zeros: allowed for integer types only, got weight {found.name}; use offsets")
    spec = LinearSpec(
        n=rows,
        k=columns,
        weight=found.name,
        group_size=group_size_of(columns, group_size),
        activation=x_type,
        out=x_type if out_dtype is None else dtype_among(out_dtype, "out_dtype", OUTPUTS),
        scale=dtype_among(scale_dtype, "scale_dtype", OUTPUTS),
        zeros=bool(zeros),
        offsets=bool(offsets),
        scale2=bool(scale2),
        bias="" if bias is None else dtype_among(bias, "bias", OUTPUTS),
        aligned=True,
    )
    return compile(linear_kernel(spec), target, notes=_notes(spec, meant_for))


def _check_bool(value: object, argument: str) -> None:
    if not isinstance(value, bool | np.bool_):
        raise LowlpTypeError(f"{argument}: expected a bool, got {value!r:.40}")


def _is_int(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _extent(value: Any, argument: str) -> int:
    if not _is_int(value):
        raise LowlpTypeError(f"{argument}: expected an int, got {value!r:.40}")
    if not 1 <= value <= _INT32_MAX:
        raise LowlpValueError(f"{argument}: must be in 1..{_INT32_MAX}, got {value}")
    return int(value)


def _rows_meant(m: Any) -> tuple[int, int] | None:
    if m is None:
        return None
    if not isinstance(m, tuple | list) or not all(map(_is_int, m)):
        raise LowlpTypeError(f"m: expected None or a pair of ints (least, largest), got {m!r:.40}")
    if len(m) != 2 or not 0 <= m[0] <= m[1] <= _INT32_MAX:
        raise LowlpValueError(f"m: expected 0 <= least <= largest <= {_INT32_MAX}, got {m!r:.40}")
    return int(m[0]), int(m[1])


def _notes(spec: LinearSpec, m: tuple[int, int] | None) -> dict[str, object]:
    tiles_n, groups, chunks, tile_bytes = packed_shape(spec.n, spec.k, spec.group_size, dtype(spec.weight).bits)
    weight_bytes = tiles_n * groups * chunks * tile_bytes
    scale_bytes = spec.n * groups * _NUMPY_TYPES[spec.scale].itemsize
    corrector_bytes = spec.n * groups * 4 * (spec.zeros or spec.offsets)
    return {
        "linear": {name: value for name, value in asdict(spec).items() if value not in ("", False)},
        "m": list(m) if m else "any",
        "packed format": PACKED_FORMAT_VERSION,
        "plan": {
            "decode": "code by code to f32, then to the activation type",
            "scales": "on the f32 sums of a group",
            "operands": "x as A, weights as B of mma m16n8k16",
        },
        "floor": {
            "weight bytes": weight_bytes,
            "scale bytes": scale_bytes + corrector_bytes,
            "bytes per row of x": 2 * spec.k + _NUMPY_TYPES[spec.out].itemsize * spec.n,
        },
    }


def _spec_for(qw: QuantizedTensor, activation: str, out: str, bias: str, aligned: bool) -> LinearSpec:
    if qw.lut is not None:
        raise LowlpValueError(
            f"qw: {qw.codec} has a table of values; kernels are offered for integers and floats of 1 to 8 bits"
        )
    check_weight(qw.dtype, activation, "qw")
    n, k = qw.shape
    return LinearSpec(
        n=n,
        k=k,
        weight=qw.dtype.name,
        group_size=qw.group_size,
        activation=activation,
        out=out,
        scale=_kernel_scale(qw),
        zeros=qw.zeros is not None,
        offsets=qw.offsets is not None,
        scale2=qw.scale2 is not None,
        bias=bias,
        aligned=aligned,
    )


def _kernel_scale(qw: QuantizedTensor) -> str:
    """The type in which a kernel reads the scales: small types are widened to f32, which holds them exactly."""
    return qw.codec.scale if qw.codec.scale in OUTPUTS else "f32"


def _type_name(wanted: object) -> str:
    return next(name for name, dtype in _NUMPY_TYPES.items() if dtype == wanted)


def _check_shapes(x_shape: tuple[int, ...], bias_shape: tuple[int, ...] | None, qw: QuantizedTensor) -> None:
    n, k = qw.shape
    if not x_shape or x_shape[-1] != k:
        raise LowlpValueError(f"x: the last dimension must be K = {k}, got shape {tuple(x_shape)}")
    if bias_shape is not None and tuple(bias_shape) != (n,):
        raise LowlpValueError(f"bias: must have shape ({n},), got {tuple(bias_shape)}")


def _aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
    """As numpy.empty, at an address that wide accesses allow."""
    count = int(np.prod(shape))
    buffer = np.empty(count * dtype.itemsize + _ALIGN_BYTES, np.uint8)
    start = -int(buffer.__array_interface__["data"][0]) % _ALIGN_BYTES
    return buffer[start : start + count * dtype.itemsize].view(dtype).reshape(shape)


def _correctors(qw: QuantizedTensor) -> AnyArray | None:
    part = qw.zeros if qw.zeros is not None else qw.offsets
    return None if part is None else _per_row(qw, part, "f32")


def _per_row(qw: QuantizedTensor, part: AnyArray, kind: str) -> AnyArray:
    """Scales, zeros or offsets as kernels read them, [N, K / group_size]: one of the whole tensor is repeated."""
    n, k = qw.shape
    shape = (n, k // qw.group_size)
    return np.ascontiguousarray(np.broadcast_to(part.astype(_NUMPY_TYPES[kind], copy=False), shape))


def _packed_on_host(qw: QuantizedTensor) -> tuple[AnyArray, ...]:
    """Packed weights, scales, and zeros or offsets if there are any."""

    def make() -> tuple[AnyArray, ...]:
        packed = pack(qw.codes, qw.group_size, qw.bits)
        weights = _aligned_empty(packed.shape, packed.dtype)
        weights[...] = packed
        correctors = _correctors(qw)
        parts = (weights, _per_row(qw, qw.scales, _kernel_scale(qw)))
        return parts if correctors is None else (*parts, correctors)

    parts: tuple[AnyArray, ...] = qw.prepared("host", make)
    return parts


def _scale2_and(bias: Any, qw: QuantizedTensor) -> tuple[Any, ...]:
    """What a kernel takes after the weights and their groups."""
    return tuple(part for part in (qw.scale2, bias) if part is not None)


# --- numpy: the CPU target --------------------------------------------------------------------------------------------


def _linear_numpy(x: AnyArray, qw: QuantizedTensor, bias: object, out_dtype: str | None) -> AnyArray:
    activation = next((name for name in ACTIVATIONS if x.dtype == _NUMPY_TYPES[name]), None)
    if activation is None:
        raise LowlpTypeError(f"x: expected float16 or bfloat16, got {x.dtype}")
    bias_name = ""
    if bias is not None:
        if not isinstance(bias, np.ndarray) or bias.dtype not in _NUMPY_TYPES.values():
            got = bias.dtype if isinstance(bias, np.ndarray) else type(bias).__name__
            raise LowlpTypeError(f"bias: expected a numpy array of float16, bfloat16 or float32, got {got}")
        bias_name = _type_name(bias.dtype)
        bias = np.ascontiguousarray(bias)
    _check_shapes(x.shape, None if bias is None else bias.shape, qw)
    out = out_dtype or activation
    n, k = qw.shape
    y = np.empty((*x.shape[:-1], n), _NUMPY_TYPES[out])
    rows = x.reshape(-1, k)
    if rows.shape[0] == 0:
        return y
    if rows.strides[1] != rows.itemsize or rows.strides[0] % rows.itemsize or rows.strides[0] < 0:
        rows = np.ascontiguousarray(rows)
    stride = rows.strides[0] // rows.itemsize if rows.shape[0] > 1 else k
    aligned = stride % 8 == 0 and int(rows.__array_interface__["data"][0]) % _ALIGN_BYTES == 0
    spec = _spec_for(qw, activation, out, bias_name, aligned)
    kernel = _kernels.get((spec, "cpu"), functools.partial(_compile_for_cpu, spec))
    extra = _scale2_and(bias, qw)
    kernel(rows, *_packed_on_host(qw), *extra, y.reshape(-1, n), rows.shape[0], stride)
    return y


def _compile_for_cpu(spec: LinearSpec) -> Any:
    return compile_cpu(linear_kernel(spec), notes=_notes(spec, None))


# --- PyTorch: the GPU -------------------------------------------------------------------------------------------------


def _torch_types() -> dict[str, Any]:
    torch = sys.modules["torch"]
    return {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def _upload(array: AnyArray, device: Any) -> Any:
    """A copy of a host array on `device`, byte for byte."""
    torch = sys.modules["torch"]
    name = next((name for name, dtype in _NUMPY_TYPES.items() if dtype == array.dtype), None)
    data = torch.from_numpy(np.ascontiguousarray(array).view(np.uint8).reshape(-1).copy()).to(device)
    return data if name is None else data.view(_torch_types()[name])


def _linear_torch(x: Any, qw: QuantizedTensor, bias: Any, out_dtype: str | None, stream: object) -> Any:
    torch = sys.modules["torch"]
    types = _torch_types()
    activation = next((name for name in ACTIVATIONS if x.dtype == types[name]), None)
    if activation is None:
        raise LowlpTypeError(f"x: expected float16 or bfloat16, got {x.dtype}")
    bias_name = ""
    if bias is not None:
        if not is_torch_tensor(bias) or bias.dtype not in types.values() or bias.device != x.device:
            raise LowlpTypeError(
                f"bias: expected a tensor of float16, bfloat16 or float32 on {x.device}, got {bias!r:.80}"
            )
        bias_name = next(name for name, dtype in types.items() if dtype == bias.dtype)
        bias = bias.contiguous()
    _check_shapes(tuple(x.shape), None if bias is None else tuple(bias.shape), qw)
    out = out_dtype or activation
    n, k = qw.shape
    y = torch.empty((*x.shape[:-1], n), dtype=types[out], device=x.device)
    rows = x.reshape(-1, k)
    if rows.shape[0] == 0:
        return y
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    stride = rows.stride(0) if rows.shape[0] > 1 else k
    aligned = stride % 8 == 0 and rows.data_ptr() % _ALIGN_BYTES == 0
    spec = _spec_for(qw, activation, out, bias_name, aligned)
    with torch.cuda.device(x.device):
        arch = current_arch()
        kernel = _kernels.get((spec, arch), lambda: compile(linear_kernel(spec), arch, notes=_notes(spec, None)))
        parts = qw.prepared(str(x.device), lambda: tuple(_upload(part, x.device) for part in _packed_on_host(qw)))
        extra = _scale2_and(bias, qw)
        kernel(rows, *parts, *extra, y, rows.shape[0], stride, stream=stream)
    return y
