"""How weights lie in memory for the kernels: the packed format, version 2 (docs/packed-format.md).

Codes [N, K] are cut into units of 16 R rows by 64 weights, and a `Placement`, one for each type of code and of
activations, says where in a unit each bit of each weight is:

    uint32 [ceil(N / 16 R), ceil(Kp / 64), words / v, 32, v]      v = gcd(words, 4)

with Kp the row's weights after each group is padded to 16, 32 or a multiple of 64. Padding holds the code 0. Of signed
integers the sign bit is stored turned over.

    >>> packed = pack(qw.codes, qw.group_size, "int6", "f16")
    >>> codes = unpack(packed, n, k, qw.group_size, "int6", "f16")
"""

from __future__ import annotations

import contextlib
import operator
import re
from typing import Any, Final

import numpy as np

from lowlp._layout import Placement, ScalarFormat, code_format_name, stored_flip
from lowlp._layout import padded_group as _padded_group
from lowlp.numeric.codec import COMPUTE_TYPES, Table
from lowlp.numeric.dtypes import DType, dtype_among, named_dtype
from lowlp.numeric.host_array import as_host_array
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

PACKED_FORMAT_VERSION: Final = int(Placement.format_version)
WARP: Final = 32
_MAX_THREADS: Final = 1024
_MOST: Final = (1 << 31) - 1
"""Rows, columns and weights of a group."""

_TABLE_NAME = re.compile(r"lut[1-8]")


def placement_name(code: DType | Table | str, activation: DType | str) -> str:
    """The name of the placement of weights for a type of activations: `int6.f16`, `e3m2.bf16`, `lut4.f16`.

    code        the type of the codes, or their table: a `DType`, a `Table`, or a name such as 'uint6' or 'lut4'
    activation  'f16', 'bf16', 'int8' or 'f8e4m3', or the `DType`

    Types that differ by a constant share a placement: uint6 and bipolar6 have that of int6.
    """
    return find_placement(code, activation).name


def find_placement(code: DType | Table | str, activation: DType | str) -> Placement:
    """The placement of that name. Raises `LowlpValueError` where the packed format has none."""
    compute = dtype_among(activation, "activation", COMPUTE_TYPES)
    return placement_named(f"{stored_form(code)[0]}.{compute}", "code, activation")


def padded_group(group_size: int) -> int:
    """Weights that a group takes in packed words: the least of 16, 32 and the multiples of 64 that holds it."""
    return int(_padded_group(_positive(group_size, "group_size")))


def packed_shape(n: int, k: int, group_size: int, placement: Placement | str) -> tuple[int, int, int, int, int]:
    """The shape, in words of 32 bits, of packed weights [n, k].

    placement  as `find_placement` gives it, or its name
    """
    n, k = _positive(n, "n"), _positive(k, "k")
    group_size = _group_of(group_size, k)
    if isinstance(placement, str):
        placement = placement_named(placement, "placement")
    elif not isinstance(placement, Placement):
        raise LowlpTypeError(f"placement: expected a Placement or a name, got {type(placement).__name__}")
    return placement.packed_shape(n, k, group_size)


def pack(
    codes: Any, group_size: int, code: DType | Table | str, activation: DType | str, *, num_threads: int = 0
) -> Any:
    """Packs codes, as `QuantizedTensor.codes` has them.

    codes        uint8 [N, K], each below 2**bits: numpy, or PyTorch on the CPU or a GPU
    group_size   weights of a row that share a scale; divides K, and may be K
    code         their type or table, as in `placement_name`
    activation   the type of the activations that they are multiplied with
    num_threads  of the host; 0: one for each processor

    Returns uint32 in the shape of `packed_shape`, aligned to 64 bytes; for a tensor on a GPU a tensor there, else a
    numpy array. Raises `LowlpTypeError` and `LowlpValueError`, which name the argument.
    """
    placement = find_placement(code, activation)
    flip = stored_form(code)[1]
    if _is_on_device(codes):
        from lowlp.numeric.array_ops import TorchOps
        from lowlp.weights.array_packing import pack_with

        _check_codes(codes.dtype, codes.shape)
        group_size = _group_of(group_size, codes.shape[1])
        return pack_with(TorchOps(codes.device), placement, codes, group_size, padded_group(group_size), flip)
    array = as_host_array(codes, "codes")
    _check_codes(array.dtype, array.shape)
    if array.strides[1] != 1:
        array = np.ascontiguousarray(array)
    group_size = _group_of(group_size, array.shape[1])
    try:
        return placement.pack(array, group_size, flip, _threads(num_threads))
    except ValueError as error:
        raise LowlpValueError(str(error)) from None


