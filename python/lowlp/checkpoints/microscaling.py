"""Four- and six-bit floats of groups: MXFP4 of gpt-oss, and NVFP4 and MXFP of whoever has two codes in a byte.

    MXFP4 of gpt-oss   <name>_blocks uint8 [E, N, K / 32, 16], <name>_scales uint8 [E, N, K / 32], exponents
    MXFP4, MXFP6       packed uint8 [N, K / 2] or [N, 3 K / 4], scales uint8 [N, K / 32]
    NVFP4              packed uint8 [N, K / 2], scales e4m3 [N, K / 16], and a factor or divisor of all

In a byte the low nibble comes first; codes of 6 bits are a stream.
Sources: transformers (integrations/mxfp4.py); vllm-project/compressed-tensors (compressors/nvfp4, mxfp4, mxfp6).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from lowlp.checkpoints.bit_streams import nibbles, stream
from lowlp.checkpoints.layers import Layer, Parts
from lowlp.checkpoints.scale_shapes import as_powers, as_stored
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'mxfp4', as gpt-oss ships it."""
    del settings
    for name in files.ending("_blocks"):
        shape = files.shape(f"{name}_blocks")
        if len(shape) != 4 or shape[-1] != 16:
            raise CheckpointError(f"{name}_blocks: expected shape [E, N, K / 32, 16], got {list(shape)}")
        experts, n, groups, _ = shape
        tensors = (f"{name}_blocks", f"{name}_scales")
        yield Layer(name, (experts, n, 32 * groups), "MXFP4", tensors, partial(_parts_of_blocks, files, name, shape))


def _parts_of_blocks(files: TensorFiles, name: str, shape: tuple[int, ...]) -> Parts:
    experts, n, groups, _ = shape
    scales = files.array(f"{name}_scales", shape[:-1], ("uint8", "float8_e8m0fnu"))
    packed = files.array(f"{name}_blocks", shape, ("uint8",)).reshape(experts * n, -1)
    arguments = {"dtype": "f4e2m1", "scales": as_stored(as_powers(scales)), "group_size": 32}
    return Parts((experts, n, 32 * groups), lambda rows: nibbles(packed[rows]), arguments)


def packed_floats(files: TensorFiles, packed: str, scales: str, bits: int) -> Parts:
    """Weights [N, K] of e2m1 (4 bits) or e2m3 (6) whose groups of 32 have exponents."""
    n, groups = _matrix(files, scales)
    k = 32 * groups
    octets = files.array(packed, (n, k * bits // 8), ("uint8", "int8")).view(np.uint8)
    found = as_powers(files.array(scales, kinds=("uint8", "float8_e8m0fnu")))
    arguments = {"dtype": "f4e2m1" if bits == 4 else "f6e2m3", "scales": as_stored(found), "group_size": 32}
    return Parts((n, k), lambda rows: stream(octets[rows], bits, k), arguments)


def nvfp4(files: TensorFiles, packed: str, scales: str, second: AnyArray, divides: bool, exact: bool) -> Parts:
    """Weights [N, K] of e2m1 whose groups of 16 have scales of e4m3, and all a second one.

    second   one number
    divides  whether scales are divided by it, and not multiplied
    exact    whether quotients are kept where the reciprocal is not exact: float32 scales in place of bytes
    """
    n, groups = _matrix(files, scales)
    k = 16 * groups
    octets = files.array(packed, (n, k // 2), ("uint8",))
    found = as_stored(files.array(scales, kinds=("float8_e4m3fn", "uint8")))
    first = found.view(ml_dtypes.float8_e4m3fn) if found.dtype == np.uint8 else found
    if second.size != 1:
        raise CheckpointError(f"{packed}: the second scale must be one number, got shape {list(second.shape)}")
    number = np.float32(second.reshape(-1)[0])
    arguments: dict[str, Any] = {"dtype": "f4e2m1", "scales": first, "group_size": 16, "scale2": number}
    if divides:
        if not np.isfinite(number) or number == 0:
            raise CheckpointError(f"{packed}: the second scale divides, and must be finite and not 0, got {number}")
        with np.errstate(over="ignore"):  # scales that are not finite are refused
            arguments["scale2"] = np.float32(1) / number
            if exact and np.frexp(number)[0] != 0.5:
                arguments["scales"] = first.astype(np.float32) / number
                del arguments["scale2"]
    return Parts((n, k), lambda rows: nibbles(octets[rows]), arguments)


def _matrix(files: TensorFiles, name: str) -> tuple[int, int]:
    shape = files.shape(name)
    if len(shape) != 2:
        raise CheckpointError(f"{name}: expected a matrix, got shape {list(shape)}")
    return shape[0], shape[1]
