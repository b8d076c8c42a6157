"""compressed-tensors, as llm-compressor writes it: which of its formats a layer has, its tensors and their shapes say.

    pack-quantized         weight_packed int32 [N, words], weight_scale, weight_shape, and where not symmetric
                           weight_zero_point int32 [words of N, groups]; of old files weight_g_idx int32 [K]
    int-quantized          weight int8 [N, K], weight_scale, weight_zero_point
    float-quantized        weight e4m3 [N, K], weight_scale
    nvfp4-pack-quantized   weight_packed uint8 [N, K / 2], weight_scale e4m3, weight_global_scale, which divides
    mxfp4-, mxfp6-pack-quantized, mxfp8-quantized   with weight_scale uint8 [N, K / 32], exponents

Codes and zero points are stored 2^(b-1) above their number. Since version 0.18 they are a stream; before, a word had
32 // b of them, which differs for 3, 5, 6 and 7 bits.
Source: vllm-project/compressed-tensors (compressors, quantization/lifecycle/forward_helpers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from lowlp.checkpoints import fp8, microscaling
from lowlp.checkpoints.bit_streams import centred, padded, padded_words, stream, stream_words
from lowlp.checkpoints.groups import Grouping, consecutive_groups, listed_groups
from lowlp.checkpoints.layers import InputQuantization, Layer, Parts
from lowlp.checkpoints.scale_shapes import spread_scales
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import FLOATS, TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray

_PARTS: Final = ("weight_packed", "weight", "weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx")
_OTHERS: Final = ("weight_global_scale", "input_global_scale", "input_scale")
_REFUSED: Final = ("sparse-bitmask", "sparse-24-bitmask", "marlin-24")


def layers(files: TensorFiles, settings: Settings, exact: bool) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'compressed-tensors'."""
    _refuse_others(settings)
    for name in files.ending(".weight_scale"):
        yield _layer(files, name, _scheme(settings, name), exact)


def _refuse_others(settings: Settings) -> None:
    sparsity = settings.part("sparsity_config").text("format", default="dense")
    for found in (settings.text("format", default=""), sparsity):
        if found in _REFUSED:
            raise CheckpointError(f"{settings.where}: the format {found} stores sparse weights, which are not read")
    if settings.part("transform_config").part("config_groups").fields:
        raise CheckpointError(
            f"{settings.where}: transform_config has transforms that a model applies while it runs, which are not read"
        )


def _scheme(settings: Settings, name: str) -> Settings:
    """The config group of a layer: the one that names it, or else one for a class of modules."""
    groups = settings.part("config_groups")
    of_classes = []
    for key in groups.fields:
        group = groups.part(key)
        targets = group.value("targets", default=[])
        if not isinstance(targets, list | tuple) or not all(isinstance(target, str) for target in targets):
            raise CheckpointError(f"{group.where}: targets must be a list of texts, got {targets!r:.60}")
        for target in targets:
            if target == name or (target.startswith("re:") and settings.matches(target[3:], name)):
                return group
        if any(not target.startswith("re:") and "." not in target for target in targets):
            of_classes.append(group)
    return of_classes[0] if of_classes else Settings({}, settings.where)


