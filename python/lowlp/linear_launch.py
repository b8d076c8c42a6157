"""`lowlp.linear` on CUDA tensors.

The first call for a device, types, M and an alignment finds the kernel, uploads the weights and keeps both with the
weights, as a `_PreparedCall`. Later calls compare what it was prepared for, allocate the result, and launch.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.dependent_launch import no_dependent_launch
from lowlp_runtime.device import multiprocessors
from lowlp_runtime.launcher import Launcher
from lowlp_runtime.stream import current_torch_stream, stream_handle

from .compiler import arch_of
from .errors import LowlpTypeError, LowlpValueError
from .host_array import AnyArray
from .kernels.linear_operands import ALIGN_BYTES, host_operands, spec_for
from .kernels.linear_schedules import schedule_for
from .kernels.linear_spec import ACTIVATIONS
from .linear_kernels import gpu_kernel, last_arguments
from .quantized_tensor import QuantizedTensor

_ALIGN_ELEMENTS = 8


class _PreparedCall(NamedTuple):
    """What a call needs beside its arguments.

    launcher  of the kernel
    operands  what the kernel takes between x and the bias, as numbers: the addresses of packed weights, scales ...
    last      what it takes behind the row stride of x
    tensors   keeps the operands alive
    n         columns of the result
    out       its type
    device    where it lies
    """

    launcher: Launcher
    operands: tuple[int | float, ...]
    last: tuple[int, ...]
    tensors: tuple[Any, ...]
    n: int
    out: Any
    device: Any


def linear_on_gpu(
    x: Any, qw: QuantizedTensor, bias: Any, out_dtype: str | None, stream: object, batch_invariant: bool = False
) -> Any:
    """`lowlp.linear` for a CUDA tensor x; `out_dtype` is a name or None."""
    torch: Any = sys.modules["torch"]
    ordinal = x.get_device()
    current = current_torch_stream(ordinal)
    if stream is not None and stream_handle(stream) != current:
        # Also the result, and a copy of x if there is one, are made in the order of that stream.
        with torch.cuda.stream(torch.cuda.ExternalStream(stream_handle(stream), device=x.device)):
            return linear_on_gpu(x, qw, bias, out_dtype, None, batch_invariant)
    shape = x.shape
    dimensions = len(shape)
    if dimensions == 2:
        rows, (m, k), (stride, step) = x, shape, x.stride()
    elif dimensions and shape[-1] and x.is_contiguous():
        rows, k, step = x, shape[-1], 1
        m, stride = x.numel() // k, k
    else:
        check_shapes(shape, None, qw)
        rows = x.reshape(-1, shape[-1])
        (m, k), (stride, step) = rows.shape, rows.stride()
    if step != 1:
        rows = rows.contiguous()
        stride = k
    if m <= 1:
        stride = k
    address = rows.data_ptr()
    aligned = stride % _ALIGN_ELEMENTS == 0 and address % ALIGN_BYTES == 0
    bias_kind = None
    if bias is not None:
        if not is_torch_tensor(bias):
            raise _wrong_bias(bias, x)
        bias = bias.contiguous()
        bias_kind = (bias.dtype, bias.get_device(), bias.shape)
    key = (ordinal, x.dtype, out_dtype, bias_kind, k, m, aligned, batch_invariant)
    kept: _PreparedCall | None = qw.kept_call(key)
    prepared = kept or _prepare(qw, x, bias, out_dtype, m, aligned, batch_invariant)
    y = torch.empty((*shape[:-1], prepared.n), dtype=prepared.out, device=prepared.device)
    if m == 0:
        return y
    if bias is None:
        values = (address, *prepared.operands, y.data_ptr(), m, stride, *prepared.last)
    else:
        values = (address, *prepared.operands, bias.data_ptr(), y.data_ptr(), m, stride, *prepared.last)
    if kept is not None:
        kept.launcher.run(values, ordinal, current)
        return y
    # What is in front on the stream may have written the packed weights.
    with no_dependent_launch():
        prepared.launcher.run(values, ordinal, current)
    qw.keep_call(key, prepared)
    return y


def check_shapes(x_shape: tuple[int, ...], bias_shape: tuple[int, ...] | None, qw: QuantizedTensor) -> None:
    """Raises `LowlpValueError` unless x [..., K] and the bias [N] fit the weights."""
    n, k = qw.shape
    if not x_shape or x_shape[-1] != k:
        raise LowlpValueError(f"x: the last dimension must be K = {k}, got shape {tuple(x_shape)}")
    if bias_shape is not None and tuple(bias_shape) != (n,):
        raise LowlpValueError(f"bias: must have shape ({n},), got {tuple(bias_shape)}")


def device_operands(qw: QuantizedTensor, activation: str, device: Any) -> tuple[Any, ...]:
    """As `host_operands`, with tensors of PyTorch on `device` in place of arrays."""
    parts = host_operands(qw, activation)
    return tuple(_upload(part, device) if isinstance(part, np.ndarray) else part for part in parts)


def _wrong_bias(bias: Any, x: Any) -> LowlpTypeError:
    return LowlpTypeError(f"bias: expected a tensor of float16, bfloat16 or float32 on {x.device}, got {bias!r:.80}")


def _prepare(
    qw: QuantizedTensor, x: Any, bias: Any, out_dtype: str | None, m: int, aligned: bool, batch_invariant: bool
) -> _PreparedCall:
    """Checks what the key of a kept call holds, and finds what such calls need."""
    torch: Any = sys.modules["torch"]
    types = _types()
    names = {dtype: name for name, dtype in types.items()}
    activation = names.get(x.dtype)
    if activation not in ACTIVATIONS:
        raise LowlpTypeError(f"x: expected float16 or bfloat16, got {x.dtype}")
    if bias is not None and (bias.dtype not in names or bias.device != x.device):
        raise _wrong_bias(bias, x)
    check_shapes(x.shape, None if bias is None else bias.shape, qw)
    out = out_dtype or activation
    spec = spec_for(qw, activation, out, "" if bias is None else names[bias.dtype], aligned)
    arch = arch_of(x.get_device())
    schedule = schedule_for(spec, m, arch, batch_invariant)
    launcher = gpu_kernel(spec, schedule, arch).launcher
    last = last_arguments(spec, schedule, m, multiprocessors(x.get_device()))
    with torch.cuda.device(x.device):
        tensors = qw.prepared(f"{x.device} {activation}", lambda: device_operands(qw, activation, x.device))
    operands = tuple(launcher.read(place, tensor) for place, tensor in enumerate(tensors, 1))
    return _PreparedCall(launcher, operands, last, tensors, qw.shape[0], types[out], x.device)


def _types() -> dict[str, Any]:
    torch: Any = sys.modules["torch"]
    return {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def _upload(array: AnyArray, device: Any) -> Any:
    """A copy of a host array on `device`, byte for byte."""
    torch: Any = sys.modules["torch"]
    data = np.ascontiguousarray(array).view(np.uint8).reshape(-1).copy()
    # The same names. PyTorch has few unsigned types, and a launch takes signed ones for them.
    element = getattr(torch, {"uint32": "int32"}.get(array.dtype.name, array.dtype.name))
    return torch.from_numpy(data).to(device).view(element)
