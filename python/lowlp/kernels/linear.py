"""y = x @ w^T with weights of 1 to 8 bits: figure 2 of the Tilus paper for every type, shape and group.

A block of one warp makes a tile of 16 rows of x by 8 rows of w. Along K it goes from group to group. In a group it sums
the raw products of x and the unscaled weights, 32 at a time, and then adds them to the result, scaled:

    acc += s * raw                       symmetric
    acc += s * (raw - z * sum_x)         with zero points
    acc += s * raw + b * sum_x           with offsets

and at the end, with a second scale of the whole tensor, acc *= s2: for one weight the order of `dequantize`, where
`s * s2` would round differently.

`sum_x`, the sum of the group's x, is one more product, with a tile of ones. So nothing but the scale is rounded, and
the result for one weight is what `QuantizedTensor.dequantize` computes. Types whose largest number f16 cannot hold,
f6e5m0 and its like, are multiplied as halves of their values, and the sums doubled; both are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from .. import language as ll
from ..codec import Codec
from ..dtypes import DType, dtype
from ..errors import LowlpValueError
from ..layouts import Layout, layout
from ..packing_0 import BLOCK_K, BLOCK_N, WEIGHT_LAYOUT, packed_layout, packed_shape

BLOCK_M = 16

# The fragments of mma.sync m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16"), two along K.
X_LAYOUT = layout("local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)")
SUM_LAYOUT = layout("local(2, 1).spatial(8, 4).local(1, 2)")

ACTIVATIONS = ("f16", "bf16")
OUTPUTS = ("f16", "bf16", "f32")


@dataclass(frozen=True)
class LinearSpec:
    """What a kernel for `linear` is specialised for; M and the row stride of x stay open.

    n, k          the weights' shape [N, K]
    weight        name of the codes' type, an integer or float of 1 to 8 bits
    group_size    weights of a row that share a scale; divides K
    activation    'f16' or 'bf16'
    out           type of the result
    scale         type of the scales
    zeros         zero points [N, K / group_size], f32
    offsets       offsets [N, K / group_size], f32
    scale2        with a second scale, an f32 number; excludes offsets
    bias          type of a bias [N], or ''
    aligned       x is 16-byte aligned and its row stride a multiple of 8 elements: wide loads
    """

    n: int
    k: int
    weight: str
    group_size: int
    activation: str = "f16"
    out: str = "f16"
    scale: str = "f16"
    zeros: bool = False
    offsets: bool = False
    scale2: bool = False
    bias: str = ""
    aligned: bool = False

    def __post_init__(self) -> None:
        for name in ("n", "k", "group_size"):
            if getattr(self, name) < 1:
                raise LowlpValueError(f"{name}: must be at least 1, got {getattr(self, name)}")
        if self.k % self.group_size:
            raise LowlpValueError(f"group_size: must divide k = {self.k}, got {self.group_size}")
        for name, allowed in (("activation", ACTIVATIONS), ("out", OUTPUTS), ("scale", OUTPUTS)):
            if getattr(self, name) not in allowed:
                raise LowlpValueError(f"{name}: must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        if self.scale2 and self.offsets:
            raise LowlpValueError("scale2, offsets: at most one of them may be given, got both")
        check_weight(dtype(self.weight), self.activation)


def check_weight(weight: DType, activation: str, argument: str = "weight") -> None:
    """Raises `LowlpValueError`, which names `argument`, unless products of these types are exact."""
    if not (weight.is_integer or weight.is_float) or weight.bits > 8 or weight.name.startswith("bipolar"):
        raise LowlpValueError(f"{argument}: must be an integer or a float of 1 to 8 bits, got {weight.name}")
    if activation == "f16" and weight.is_float and weight.exponent_bits > 5:
        raise LowlpValueError(
            f"{argument}: {weight.name} has {weight.exponent_bits} exponent bits and f16 has 5; use bf16 activations"
        )


def prescale(weight: DType, activation: str) -> float:
    """The power of two by which weights are multiplied so that the activation type holds all of them exactly."""
    factor = Codec(weight, "channel").prescale(activation)
    assert factor is not None, "check_weight refuses other types"
    return factor


def linear_kernel(spec: LinearSpec) -> ll.Kernel:
    """The block program for `spec`.

    Parameters, in order: x [M, K] with a row stride of `x_stride` elements; weights, as `lowlp.packing` packs them;
    scales [N, K / group_size]; then, where the spec has them, zeros or offsets, scale2, and bias [N]; y [M, N]; m;
    x_stride.
    """
    weight = dtype(spec.weight)
    groups = spec.k // spec.group_size
    tiles_n, _, chunks, tile_bytes = packed_shape(spec.n, spec.k, spec.group_size, weight.bits)
    byte_layout: Layout = packed_layout(weight.bits)
    correction = spec.zeros or spec.offsets
    factor = prescale(weight, spec.activation)

    def decode(codes: ll.Tile) -> ll.Tile:
        """The codes' values, times `factor`."""
        if factor == 1.0:
            return ll.cast(codes, spec.activation)
        return ll.cast(ll.cast(codes, "f32") * factor, spec.activation)

    def body(x, weights, scales, correctors, scale2, bias, y, m, x_stride):  # type: ignore[no-untyped-def]
        (block,) = ll.block_indices()
        row, column = block // tiles_n * BLOCK_M, block % tiles_n * BLOCK_N
        # One view for each group: what lies behind a group's end is zero.
        x_view = ll.view_global(x, shape=[groups, m, spec.group_size], strides=[spec.group_size, x_stride, 1])
        w_view = ll.view_global(weights, shape=[tiles_n, groups, chunks, tile_bytes])
        per_group = {"shape": [groups, BLOCK_M, spec.n], "strides": [1, 0, groups]}
        s_view = ll.view_global(scales, **per_group)
        c_view = ll.view_global(correctors, **per_group) if correction else s_view
        ones = ll.full(1.0, spec.activation, layout=WEIGHT_LAYOUT)
        acc = ll.full(0.0, "f32", layout=SUM_LAYOUT)
        for group in ll.range(groups):
            raw = ll.full(0.0, "f32", layout=SUM_LAYOUT)
            sum_x = ll.full(0.0, "f32", layout=SUM_LAYOUT)
            for chunk in ll.range(chunks):
                x_tile = ll.load_global(x_view, offsets=[group, row, chunk * BLOCK_K], layout=X_LAYOUT)
                packed = ll.load_global(w_view, offsets=[column // BLOCK_N, group, chunk, 0], layout=byte_layout)
                codes = ll.view(packed, dtype=weight.name, layout=WEIGHT_LAYOUT)
                raw = ll.dot(x_tile, decode(codes), raw)
                if correction:
                    sum_x = ll.dot(x_tile, ones, sum_x)
            if factor != 1.0:
                raw = raw * (1.0 / factor)
            scale = ll.cast(ll.load_global(s_view, offsets=[group, 0, column], layout=SUM_LAYOUT), "f32")
            if correction:
                corrector = ll.load_global(c_view, offsets=[group, 0, column], layout=SUM_LAYOUT)
                if spec.zeros:
                    raw = raw - corrector * sum_x
                raw = scale * raw
                if spec.offsets:
                    raw = raw + corrector * sum_x
                acc = acc + raw
            else:
                acc = acc + scale * raw
        if spec.scale2:
            acc = acc * scale2
        if spec.bias:
            bias_view = ll.view_global(bias, shape=[BLOCK_M, spec.n], strides=[0, 1])
            acc = acc + ll.cast(ll.load_global(bias_view, offsets=[0, column], layout=SUM_LAYOUT), "f32")
        y_view = ll.view_global(y, shape=[m, spec.n])
        ll.store_global(ll.cast(acc, spec.out), y_view, offsets=[row, column])

    annotations = {
        "x": ll.pointer(spec.activation, align=16 if spec.aligned else None),
        "weights": ll.pointer("uint8", align=16),
        "scales": ll.pointer(spec.scale),
        **({"correctors": ll.pointer("f32")} if correction else {}),
        **({"scale2": ll.f32} if spec.scale2 else {}),
        **({"bias": ll.pointer(spec.bias)} if spec.bias else {}),
        "y": ll.pointer(spec.out),
        "m": ll.i32,
        "x_stride": ll.integer(64, divisible_by=8 if spec.aligned else 1),
    }
    return ll.make_kernel(
        body,
        name=f"linear_{spec.weight}_{spec.activation}",
        parameters=annotations,
        grid=lambda m: (ll.ceildiv(m, BLOCK_M) * tiles_n,),
        num_threads=32,
    )
