"""What NVIDIA's modelopt exports: FP8, NVFP4, and AWQ of 4 bits packed along N.

    FP8        weight e4m3 [N, K], weight_scale one number, input_scale
    NVFP4      weight uint8 [N, K / 2], weight_scale e4m3 [N, K / 16], weight_scale_2 float32, which multiplies
    W4A16_AWQ  weight uint8 [N / 2, K], the even row in the low nibble, two's complement; weight_scale [N, K / g]
    pre_quant_scale  [K], by which x is multiplied

Source: NVIDIA/TensorRT-Model-Optimizer (modelopt/torch/quantization/qtensor, modelopt/torch/export/quant_utils.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lowlp.checkpoints import fp8, microscaling
from lowlp.checkpoints.layers import InputQuantization, Layer, Parts, Transform
from lowlp.checkpoints.scale_shapes import spread_scales
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import FLOATS, TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray


def layers(files: TensorFiles, settings: Settings, exact: bool) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'modelopt'."""
    del exact, settings
    for name in files.ending(".weight_scale"):
        layer = _layer(files, name)
        smoothing = f"{name}.pre_quant_scale"
        if smoothing in files:
            values = files.array(smoothing, kinds=FLOATS).astype(np.float32).reshape(-1)
            if values.size != layer.shape[-1]:
                raise CheckpointError(f"{smoothing}: expected {layer.shape[-1]} numbers, got {values.size}")
            transforms = (Transform("input", "scale", values),)
            layer = replace(layer, transforms=transforms, tensors=(*layer.tensors, smoothing))
        yield layer


def _layer(files: TensorFiles, name: str) -> Layer:
    weight, scale, second = f"{name}.weight", f"{name}.weight_scale", f"{name}.weight_scale_2"
    given = f"{name}.input_scale"
    number = files.number(given) if given in files else None
    if files.type_name(weight) in fp8.TYPES:
        inputs = None if number is None else InputQuantization("f8e4m3", "tensor", dynamic=False, scale=number)
        return fp8.layer_of(files, weight, scale, None, inputs, (given,) if given in files else ())
    shape = files.array(weight, (None, None), ("uint8",)).shape
    if second in files:
        tensors = (weight, scale, second, *((given,) if given in files else ()))
        find = partial(
            microscaling.nvfp4, files, weight, scale, files.array(second, kinds=("float32",)), divides=False, exact=True
        )
        inputs = InputQuantization("f4e2m1", 16, scale=number) if number is not None else None
        return Layer(weight, (shape[0], 2 * shape[1]), "NVFP4 of modelopt", tensors, find, (), inputs)
    groups = files.shape(scale)
    if len(groups) != 2 or groups[0] != 2 * shape[0]:
        raise CheckpointError(f"{scale}: expected shape [{2 * shape[0]}, groups] for {weight}, got {list(groups)}")
    return Layer(
        weight,
        (2 * shape[0], shape[1]),
        "AWQ of modelopt, 4 bits",
        (weight, scale),
        partial(_along_n, files, weight, scale),
    )


def _along_n(files: TensorFiles, weight: str, scale: str) -> Parts:
    packed = files.array(weight)
    shape = (2 * packed.shape[0], packed.shape[1])

    def read(rows: slice) -> AnyArray:
        numbers = np.arange(rows.start, rows.stop)
        codes: AnyArray = (packed[numbers // 2] >> (4 * (numbers % 2)).astype(np.uint8)[:, None]) & np.uint8(15)
        return codes

    arguments: dict[str, Any] = spread_scales(files.array(scale, kinds=FLOATS), shape, scale)
    return Parts(shape, read, {"dtype": "int4", **arguments})