def _layer(files: TensorFiles, name: str, scheme: Settings, exact: bool) -> Layer:
    tensors = tuple(f"{name}.{part}" for part in (*_PARTS, *_OTHERS) if f"{name}.{part}" in files)
    weights = scheme.part("weights")
    bits = weights.integer("num_bits")
    inputs = _inputs(files, name, scheme.part("input_activations"))

    def layer(shape: tuple[int, ...], text: str, find: Callable[[], Parts]) -> Layer:
        return Layer(f"{name}.weight", shape, text, tensors, find, (), inputs)

    scale = f"{name}.weight_scale"
    if f"{name}.weight_packed" in files:
        packed = f"{name}.weight_packed"
        if files.type_name(packed) == "int32":
            return layer(*_pack_quantized(files, name, bits, weights))
        shape, groups = files.shape(packed), files.shape(scale)
        if len(shape) != 2 or len(groups) != 2:
            raise CheckpointError(f"{packed}: expected matrices of codes and scales, got {list(shape)}, {list(groups)}")
        if f"{name}.weight_global_scale" in files:
            second = files.array(f"{name}.weight_global_scale", kinds=("float32",))
            find = partial(microscaling.nvfp4, files, packed, scale, second, divides=True, exact=exact)
            return layer((shape[0], 16 * groups[1]), "NVFP4 of compressed-tensors", find)
        width = {4: 16, 6: 24}
        found = [number for number, octets in width.items() if shape[1] == octets * groups[1]]
        if not found or (bits is not None and bits != found[0]):
            raise CheckpointError(
                f"{packed}: {shape[1]} bytes for {groups[1]} groups fit neither 4 nor 6 bits in groups of 32"
                if not found
                else f"{packed}: has codes of {found[0]} bits by its shape and of {bits} by the config"
            )
        find = partial(microscaling.packed_floats, files, packed, scale, found[0])
        return layer((shape[0], 32 * groups[1]), f"MXFP{found[0]} of compressed-tensors", find)
    weight = f"{name}.weight"
    if weight not in files:
        raise CheckpointError(f"{scale}: has neither {name}.weight_packed nor {weight} beside it")
    if files.type_name(weight) in fp8.TYPES:
        block = weights.value("block_structure") if weights.value("strategy") == "block" else None
        found_block = None if block is None else fp8.block_of(block, weights)
        return fp8.layer_of(files, weight, scale, found_block, inputs, tensors[2:])
    shape = files.array(weight, (None, None), ("int8",)).shape
    return layer(shape, f"{bits or 8} bits in bytes", partial(_int_quantized, files, name, bits or 8))


def _inputs(files: TensorFiles, name: str, activations: Settings) -> InputQuantization | None:
    bits = activations.integer("num_bits")
    if bits is None:
        return None
    kind = f"int{bits}" if activations.text("type", default="int") == "int" else {4: "f4e2m1"}.get(bits, "f8e4m3")
    strategy = activations.text("strategy", default="tensor")
    per: str | int = {"group": activations.integer("group_size"), "tensor_group": 16}.get(str(strategy)) or (
        "tensor" if strategy == "tensor" else "token"
    )
    scale = None
    if f"{name}.input_scale" in files:
        scale = files.number(f"{name}.input_scale")
    if f"{name}.input_global_scale" in files:
        # Scales of groups are found at run time, and are e4m3 times this one, which the file has as its reciprocal.
        return InputQuantization(kind, per, scale=1.0 / files.number(f"{name}.input_global_scale"))
    return InputQuantization(kind, per, dynamic=scale is None, scale=scale)


def _pack_quantized(
    files: TensorFiles, name: str, bits: int | None, weights: Settings
) -> tuple[tuple[int, int], str, Callable[[], Parts]]:
    """The shape, the format in words, and what finds the parts."""
    n, k = (int(extent) for extent in files.array(f"{name}.weight_shape", (2,), ("int64", "int32")))
    if bits is None:
        raise CheckpointError(f"{weights.where}: num_bits must be given for {name}.weight_packed")
    if not 1 <= bits <= 8:
        raise CheckpointError(f"{weights.where}: num_bits must be in 1..8, got {bits}")
    packed, zeros = f"{name}.weight_packed", f"{name}.weight_zero_point"
    counted = [(packed, files.array(packed, (n, None)).shape[1], k)]
    if zeros in files and files.type_name(zeros) == "int32":
        counted.append((zeros, files.array(zeros, (None, None)).shape[0], n))
    unpacker, text = _unpacker(counted, bits)
    find = partial(_parts, files, name, (n, k), bits, unpacker)
    return (n, k), f"{bits} bits, pack-quantized{text}", find


