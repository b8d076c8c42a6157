"""GPTQ: `qweight`, `qzeros`, `scales`, and with act-order `g_idx`.

    qweight  int32 [ceil(K b / 32), N]        codes, a stream along K of each column; planar in gptq_p
    qzeros   int32 [groups, ceil(N b / 32)]   zero points, a stream along N
    scales   float [groups, N]
    g_idx    int32 [K], the group of each column; may be missing where columns have their order (desc_act is not true)

    W[n, k] = scales[g, n] * (q[k, n] - z[g, n])

Version 1 stores z - 1 modulo 2^b, version 2 and gptq_p z. GPTQModel makes version 1 of 2, 4 and 8 bits by a subtraction
from whole words, so that a zero point of 0 borrows from the next one; files that name it as their maker are read so.
Sources: ModelCloud/GPTQModel (nn_modules/qlinear, utils/model.py, utils/planar_packing.py, quantization/config.py) and
AutoGPTQ/AutoGPTQ (qlinear_cuda_old.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from lowlp.checkpoints.bit_streams import centred, planar, stream, stream_words
from lowlp.checkpoints.groups import Grouping, consecutive_groups, listed_groups
from lowlp.checkpoints.layers import Layer, Parts
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import FLOATS, TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray

BITS: Final = range(2, 9)
_VERSIONS: Final = {"gptq": "v1", "gptq_v2": "v2", "gptq_p": "planar"}


@dataclass(frozen=True)
class Form:
    """How a layer is stored.

    bits        of a code
    group_size  columns of a group; -1: all; None: not said
    version     'v1', 'v2' or 'planar'
    symmetric   whether zero points are said to be in the middle
    borrows     whether version 1 was made by subtractions from words
    has_order   whether columns are said to have an order of their own, which `g_idx` gives
    """

    bits: int
    group_size: int | None
    version: str
    symmetric: bool
    borrows: bool = False
    has_order: bool = False


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'gptq'."""
    settings.text("pack_dtype", allowed=("int32",), default="int32")
    name = settings.text("checkpoint_format", "format", default="gptq")
    if name not in _VERSIONS:
        raise CheckpointError(
            f"{settings.where}: checkpoint_format must be one of {', '.join(_VERSIONS)}, got {name!r:.40}"
        )
    for layer in files.ending(".qweight"):
        own = _with_rules(settings, layer)
        bits = own.integer("bits", "w_bit", allowed=BITS)
        if bits is None:
            raise CheckpointError(f"{settings.where}: bits must be given, one of {', '.join(map(str, BITS))}")
        size = own.integer("group_size", "q_group_size")
        symmetric = bool(own.flag("sym", default=False))
        has_order = bool(own.flag("desc_act", default=False))
        form = Form(bits, size, _VERSIONS[name], symmetric, _made_by_gptqmodel(settings), has_order)
        yield layer_of(files, layer, form)


def _made_by_gptqmodel(settings: Settings) -> bool:
    return "gptqmodel" in str(settings.part("meta").value("quantizer", default="")).lower()


def _with_rules(settings: Settings, layer: str) -> Settings:
    """The settings of a layer: GPTQModel's `dynamic` has some by regular expressions, '+:' or '-:' before them."""
    rules = settings.part("dynamic")
    for pattern in rules.fields:
        if pattern.startswith("-:"):
            if settings.matches(pattern[2:], layer):
                raise CheckpointError(f"{layer}: is quantised, and {rules.where} leaves it out by {pattern!r:.80}")
        elif settings.matches(pattern.removeprefix("+:"), layer):
            return settings.with_fields(rules.part(pattern).fields)
    return settings


def layer_of(files: TensorFiles, name: str, form: Form) -> Layer:
    """The layer `name` in that form. Raises `CheckpointError` where its tensors do not fit the form."""
    scales = files.shape(f"{name}.scales")
    words = files.shape(f"{name}.qweight")
    if len(words) != 2 or len(scales) != 2:
        raise CheckpointError(
            f"{name}: expected matrices qweight and scales, got shapes {list(words)} and {list(scales)}"
        )
    n = words[1]
    k = _columns(files, name, words[0], form)
    if form.version == "planar" and (k % 32 or n % 32):
        raise CheckpointError(f"{name}: planar codes come in blocks of 32, got [{n}, {k}]")
    tensors = tuple(
        tensor
        for tensor in (f"{name}.{part}" for part in ("qweight", "qzeros", "scales", "g_idx", "perm"))
        if tensor in files
    )
    return Layer(
        f"{name}.weight",
        (n, k),
        f"GPTQ {form.version}, {form.bits} bits",
        tensors,
        partial(_parts, files, name, n, k, form),
    )


