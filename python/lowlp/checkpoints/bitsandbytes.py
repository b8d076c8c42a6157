"""bitsandbytes: NF4 and FP4 in blocks of the flat weights, with or without double quantisation, and int8 by rows.

    weight                         uint8 [N K / 2, 1] of the flat weights, the even one in the high nibble
    weight.absmax                  float32 [blocks], or uint8 with double quantisation
    weight.quant_map               float32 [16], the values of the codes
    weight.quant_state.bitsandbytes__nf4 or __fp4   uint8, JSON: shape, blocksize, nested_offset, ...
    weight.nested_absmax, weight.nested_quant_map   float32, of double quantisation

    W = quant_map[code] * absmax[block],  absmax = nested_quant_map[u8] * nested_absmax[i // 256] + nested_offset

    weight int8 [N, K], SCB float32 [N]             W = (q * SCB) * (1 / 127)

Source: bitsandbytes-foundation/bitsandbytes (functional.py, utils.py, nn/modules.py, backends/default/ops.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from lowlp.checkpoints.bit_streams import nibbles
from lowlp.checkpoints.layers import InputQuantization, Layer, Parts
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray

_STATE: Final = ".quant_state.bitsandbytes__"
_PARTS: Final = ("absmax", "quant_map", "nested_absmax", "nested_quant_map")
# The tools multiply by this constant in place of a division by 127.
_PER_127: Final = np.float32(7.874015718698502e-3)


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'bitsandbytes'."""
    del settings
    for name in files.names:
        base, found, kind = name.partition(_STATE)
        if found:
            if kind not in ("nf4", "fp4"):
                raise CheckpointError(f"{name}: expected nf4 or fp4 at the end of the name, got {kind!r:.20}")
            state = _state(files, name)
            tensors = (base, name, *(f"{base}.{part}" for part in _PARTS if f"{base}.{part}" in files))
            double = ", double" if f"{base}.nested_absmax" in files else ""
            yield Layer(
                base,
                tuple(state["shape"]),
                f"bitsandbytes {kind}{double}",
                tensors,
                partial(_parts, files, base, state),
            )
        elif name.endswith(".SCB"):
            weight = f"{name.removesuffix('.SCB')}.weight"
            shape = files.array(weight, (None, None), ("int8",)).shape
            parts = (weight, name, f"{weight}_format")
            yield Layer(
                weight,
                shape,
                "bitsandbytes int8",
                parts,
                partial(_rows, files, weight, name),
                (),
                InputQuantization("int8"),
            )


def _state(files: TensorFiles, name: str) -> dict[str, Any]:
    try:
        state = json.loads(files.array(name, (None,), ("uint8",)).tobytes())
        shape, size = state["shape"], state["blocksize"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{name}: no quantisation state in JSON: {error!r:.60}") from None
    numbers = (*shape, size) if isinstance(shape, list) and len(shape) in (2, 3) else (0,)
    if not all(type(number) is int and number > 0 for number in numbers):
        raise CheckpointError(
            f"{name}: expected a shape [N, K] or [E, N, K] and a blocksize of positive integers, got {shape!r:.40} and "
            f"{size!r:.20}"
        )
    if type(state.get("nested_offset", 0.0)) not in (int, float):
        raise CheckpointError(f"{name}: nested_offset must be a number, got {state['nested_offset']!r:.40}")
    return dict(state)


def _parts(files: TensorFiles, name: str, state: dict[str, Any]) -> Parts:
    *outer, k = state["shape"]
    n, size = math.prod(outer), state["blocksize"]
    if k % 2:
        raise CheckpointError(f"{name}: rows of {k} weights begin within a byte, which is not read")
    # Blocks go on from row to row: where K is no multiple of them, the parts that they have in common.
    common = math.gcd(k, size)
    packed = files.array(name).view(np.uint8).reshape(-1)
    if packed.size != n * k // 2:
        raise CheckpointError(f"{name}: expected {n * k // 2} bytes for [{n}, {k}], got {packed.size}")
    absmax = _absmax(files, name, state, -(-n * k // size))
    if common != size:
        absmax = np.repeat(absmax, size // common)[: n * k // common]
    table = files.array(f"{name}.quant_map", (16,), ("float32",))
    rows_of_bytes = packed.reshape(n, k // 2)
    arguments = {"lut": np.array(table), "scales": absmax.reshape(*outer, k // common), "group_size": common}
    return Parts((*outer, k), lambda rows: nibbles(rows_of_bytes[rows], high_first=True), arguments)


def _absmax(files: TensorFiles, name: str, state: dict[str, Any], blocks: int) -> AnyArray:
    stored = files.array(f"{name}.absmax", (blocks,), ("float32", "uint8"))
    if stored.dtype == np.float32:
        return np.array(stored)
    size = state.get("nested_blocksize", 256)
    if type(size) is not int or size < 1:
        raise CheckpointError(f"{name}: nested_blocksize must be a positive integer, got {size!r:.20}")
    factors = files.array(f"{name}.nested_absmax", (-(-blocks // size),), ("float32",))
    values = files.array(f"{name}.nested_quant_map", (256,), ("float32",))[stored]
    with np.errstate(over="ignore", invalid="ignore"):  # scales that are not finite are refused
        found: AnyArray = values * np.repeat(factors, size)[:blocks] + np.float32(state.get("nested_offset", 0.0))
    return found


def _rows(files: TensorFiles, name: str, factors: str) -> Parts:
    weights = files.array(name, (None, None), ("int8",))
    if f"{name}_format" in files and files.number(f"{name}_format", ()) != 0:
        raise CheckpointError(f"{name}_format: only rows, 0, are read, got a layout of a GPU's tiles")
    scales = files.array(factors, (weights.shape[0],), ("float32",))
    arguments = {"dtype": "int8", "scales": np.array(scales)[:, None], "scale2": _PER_127}
    return Parts((weights.shape[0], weights.shape[1]), lambda rows: weights[rows].view(np.uint8), arguments)
