"""Rows of quantised weights by their numbers, dequantised: what an embedding looks up."""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any, Final, NamedTuple

import numpy as np

from lowlp.compiler.compilation import compile
from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp.compiler.kernel_cache import Once
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.operands import NUMPY_TYPES
from lowlp.kernels.rows import RowsSpec, rows_kernel
from lowlp.numeric.dtypes import DType, dtype_among
from lowlp.numeric.host_array import AnyArray, as_host_array, as_torch_tensor
from lowlp.schedules.device import device_of
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.device_workspace import is_captured
from lowlp_runtime.kept import KeptFor
from lowlp_runtime.operand_tensors import torch_type, upload
from lowlp_runtime.stream import current_torch_stream

from .graph_breaks import outside_of_graphs, skip_frames
from .linear_launch import first_call_in_capture
from .row_operands import row_operands, rows_spec

_OUTPUTS: Final = ("f16", "bf16", "f32")
# Kinds of calls that are kept for a tensor; they differ by the number of rows above all.
_MAX_CALLS: Final = 256


class _Call(NamedTuple):
    """A launch in which only the addresses of ids and result change, and what it keeps alive."""

    launch: BoundLaunch
    tensors: dict[str, Any]


class _KeptForWeights:
    """Of one tensor: calls, and its operands by device."""

    def __init__(self) -> None:
        self.calls: dict[object, _Call] = {}
        self.operands: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()


_kept: KeptFor[_KeptForWeights] = KeptFor(_KeptForWeights)
_kernels = Once()


@outside_of_graphs
def embedding(ids: Any, qw: QuantizedTensor, *, out_dtype: str | DType = "f16") -> Any:
    """The rows of w that `ids` name: `qw.dequantize()[ids]`, in the library of ids.

    ids        integers in 0..N-1 of any shape; numpy, or a tensor of PyTorch on the CPU: unpacked there, and no more
               units than have one of the rows; on a GPU: a kernel there, on PyTorch's current stream
    qw         weights [N, K]; uploaded at their first use on a GPU, and kept there as long as `qw` lives
    out_dtype  'f16', 'bf16' or 'f32'

    Returns [*ids.shape, K]: the float32 numbers of `dequantize()`, rounded once. On the CPU other numbers than 0..N-1
    raise `LowlpValueError`; on a GPU, where that would wait for the device, their rows are NaN.
    Raises `LowlpTypeError` and `LowlpValueError` for arguments that do not fit, and `DeviceError`.
    """
    if not isinstance(qw, QuantizedTensor):
        raise LowlpTypeError(f"qw: expected a QuantizedTensor, got {type(qw).__name__}; lowlp.quantize makes one")
    if len(qw.shape) != 2:
        raise LowlpValueError(f"qw: expected weights [N, K], got {list(qw.shape)} of experts; take one with qw[e]")
    out = dtype_among(out_dtype, "out_dtype", _OUTPUTS)
    if is_torch_tensor(ids):
        skip_frames()
    elif not isinstance(ids, np.ndarray):
        raise LowlpTypeError(f"ids: expected a numpy array or a tensor of PyTorch, got {type(ids).__name__}")
    return dequantized_rows(ids, qw, out)


@outside_of_graphs
def dequantized_rows(ids: Any, qw: QuantizedTensor, out: str) -> Any:
    """The same for arguments that are checked."""
    if is_torch_tensor(ids) and ids.is_cuda:
        return _rows_on_gpu(ids, qw, out)
    host = as_host_array(ids, "ids")
    if host.dtype.kind not in "iu":
        raise LowlpTypeError(f"ids: expected integers, got {host.dtype}")
    flat = host.reshape(-1)
    if flat.size and not (flat.min() >= 0 and flat.max() < qw.shape[0]):
        wrong = flat[(flat < 0) | (flat >= qw.shape[0])][0]
        raise LowlpValueError(f"ids: must be in 0..{qw.shape[0] - 1}, got {wrong}")
    with np.errstate(over="ignore"):
        rows = qw.dequantize(flat).astype(NUMPY_TYPES[out]).reshape(*host.shape, qw.shape[1])
    return as_torch_tensor(rows) if is_torch_tensor(ids) else rows


def _rows_on_gpu(ids: Any, qw: QuantizedTensor, out: str) -> Any:
    torch: Any = sys.modules["torch"]
    if ids.dtype not in (torch.int32, torch.int64):
        raise LowlpTypeError(f"ids: expected int32 or int64, got {ids.dtype}")
    given = ids.contiguous()
    ordinal, tokens = ids.get_device(), ids.numel()
    y = torch.empty((*ids.shape, qw.shape[1]), dtype=torch_type(out), device=ids.device)
    if not tokens:
        return y
    kept, current = _kept.of(qw), current_torch_stream(ordinal)
    key = (ordinal, ids.dtype, out, tokens)
    call = kept.calls.get(key)
    if call is None:
        call = _bound(qw, ids, out, tokens, kept, is_captured(current))
        if len(kept.calls) >= _MAX_CALLS:
            kept.calls.clear()
        kept.calls[key] = call
    call.launch.run((given.data_ptr(), y.data_ptr()), ordinal, current)
    return y


def _bound(qw: QuantizedTensor, ids: Any, out: str, tokens: int, kept: _KeptForWeights, captured: bool) -> _Call:
    torch: Any = sys.modules["torch"]
    spec, arch = rows_spec(qw, ids.dtype == torch.int64, out), device_of(ids.get_device()).arch
    if captured and not (_kernels.has((spec, arch)) and str(ids.device) in kept.operands):
        raise first_call_in_capture("ids", tokens, ids.dtype)
    compiled: CompiledKernel = _kernels.get((spec, arch), functools.partial(compile, rows_kernel(spec), arch))
    with torch.cuda.device(ids.device):
        tensors = _operands_on(qw, spec, ids.device, kept)
    stay: dict[str, int | float] = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    return _Call(compiled.launcher.bind({**stay, "tokens": tokens}, ["ids", "y"]), tensors)


def _operands_on(qw: QuantizedTensor, spec: RowsSpec, device: Any, kept: _KeptForWeights) -> dict[str, Any]:
    """The arrays that the kernel takes of the weights, on the device: uploaded at the first use, but words that are
    there."""
    with kept.lock:
        held = kept.operands.get(str(device))
        if held is None:
            words = qw.words_on(device, qw.family)
            held = {} if words is None else {"packed": words}
            arrays: dict[str, AnyArray] = row_operands(qw)
            if words is None:
                arrays["packed"] = np.asarray(qw.packed).reshape(-1)
            held |= {name: upload(arrays[name], spec.operands[name], device) for name in arrays}
            kept.operands[str(device)] = held
        return held
