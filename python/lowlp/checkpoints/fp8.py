"""FP8: weights of one byte, e4m3 or e5m2, and what they are multiplied by.

    <name>            float8 [N, K] or [E, N, K]
    <name>_scale_inv  float32 [ceil(N / 128), ceil(K / 128)], a factor in spite of its name (DeepSeek, transformers)
    <base>.weight     int8 [N, K / 2], two e2m1 in a byte, with exponents <base>.scale [N, K / 32] (experts)
    <name>_scale      one number, [N] or [N, 1], or exponents of powers of two [N, K / 32] (MXFP8)

Sources: transformers (integrations/finegrained_fp8.py, quantizers/quantizer_finegrained_fp8.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from lowlp.checkpoints import microscaling
from lowlp.checkpoints.layers import InputQuantization, Layer, Parts
from lowlp.checkpoints.scale_shapes import as_powers, spread_scales
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray

TYPES: Final = {"float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}
_BLOCK: Final = (128, 128)


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'fp8', 'fbgemm_fp8' or 'mxfp8'."""
    block = block_of(settings.value("weight_block_size", default=list(_BLOCK)), settings)
    static = settings.text("activation_scheme", allowed=("dynamic", "static"), default="dynamic") == "static"
    for name in files.names:
        base = name.removesuffix(".weight")
        if files.type_name(name) == "int8" and _has_powers(files, base):
            yield _of_experts(files, name, base)
        if files.type_name(name) not in TYPES:
            continue
        inputs = InputQuantization("f8e4m3")
        if static and f"{base}.input_scale" in files:
            scale = files.number(f"{base}.input_scale")
            inputs = InputQuantization("f8e4m3", "tensor", dynamic=False, scale=scale)
        if f"{name}_scale_inv" in files:
            # Blocks of weights go with groups of x that are as wide.
            wide = replace(inputs, per=block[1]) if inputs.dynamic and block is not None else inputs
            yield layer_of(files, name, f"{name}_scale_inv", block, wide)
        elif f"{name}_scale" in files:
            yield layer_of(files, name, f"{name}_scale", None, inputs)
        elif f"{base}.scale" in files:
            yield layer_of(files, name, f"{base}.scale", block, inputs)
        else:
            raise CheckpointError(f"{name}: has neither {name}_scale_inv nor {name}_scale")


def _has_powers(files: TensorFiles, base: str) -> bool:
    return f"{base}.scale" in files and files.type_name(f"{base}.scale") in ("uint8", "float8_e8m0fnu")


def _of_experts(files: TensorFiles, name: str, base: str) -> Layer:
    """Weights of 4 bits among those of 8 (`expert_dtype` 'fp4'): two e2m1 in a byte, exponents of groups of 32."""
    n, packed = files.array(name, (None, None)).shape
    scales = f"{base}.scale"
    find = partial(microscaling.packed_floats, files, name, scales, 4)
    return Layer(name, (n, 2 * packed), "MXFP4", (name, scales), find)


def block_of(value: object, settings: Settings) -> tuple[int, int]:
    """Rows and columns of a block. Raises `CheckpointError`."""
    if (
        not isinstance(value, list | tuple)
        or len(value) != 2
        or not all(isinstance(extent, int) and extent > 0 for extent in value)
    ):
        raise CheckpointError(f"{settings.where}: a block must be two positive integers, got {value!r:.40}")
    return value[0], value[1]


def layer_of(
    files: TensorFiles,
    name: str,
    scales: str,
    block: tuple[int, int] | None,
    inputs: InputQuantization | None = None,
    tensors: tuple[str, ...] = (),
) -> Layer:
    """The layer whose weights are the tensor `name`, multiplied by the tensor `scales`."""
    shape = files.shape(name)
    if len(shape) not in (2, 3):
        raise CheckpointError(f"{name}: expected weights [N, K] or [E, N, K], got shape {list(shape)}")
    kind = files.type_name(name).removeprefix("float8_").removesuffix("fn")
    powers = files.type_name(scales) in ("uint8", "float8_e8m0fnu")
    # A file of blocks may have one scale for the whole tensor too.
    by_block = block if block is not None and len(files.shape(scales)) == len(shape) else None
    if by_block and files.shape(scales) == (shape[0], 1) and shape[0] > by_block[0]:
        by_block = None
    text = f"MXFP8 {kind}" if powers and by_block is None else f"FP8 {kind}"
    if by_block is not None:
        text += f", blocks {by_block[0]} x {by_block[1]}"
    return Layer(
        name, shape, text, (name, scales, *tensors), partial(_parts, files, name, scales, by_block), (), inputs
    )


def _parts(files: TensorFiles, name: str, scales: str, block: tuple[int, int] | None) -> Parts:
    weights = files.array(name)
    shape = weights.shape
    found = files.array(scales, kinds=("float16", "bfloat16", "float32", "uint8", "float8_e8m0fnu"))
    rows_of_all = weights.view(np.uint8).reshape(-1, shape[-1])

    def read(rows: slice) -> AnyArray:
        return rows_of_all[rows]

    arguments = {"dtype": TYPES[weights.dtype.name], **spread_scales(as_powers(found), shape, scales, block)}
    return Parts(shape, read, arguments)