def unpack(
    packed: Any,
    n: int,
    k: int,
    group_size: int,
    code: DType | Table | str,
    activation: DType | str,
    *,
    num_threads: int = 0,
) -> Any:
    """The codes, uint8 [n, k], of packed weights: the inverse of `pack`, with its arguments.

    packed  uint32 in the shape of `packed_shape`
    """
    placement = find_placement(code, activation)
    flip = stored_form(code)[1]
    shape = packed_shape(n, k, group_size, placement)
    if _is_on_device(packed):
        from lowlp.numeric.array_ops import TorchOps
        from lowlp.weights.array_packing import unpack_with

        _check_words(packed.dtype, packed.shape, shape)
        padded = padded_group(group_size)
        return unpack_with(TorchOps(packed.device), placement, packed, n, k, group_size, padded, flip)
    array = as_host_array(packed, "packed")
    _check_words(array.dtype, array.shape, shape)
    return placement.unpack(np.ascontiguousarray(array), n, k, group_size, flip, _threads(num_threads))


def stored_form(code: object) -> tuple[str, int]:
    """The name of the format of stored codes, and what turns a code into a stored one: an exclusive or."""
    if isinstance(code, Table):
        return f"lut{code.bits}", 0
    if isinstance(code, str) and code.startswith("lut"):
        if not _TABLE_NAME.fullmatch(code):
            raise LowlpValueError(f"code: tables are lut1 to lut8, got {code!r}")
        return code, 0
    if not isinstance(code, str | DType):
        raise LowlpTypeError(f"code: expected a DType, a Table or a name, got {type(code).__name__}")
    scalar = ScalarFormat.parse(named_dtype(code, "code").name)
    if not scalar.has_codes:
        raise LowlpValueError(f"code: {scalar.name} has no codes; allowed: types of 1 to 8 bits, lut1 to lut8")
    return code_format_name(scalar), stored_flip(scalar)


def placement_named(name: str, argument: str) -> Placement:
    """The placement with this name; errors begin with `argument`."""
    try:
        return Placement.find(name)
    except ValueError as error:
        raise LowlpValueError(f"{argument}: {str(error).removeprefix('placement: ')}") from None


def _is_on_device(value: Any) -> bool:
    return is_torch_tensor(value) and value.device.type != "cpu"


def _int(value: object, argument: str) -> int:
    if not isinstance(value, bool):
        with contextlib.suppress(TypeError):
            return operator.index(value)  # type: ignore[arg-type]
    raise LowlpTypeError(f"{argument}: expected an int, got {value!r:.40}")


def _positive(value: object, argument: str) -> int:
    number = _int(value, argument)
    if number < 1:
        raise LowlpValueError(f"{argument}: must be at least 1, got {number}")
    if number > _MOST:
        raise LowlpValueError(f"{argument}: must be at most {_MOST}, got {number}")
    return number


def _group_of(group_size: object, k: int) -> int:
    size = _positive(group_size, "group_size")
    if k % size:
        raise LowlpValueError(f"group_size: must divide K = {k}, got {size}")
    return size


def _threads(num_threads: object) -> int:
    threads = _int(num_threads, "num_threads")
    if not 0 <= threads <= _MAX_THREADS:
        raise LowlpValueError(f"num_threads: must be in 0..{_MAX_THREADS}, got {threads}")
    return threads


def _check_codes(dtype: object, shape: Any) -> None:
    if str(dtype).removeprefix("torch.") != "uint8":
        raise LowlpTypeError(f"codes: expected elements of uint8, got {dtype}")
    if len(shape) != 2 or 0 in tuple(shape):
        raise LowlpValueError(f"codes: expected shape [N, K] with N, K >= 1, got {list(shape)}")


def _check_words(dtype: object, found: Any, expected: tuple[int, ...]) -> None:
    if str(dtype).removeprefix("torch.") != "uint32":
        raise LowlpTypeError(f"packed: expected elements of uint32, got {dtype}")
    if tuple(found) != expected:
        raise LowlpValueError(f"packed: expected shape {list(expected)}, got {list(found)}")