def _unpacker(counted: list[tuple[str, int, int]], bits: int) -> tuple[Callable[[AnyArray, int, int], AnyArray], str]:
    """How the words of a layer are read, which their numbers say: of each tensor its name, its words and its codes."""
    new = all(stream_words(bits, codes) == words for _, words, codes in counted)
    old = all(padded_words(bits, codes) == words for _, words, codes in counted)
    name, words, codes = counted[-1]
    if not new and not old:
        raise CheckpointError(
            f"{name}: expected {stream_words(bits, codes)} words for {codes} codes of {bits} bits, or before version "
            f"0.18 {padded_words(bits, codes)}, got {words}"
        )
    alike = 32 % bits == 0 or all(codes <= 32 // bits for _, _, codes in counted)
    if new and old and not alike:
        raise CheckpointError(
            f"{name}: two readings fit {words} words for {codes} codes of {bits} bits: a stream, as version 0.18 and "
            f"later write it, and {32 // bits} codes in a word, as versions before do"
        )
    return (stream, "") if new else (padded, " before 0.18")


def _parts(
    files: TensorFiles,
    name: str,
    shape: tuple[int, int],
    bits: int,
    unpacker: Callable[[AnyArray, int, int], AnyArray],
) -> Parts:
    n, k = shape
    words = files.array(f"{name}.weight_packed", (n, None), ("int32",))
    scales = files.array(f"{name}.weight_scale", kinds=FLOATS)
    grouping = None
    if f"{name}.weight_g_idx" in files:
        listed = files.array(f"{name}.weight_g_idx", (k,), ("int32", "int64"))
        if not (listed == -1).all():
            grouping = listed_groups(listed, k, scales.shape[-1], f"{name}.weight_g_idx")
    zeros = None
    if f"{name}.weight_zero_point" in files:
        groups = scales.shape[-1] if scales.ndim == 2 else 1
        stored = files.array(f"{name}.weight_zero_point", kinds=("int32", "int8", "uint8"))
        if stored.dtype == np.int32:
            stored = files.array(f"{name}.weight_zero_point", (None, groups))
            zeros = np.ascontiguousarray(unpacker(np.ascontiguousarray(stored.T), bits, n).T)
        else:
            zeros = stored.astype(np.int16) + (1 << (bits - 1))
    signed = zeros is None
    given = _spread(scales, zeros, shape, grouping, f"{name}.weight_scale")

    def read(rows: slice) -> AnyArray:
        codes = unpacker(words[rows], bits, k)
        return centred(codes, bits) if signed else codes

    return Parts(shape, read, {"dtype": f"{'int' if signed else 'uint'}{bits}", **given})


def _spread(
    scales: AnyArray, zeros: AnyArray | None, shape: tuple[int, int], grouping: Grouping | None, name: str
) -> dict[str, Any]:
    """Scales, zero points and groups as `QuantizedTensor` takes them."""
    n, k = shape
    if grouping is None and scales.ndim == 2 and scales.shape[1] > 1 and k % scales.shape[1]:
        raise CheckpointError(f"{name}: {scales.shape[1]} groups do not divide K = {k}")
    if grouping is None and scales.ndim == 2 and scales.shape[1] > 1:
        grouping = consecutive_groups(k, k // scales.shape[1])
    if grouping is None:
        given = spread_scales(scales, shape, name)
        if zeros is not None:
            if zeros.size != given["scales"].size:
                raise CheckpointError(f"{name}: has {given['scales'].size} numbers, and zero points are {zeros.size}")
            given["zeros"] = zeros.reshape(given["scales"].shape)
        return given
    if scales.ndim != 2 or scales.shape[0] != n:
        raise CheckpointError(f"{name}: expected shape [{n}, groups], got {list(scales.shape)}")
    return {
        "scales": grouping.spread(np.array(scales)),
        "zeros": None if zeros is None else grouping.spread(zeros),
        "group_size": grouping.size,
        "permutation": grouping.permutation,
    }


def _int_quantized(files: TensorFiles, name: str, bits: int) -> Parts:
    weights = files.array(f"{name}.weight", (None, None), ("int8",))
    scales = files.array(f"{name}.weight_scale", kinds=FLOATS)
    zeros = None
    if f"{name}.weight_zero_point" in files:
        zeros = files.array(f"{name}.weight_zero_point", kinds=("int8", "uint8", "int16", "int32")).astype(np.int16)
    if not 1 <= bits <= 8:
        raise CheckpointError(f"{name}: num_bits must be in 1..8, got {bits}")
    shape = (weights.shape[0], weights.shape[1])
    given = _spread(scales, zeros, shape, None, f"{name}.weight_scale")

    def read(rows: slice) -> AnyArray:
        numbers = weights[rows]
        low, high = int(numbers.min()), int(numbers.max())
        if low < -(1 << (bits - 1)) or high >= 1 << (bits - 1):
            raise CheckpointError(f"{name}.weight: numbers of {bits} bits must not be {low if low < -high else high}")
        return numbers.view(np.uint8) & np.uint8((1 << bits) - 1)

    return Parts(shape, read, {"dtype": f"int{bits}", **given})
