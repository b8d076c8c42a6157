"""Arrays in host memory, of numpy or PyTorch, as numpy arrays that share it."""

import sys
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

AnyArray: TypeAlias = NDArray[Any]

FLOAT_DTYPES: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
}


# PyTorch's floats that numpy has from ml_dtypes: PyTorch's name, integers of that size, the type.
_TORCH_FLOATS = (
    ("bfloat16", "int16", ml_dtypes.bfloat16),
    ("float8_e4m3fn", "uint8", ml_dtypes.float8_e4m3fn),
    ("float8_e5m2", "uint8", ml_dtypes.float8_e5m2),
    ("float8_e8m0fnu", "uint8", ml_dtypes.float8_e8m0fnu),
)


def as_host_array(value: object, name: str) -> AnyArray:
    """The values as a numpy array, without a copy.

    value  a numpy array or scalar, a `torch.Tensor` on the CPU (bfloat16 and floats of 8 bits become the types of
           `ml_dtypes`)
    name   what errors call it

    Raises `LowlpTypeError` for anything else and `LowlpValueError` for a tensor on another device. PyTorch is not
    imported.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        tensor: Any = value.detach()
        if tensor.device.type != "cpu":
            remedy = "which has no values" if tensor.device.type == "meta" else "use .cpu()"
            raise LowlpValueError(f"{name}: expected a tensor on the CPU, got one on {str(tensor.device)!r}; {remedy}")
        for torch_name, bits_name, found in _TORCH_FLOATS:
            if tensor.dtype == getattr(torch, torch_name, None):
                bits: AnyArray = tensor.contiguous().view(getattr(torch, bits_name)).numpy()
                return bits.view(found)
        try:
            host: AnyArray = tensor.resolve_conj().resolve_neg().numpy()
        except (TypeError, RuntimeError) as error:  # sparse, or of a type that numpy has not
            raise LowlpTypeError(f"{name}: a tensor without a numpy array: {error}") from None
        return host
    if isinstance(value, np.ma.MaskedArray):
        raise LowlpTypeError(f"{name}: masked arrays are not supported; pass .filled(value), or .data without the mask")
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    raise LowlpTypeError(f"{name}: expected a numpy array or a torch tensor on the CPU, got {type(value).__name__}")


def memory_of_rows(rows: AnyArray) -> AnyArray:
    """The memory that a matrix spans, from its first element to its last, as an array of one dimension: for kernels
    that take its row stride as a number. Elements of a row are neighbours, and no row stride is negative."""
    count, columns = rows.shape
    spanned = (count - 1) * (rows.strides[0] // rows.itemsize) + columns if count else 0
    return np.lib.stride_tricks.as_strided(rows, (spanned,), (rows.itemsize,))


def as_torch_tensor(array: AnyArray) -> Any:
    """The array as a `torch.Tensor` on the CPU that shares its memory; types of `ml_dtypes` become PyTorch's."""
    torch = sys.modules["torch"]
    for torch_name, bits_name, found in _TORCH_FLOATS:
        if array.dtype == found:
            return torch.from_numpy(array.view(bits_name)).view(getattr(torch, torch_name))
    return torch.from_numpy(array)