def _columns(files: TensorFiles, name: str, words: int, form: Form) -> int:
    """K, which the words do not always tell."""
    if f"{name}.g_idx" in files:
        (k,) = files.array(f"{name}.g_idx", (None,)).shape
    else:
        groups, size = files.shape(f"{name}.scales")[0], form.group_size
        k = groups * size if size is not None and size > 0 else words * 32 // form.bits
        if stream_words(form.bits, k) != words:  # the last group may be short
            k = words * 32 // form.bits
    if stream_words(form.bits, k) != words:
        raise CheckpointError(
            f"{name}.qweight: expected {stream_words(form.bits, k)} words for {k} columns of {form.bits} bits, got "
            f"{words}"
        )
    return int(k)


def _parts(files: TensorFiles, name: str, n: int, k: int, form: Form) -> Parts:
    groups = files.shape(f"{name}.scales")[0]
    scales = files.array(f"{name}.scales", (groups, n), FLOATS)
    grouping = _grouping(files, name, k, groups, form)
    words = files.array(f"{name}.qweight", kinds=("int32", "uint32"))
    unpacker = planar if form.version == "planar" else stream
    zeros = _zeros(files, name, (groups, n), form, unpacker)
    middle = 1 << (form.bits - 1)
    signed = bool((zeros == middle).all())

    def read(rows: slice) -> AnyArray:
        codes = unpacker(np.ascontiguousarray(words[:, rows].T), form.bits, k)
        return centred(codes, form.bits) if signed else codes

    arguments = {
        "dtype": f"{'int' if signed else 'uint'}{form.bits}",
        "scales": grouping.spread(np.ascontiguousarray(scales.T)),
        "zeros": None if signed else grouping.spread(np.ascontiguousarray(zeros.T)),
        "group_size": grouping.size,
        "permutation": grouping.permutation,
    }
    return Parts((n, k), read, arguments)


def _grouping(files: TensorFiles, name: str, k: int, groups: int, form: Form) -> Grouping:
    if f"{name}.g_idx" in files:
        return listed_groups(files.array(f"{name}.g_idx", (k,), ("int32", "int64")), k, groups, f"{name}.g_idx")
    if form.has_order and groups > 1:
        raise CheckpointError(f"{name}.g_idx: is missing, and desc_act is true in the config")
    size = k if form.group_size in (None, -1) and groups == 1 else form.group_size
    if size is None or size < 1:
        size = -(-k // groups)
    if -(-k // size) != groups:
        raise CheckpointError(
            f"{name}.scales: expected {-(-k // size)} groups of {size} columns for K = {k}, got {groups}"
        )
    return consecutive_groups(k, size)


def _zeros(
    files: TensorFiles,
    name: str,
    shape: tuple[int, int],
    form: Form,
    unpacker: Callable[[AnyArray, int, int], AnyArray],
) -> AnyArray:
    """The true zero points, uint8 [groups, N]."""
    middle = 1 << (form.bits - 1)
    if f"{name}.qzeros" not in files and form.symmetric:
        return np.full(shape, middle, np.uint8)
    words = files.array(f"{name}.qzeros", (shape[0], stream_words(form.bits, shape[1])), ("int32", "uint32"))
    stored = unpacker(words, form.bits, shape[1])
    if form.borrows and 32 % form.bits == 0:
        ones = np.uint32(sum(1 << at for at in range(0, 32, form.bits)))
        other = unpacker(words.view(np.uint32) + ones, form.bits, shape[1])
    else:
        other = ((stored.astype(np.int16) + 1) & ((1 << form.bits) - 1)).astype(np.uint8)
    found = stored
    if form.version == "v1":
        found, other = other, found
    if form.symmetric and (other == middle).all():
        raise CheckpointError(
            f"{name}.qzeros: two readings fit: by checkpoint_format (GPTQ {form.version}) all zero points are "
            f"{int(found.flat[0])}, and by sym = true they are {middle}, as GPTQ "
            f"{'v2' if form.version == 'v1' else 'v1'} would read them; correct the one that is wrong in the config"
        )
    return found
