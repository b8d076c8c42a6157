"""`lowlp.rms_norm_quant` and `lowlp.silu_mul_quant`: what stands before a product, quantised in the same launch."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lowlp.activations.kinds import ActivationKind, activation_kind
from lowlp.activations.quantized import QuantizedActivations
from lowlp.kernels.activations.spec import LONGEST_HELD, LONGEST_NORMED, Norm
from lowlp.numeric.dtypes import DType
from lowlp.numeric.host_array import AnyArray, as_host_array, as_torch_tensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.stream import other_torch_stream

from .activation_calls import call_key, remember, repeated
from .activation_launch import Matrix, Work, launches_of, matrix_of, run
from .activations import (
    activations_of,
    check_planes,
    check_rows,
    given_scales,
    is_cuda,
    name_of,
    refuse_gradients,
    rule_of,
)
from .graph_breaks import outside_of_graphs

_BEYOND_FLOAT32: Final = 2**128 - 2**103
"""The least number that rounds to an infinity."""


@outside_of_graphs
def rms_norm_quant(
    x: Any,
    weight: Any,
    eps: float,
    residual: Any = None,
    dtype: str | DType = "int8",
    *,
    scale: Any = "token",
    planes: bool = False,
    stream: object = None,
) -> tuple[QuantizedActivations, Any]:
    """The RMS norm of x, or of x + residual, quantised: one launch.

        r = round(x + residual);  y = round((r * (1 / sqrt(mean(r * r) + eps))) * weight)

    x         [..., K], K up to 20480, float16, bfloat16 or float32, any row stride; numpy, or a tensor of PyTorch on
              the CPU: the CPU target computes; on a GPU: that GPU does
    weight    [K], float16, bfloat16 or float32
    eps       a number from 0 on
    residual  of the shape and type of x, or None: r is x
    dtype, scale, planes, stream  as for `lowlp.quantize_activations`; scale is 'token' or given scales

    Steps are float32, each rounded; `round` is to the type of x, so that the codes are those of
    `quantize_activations(y)`, with y what `torch.nn.functional.rms_norm` returns but for its order of sums. Here
    that order depends on K and the type of x alone (docs/activations.md).

    Returns the quantised y, and r of the type of x: a new array, None without a residual. A row with NaN or an infinity
    has the scale NaN. Raises `LowlpTypeError` and `LowlpValueError`, which name the argument.
    """
    if other := other_torch_stream(stream, x.device) if is_cuda(x, stream) else None:
        with other:
            return rms_norm_quant(x, weight, eps, residual, dtype, scale=scale, planes=planes)
    refuse_gradients(x=x, weight=weight, residual=residual)
    given = tuple(part for part in (x, weight, residual) if part is not None)
    on_gpu = all(is_torch_tensor(part) and part.is_cuda for part in given)
    key = call_key(given, "norm", name_of(dtype), eps, residual is None, scale, planes) if on_gpu else None
    if found := repeated(key, given):
        return found
    rows = _rows(x, "x")
    k = rows.array.shape[1]
    _check_length(k, "x", LONGEST_NORMED)
    if isinstance(eps, bool) or not isinstance(eps, int | float | np.floating):
        raise LowlpTypeError(f"eps: expected a number, got {eps!r:.40}")
    if not 0 <= eps < _BEYOND_FLOAT32:
        raise LowlpValueError(f"eps: must be finite and at least 0, got {eps!r:.40}")
    factors = _beside(weight, "weight", x)
    if tuple(factors.shape) != (k,):
        raise LowlpValueError(f"weight: must have shape ({k},), got {tuple(factors.shape)}")
    added = None
    if residual is not None:
        added = matrix_of(_beside(residual, "residual", x))
        if tuple(residual.shape) != tuple(x.shape):
            raise LowlpValueError(f"residual: must have the shape of x, {tuple(x.shape)}, got {tuple(residual.shape)}")
        if str(residual.dtype).removeprefix("torch.") != str(x.dtype).removeprefix("torch."):
            raise LowlpTypeError(f"residual: must be of the type of x, {x.dtype}, got {residual.dtype}")
    kind = activation_kind(dtype)
    norm = Norm(matrix_of(factors[None]).source, float(np.float32(eps)), added is not None)
    work = _work(x, kind, k, scale, planes, norm=norm, weight=factors, residual=added)
    parts, launches = launches_of(rows, work)
    run(launches)
    made = _made(parts, kind, tuple(x.shape), x)
    r = None if residual is None else parts["residual_out"].reshape(x.shape)
    remember(key, given, launches, made, r)
    return made, as_torch_tensor(r) if r is not None and is_torch_tensor(x) and not x.is_cuda else r


@outside_of_graphs
def silu_mul_quant(
    gate_up: Any,
    dtype: str | DType = "int8",
    *,
    scale: Any = "token",
    hadamard: int | None = None,
    planes: bool = False,
    stream: object = None,
) -> QuantizedActivations:
    """silu(gate) * up, quantised: one launch.

    gate_up   [..., 2 K], K up to 32768: gates, then ups, as a merged gate_up_proj gives them; float16, bfloat16 or
              float32, any row stride; numpy, or a tensor of PyTorch on the CPU: the CPU target computes; on a GPU: that
              GPU does
    hadamard  numbers of a block of `lowlp.hadamard`, which transforms the product before; in the same launch for powers
              of two and K up to 16384
    dtype, scale, planes, stream  as for `lowlp.quantize_activations`; scale is 'token' or given scales

    Both factors are float32, silu within a relative error of 1e-6; the product is rounded once to the type of gate_up,
    so that the codes are those of `quantize_activations` of it.

    Returns activations [..., K]. A row with NaN or an infinity has the scale NaN. Raises `LowlpTypeError` and
    `LowlpValueError`, which name the argument.
    """
    if other := other_torch_stream(stream, gate_up.device) if is_cuda(gate_up, stream) else None:
        with other:
            return silu_mul_quant(gate_up, dtype, scale=scale, hadamard=hadamard, planes=planes)
    refuse_gradients(gate_up=gate_up)
    key = None
    if is_torch_tensor(gate_up) and gate_up.is_cuda:
        key = call_key((gate_up,), "silu", name_of(dtype), scale, hadamard, planes)
        if found := repeated(key, (gate_up,)):
            return found[0]
    rows = _rows(gate_up, "gate_up")
    columns = rows.array.shape[1]
    if columns % 2:
        raise LowlpValueError(f"gate_up: must have an even last dimension, gates and ups, got {columns}")
    k = columns // 2
    _check_length(k, "gate_up", LONGEST_HELD)
    kind = activation_kind(dtype)
    work = _work(gate_up, kind, k, scale, planes, hadamard=hadamard, silu=True)
    parts, launches = launches_of(rows, work)
    run(launches)
    made = _made(parts, kind, (*gate_up.shape[:-1], k), gate_up)
    remember(key, (gate_up,), launches, made)
    return made


def _work(
    x: Any, kind: ActivationKind, k: int, scale: Any, planes: bool, *, hadamard: int | None = None, **parts: Any
) -> Work:
    """What both have in common."""
    if isinstance(scale, str) and scale != "token":
        raise LowlpValueError(f"scale: must be 'token' or scales, got {scale!r:.40}")
    check_planes(planes, kind)
    if kind.name == "uint1":
        raise LowlpValueError("dtype: uint1 has zero points, which quantize_activations alone makes; or use bipolar1")
    rule = rule_of(kind, scale, True, 1.0, hadamard, None, k)
    given = None
    if rule.scale == "given":
        on_gpu = x if is_torch_tensor(x) and x.is_cuda else None
        given = given_scales(scale, (*x.shape[:-1], 1), False, on_gpu)
    return Work(k, rule, hadamard=rule.hadamard, given=given, planes=planes, **parts)


def _made(parts: dict[str, Any], kind: ActivationKind, shape: tuple[int, ...], like: Any) -> QuantizedActivations:
    return activations_of(parts, kind, shape, None, is_torch_tensor(like) and not like.is_cuda)


def _rows(x: Any, argument: str) -> Matrix:
    """x as rows; those on the CPU as numpy's."""
    check_rows(x, argument)
    return matrix_of(x if is_torch_tensor(x) and x.is_cuda else as_host_array(x, argument))


def _beside(part: Any, argument: str, x: Any) -> Any:
    """Another argument, where x is, as kernels take it."""
    if is_torch_tensor(x) and x.is_cuda:
        if not is_torch_tensor(part) or part.device != x.device:
            raise LowlpTypeError(f"{argument}: expected a tensor on {x.device}, got {part!r:.60}")
        check_rows(part, argument)
        return part if len(part.shape) > 1 else part.contiguous()
    check_rows(part, argument)
    host: AnyArray = as_host_array(part, argument)
    return host if host.ndim > 1 else np.ascontiguousarray(host)


def _check_length(k: int, argument: str, most: int) -> None:
    if k > most:
        raise LowlpValueError(f"{argument}: rows may have up to K = {most} numbers here, got {k}")
