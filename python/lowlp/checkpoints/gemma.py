"""Gemma's own checkpoints of 2, 4 and 8 bits, with a scale for each row.

    weight        uint8 [N, K / 4] or [N, K / 2], low bits first, of codes that are 2^(b-1) more than their number; or
                  int8 [N, K]
    weight_scale  float32 [N, 1]
    input_activation_scale, output_activation_scale  float32, what x and y are rounded by; 0: not at all
    embedding_quantized, embedding_scale             the same of tables of embeddings

Source: transformers (integrations/gemma_quant.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from lowlp.checkpoints.bit_streams import centred, stream
from lowlp.checkpoints.layers import InputQuantization, Layer, Parts
from lowlp.checkpoints.scale_shapes import spread_scales
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import FLOATS, TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'gemma'."""
    for kind, weight in (("weight_scale", "weight"), ("embedding_scale", "embedding_quantized")):
        for name in files.ending(f".{kind}"):
            yield _layer(files, name, f"{name}.{weight}", f"{name}.{kind}", _bits(settings, name))


def _bits(settings: Settings, name: str) -> int:
    rules = settings.part("module_quant_configs")
    for pattern in rules.fields:
        if settings.matches(pattern, name):
            return rules.part(pattern).integer("num_bits", allowed=(2, 4, 8), default=8) or 8
    return settings.integer("num_bits", allowed=(2, 4, 8), default=8) or 8


def _layer(files: TensorFiles, name: str, weight: str, scale: str, bits: int) -> Layer:
    rows, columns = files.array(weight, (None, None), ("uint8", "int8")).shape
    bits = 8 if files.type_name(weight) == "int8" else bits
    inputs = None
    others = tuple(f"{name}.{part}" for part in ("input_activation_scale", "output_activation_scale"))
    if others[0] in files:
        number = files.number(others[0])
        inputs = InputQuantization("int8", "tensor", dynamic=False, scale=number) if number else None
    tensors = (weight, scale, *(other for other in others if other in files))
    shape = (rows, columns * 8 // bits)
    return Layer(
        f"{name}.weight",
        shape,
        f"Gemma, {bits} bits",
        tensors,
        partial(_parts, files, weight, scale, shape, bits),
        (),
        inputs,
    )


def _parts(files: TensorFiles, weight: str, scale: str, shape: tuple[int, int], bits: int) -> Parts:
    packed = files.array(weight)
    if bits == 8 and packed.dtype != np.int8:
        raise CheckpointError(f"{weight}: expected int8 for 8 bits, got {packed.dtype.name}")

    def read(rows: slice) -> AnyArray:
        if bits == 8:
            return packed[rows].view(np.uint8)
        return centred(stream(packed[rows], bits, shape[1]), bits)

    return Parts(shape, read, {"dtype": f"int{bits}", **spread_scales(files.array(scale, kinds=FLOATS), shape, scale)})
