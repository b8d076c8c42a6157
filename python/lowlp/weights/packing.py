"""How weights lie in memory for the kernels: the packed format, version 5 (docs/packed-format.md).

Codes [N, K] are cut into units of 16 R rows by U weights, and a `Placement`, one for each type of code and family of
fragments, says where in a unit each bit of each weight is:

    uint32 [ceil(N / 16 R), ceil(K / U), words / v, 32, v]      v = gcd(words, 4)

U is 64, or 32 or 16 with two or four times as many rows, whichever takes the fewest words (`Placement.for_matrix`);
of planes it is 256.
Only the last unit of a row is padded, and the last units of rows; padding holds the code 0. A unit may have weights of
several groups. Of signed integers the sign bit is stored turned over. Several matrices [..., N, K] are packed one after
the other.

    >>> packed = pack(qw.codes, qw.group_size, "int6", "f16")
    >>> codes = unpack(packed, n, k, qw.group_size, "int6", "f16")
"""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
from typing import Any, Final

import numpy as np

from lowlp._layout import UNIT_K as UNIT_K
from lowlp._layout import Placement, ScalarFormat, code_format_name, code_format_of, stored_flip
from lowlp.numeric.array_ops import TorchOps
from lowlp.numeric.codec import COMPUTE_TYPES, MAX_INDEX_BITS, Codec, Table
from lowlp.numeric.dtypes import DType, dtype_among, named_dtype
from lowlp.numeric.host_array import as_host_array
from lowlp.numeric.vectors import Vectors
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

PACKED_FORMAT_VERSION: Final = int(Placement.format_version)
PLANES: Final = "b1"
"""The compute type of products of single bits, of which there is no `DType`."""
WARP: Final = 32
_MAX_THREADS: Final = 1024
_MOST: Final = (1 << 31) - 1
"""Rows, columns and weights of a group."""
# A line of a cache.
_ALIGN_BYTES: Final = 64
_TABLE_NAMES: Final = {f"lut{bits}" for bits in range(1, MAX_INDEX_BITS + 1)}

Code = DType | Table | Vectors | Codec | str
"""What codes are: their type or lookup table or what vectors, a codec that has it, or a name such as 'uint6' or 'lut4'.
"""


def placement_name(code: Code, activation: DType | str) -> str:
    """The name of the placement of weights for a type of activations: `int6.f16`, `e3m2.bf16`, `lut4.f16`.

    code        the type of the codes or their table, as a `DType`, a `Table`, a `Codec`, or a name such as 'uint6' or
                'lut4'
    activation  'f16', 'bf16', 'int8' or 'f8e4m3', or the `DType`; 'b1' for planes of integer codes

    Types that differ by a constant share a placement: uint6 and bipolar6 have that of int6.
    """
    return find_placement(code, activation).name


def find_placement(code: Code, activation: DType | str) -> Placement:
    """The placement of that name, in units 64 wide, of planes 256; `for_matrix(n, k)` of it is that of a matrix. Raises
    `LowlpValueError` where the packed format has none."""
    compute = PLANES if activation == PLANES else dtype_among(activation, "activation", (*COMPUTE_TYPES, PLANES))
    return placement_named(f"{stored_form(code)[0]}.{compute}", "code, activation")


