"""Rows of quantised weights by their numbers, dequantised: what an embedding looks up."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.operands import NUMPY_TYPES
from lowlp.numeric.dtypes import DType, dtype_among
from lowlp.numeric.host_array import as_host_array, as_torch_tensor
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.array import is_torch_tensor

from .graph_breaks import outside_of_graphs, skip_frames

_OUTPUTS: Final = ("f16", "bf16", "f32")


@outside_of_graphs
def embedding(ids: Any, qw: QuantizedTensor, *, out_dtype: str | DType = "f16") -> Any:
    """The rows of w that `ids` name: `qw.dequantize()[ids]`, in the library of ids.

    ids        integers in 0..N-1 of any shape; numpy, or a tensor of PyTorch. No more units are unpacked than have one
               of the rows
    qw         weights [N, K]
    out_dtype  'f16', 'bf16' or 'f32'

    Returns [*ids.shape, K]: the float32 numbers of `dequantize()`, rounded once.
    Raises `LowlpTypeError` and `LowlpValueError` for arguments that do not fit.
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
        return dequantized_rows(ids.cpu(), qw, out).to(ids.device)
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