def padded_shape(n: int, k: int, placement: Placement | str) -> tuple[int, int]:
    """The rows and the weights of a row for which packed weights [n, k] have room: those of whole units.

    placement  as `find_placement` gives it, or its name
    """
    n, k = _positive(n, "n"), _positive(k, "k")
    shaped = _placement(placement).for_matrix(n, k)
    return -(-n // shaped.unit_rows) * shaped.unit_rows, -(-k // shaped.unit_k) * shaped.unit_k


def packed_shape(
    n: int, k: int, group_size: int, placement: Placement | str, *, batch: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """The shape, in words of 32 bits, of packed weights [*batch, n, k]: of five dimensions after those of `batch`.

    group_size  weights of a row that share a scale; divides K, and changes nothing
    placement   as `find_placement` gives it, or its name
    """
    n, k = _positive(n, "n"), _positive(k, "k")
    _check_group(group_size, k)
    shaped = _placement(placement).for_matrix(n, k)
    return (*(_positive(extent, "batch") for extent in batch), *shaped.packed_shape(n, k))


def pack(codes: Any, group_size: int, code: Code, activation: DType | str, *, num_threads: int = 0) -> Any:
    """Packs codes, as `QuantizedTensor.codes` has them.

    codes        uint8 [..., N, K], each below 2**bits; uint16 where they have 9 to 16 bits: numpy, or PyTorch on the
                 CPU or a GPU
    group_size   weights of a row that share a scale; divides K, and may be K
    code         their type or table, as in `placement_name`
    activation   the type of the activations that they are multiplied with
    num_threads  of the host; 0: one for each processor

    Returns uint32 in the shape of `packed_shape`, aligned to 64 bytes; for a tensor on a GPU a tensor there, else a
    numpy array. Raises `LowlpTypeError` and `LowlpValueError`, which name the argument.
    """
    placement = _placement_of_weights(code, activation)
    array = codes if _is_on_device(codes) else as_host_array(codes, "codes")
    _check_codes(placement, array.dtype, array.shape)
    _check_group(group_size, array.shape[-1])
    return pack_by(placement.for_matrix(*array.shape[-2:]), array, stored_form(code)[1], num_threads=num_threads)


def pack_by(placement: Placement, codes: Any, flip: int, *, num_threads: int = 0) -> Any:
    """As `pack`, of checked codes in the units of this placement; `flip` turns codes into stored ones."""
    if _is_on_device(codes):
        from lowlp.weights.array_packing import pack_with

        ops = TorchOps(codes.device)
        matrices = codes.reshape(-1, *codes.shape[-2:])
        packed = ops.torch.stack([pack_with(ops, placement, matrix, flip) for matrix in matrices])
        return packed.reshape(*codes.shape[:-2], *packed.shape[1:])
    codes = as_host_array(codes, "codes")
    if codes.strides[-1] != codes.itemsize:
        codes = np.ascontiguousarray(codes)
    threads = _threads(num_threads)
    try:
        if codes.ndim == 2:
            return placement.pack(codes, flip, threads)
        packed = _aligned_words((*codes.shape[:-2], *placement.packed_shape(*codes.shape[-2:])))
        for index in itertools.product(*map(range, codes.shape[:-2])):
            packed[index] = placement.pack(codes[index], flip, threads)
        return packed
    except ValueError as error:
        raise LowlpValueError(str(error)) from None


def unpack(
    packed: Any, n: int, k: int, group_size: int, code: Code, activation: DType | str, *, num_threads: int = 0
) -> Any:
    """The codes [..., n, k], uint8 or uint16, of packed weights: the inverse of `pack`, with its arguments.

    packed  uint32 in the shape of `packed_shape`
    """
    placement = _placement_of_weights(code, activation)
    shape = packed_shape(n, k, group_size, placement)
    array = packed if _is_on_device(packed) else as_host_array(packed, "packed")
    _check_words(array.dtype, array.shape, shape)
    return unpack_by(placement.for_matrix(n, k), array, n, k, stored_form(code)[1], num_threads=num_threads)


def unpack_by(placement: Placement, packed: Any, n: int, k: int, flip: int, *, num_threads: int = 0) -> Any:
    """As `unpack`, of checked words in the units of this placement; `flip` as for `pack_by`."""
    if _is_on_device(packed):
        from lowlp.weights.array_packing import unpack_with

        ops = TorchOps(packed.device)
        matrices = packed.reshape(-1, *packed.shape[-5:])
        codes = ops.torch.stack([unpack_with(ops, placement, words, n, k, flip) for words in matrices])
        return codes.reshape(*packed.shape[:-5], n, k)
    array = np.ascontiguousarray(packed)
    threads = _threads(num_threads)
    if array.ndim == 5:
        return placement.unpack(array, n, k, flip, threads)
    codes = np.empty((*array.shape[:-5], n, k), np.uint8 if placement.code_bytes == 1 else np.uint16)
    for index in itertools.product(*map(range, array.shape[:-5])):
        codes[index] = placement.unpack(array[index], n, k, flip, threads)
    return codes


def _placement_of_weights(code: Code, activation: DType | str) -> Placement:
    placement = find_placement(code, activation)
    if placement.books * placement.vector > 1:
        raise LowlpValueError(
            f"code: codes of vectors are packed by QuantizedTensor(codes, codebooks=...), got {code!s}"
        )
    return placement


def stored_form(code: object) -> tuple[str, int]:
    """The name of the format of stored codes, and what turns a code into a stored one: an exclusive or."""
    if isinstance(code, Codec):
        code = code.code
    if isinstance(code, Table):
        return f"lut{code.bits}", 0
    if isinstance(code, Vectors):
        return code_format_of(code._held), 0
    if isinstance(code, str) and code.startswith("lut"):
        if code not in _TABLE_NAMES:
            raise LowlpValueError(f"code: tables are lut1 to lut{MAX_INDEX_BITS}, got {code!r}")
        return code, 0
    if not isinstance(code, str | DType):
        raise LowlpTypeError(f"code: expected a DType, a Table, Vectors, a Codec or a name, got {type(code).__name__}")
    scalar = ScalarFormat.parse(named_dtype(code, "code").name)
    if not scalar.has_codes:
        raise LowlpValueError(
            f"code: {scalar.name} has no codes; allowed: types of 1 to 8 bits, lut1 to lut{MAX_INDEX_BITS}"
        )
    return code_format_name(scalar), stored_flip(scalar)


def placement_named(name: str, argument: str) -> Placement:
    """The placement with this name; errors begin with `argument`."""
    try:
        return Placement.find(name)
    except ValueError as error:
        raise LowlpValueError(f"{argument}: {str(error).removeprefix('placement: ')}") from None


def _placement(placement: object) -> Placement:
    if isinstance(placement, str):
        return placement_named(placement, "placement")
    if not isinstance(placement, Placement):
        raise LowlpTypeError(f"placement: expected a Placement or a name, got {type(placement).__name__}")
    return placement


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


def _check_group(group_size: object, k: int) -> None:
    size = _positive(group_size, "group_size")
    if k % size:
        raise LowlpValueError(f"group_size: must divide K = {k}, got {size}")


def _aligned_words(shape: tuple[int, ...]) -> Any:
    """An array of uint32 that begins at a line of a cache."""
    size = 4 * math.prod(shape)
    memory = np.empty(size + _ALIGN_BYTES, np.uint8)
    start = -memory.ctypes.data % _ALIGN_BYTES
    return memory[start : start + size].view(np.uint32).reshape(shape)


def _threads(num_threads: object) -> int:
    threads = _int(num_threads, "num_threads")
    if not 0 <= threads <= _MAX_THREADS:
        raise LowlpValueError(f"num_threads: must be in 0..{_MAX_THREADS}, got {threads}")
    return threads


def _check_codes(placement: Placement, dtype: object, shape: Any) -> None:
    wanted = "uint8" if placement.code_bytes == 1 else "uint16"
    if str(dtype).removeprefix("torch.") != wanted:
        raise LowlpTypeError(f"codes: expected elements of {wanted}, got {dtype}")
    if len(shape) < 2 or 0 in tuple(shape):
        raise LowlpValueError(f"codes: expected shape [N, K] with N, K >= 1, or [..., N, K], got {list(shape)}")


def _check_words(dtype: object, found: Any, expected: tuple[int, ...]) -> None:
    if str(dtype).removeprefix("torch.") != "uint32":
        raise LowlpTypeError(f"packed: expected elements of uint32, got {dtype}")
    if tuple(found)[-len(expected) :] != expected or 0 in tuple(found):
        raise LowlpValueError(f"packed: expected shape {list(expected)}, or several of it, got {list(found)}")
