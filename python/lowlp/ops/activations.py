"""`lowlp.quantize_activations` and `lowlp.hadamard`."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowlp.activations.hadamard import checked_block, transformed
from lowlp.activations.kinds import ActivationKind, activation_kind
from lowlp.activations.quantize import LEAST_SCALE, Rule, quantized_rows
from lowlp.activations.quantized import QuantizedActivations, checked_group_size
from lowlp.numeric.bit_planes import WORD_CODES
from lowlp.numeric.dtypes import DType, library_name
from lowlp.numeric.host_array import FLOAT_DTYPES, as_host_array, as_torch_tensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.errors import LowlpRuntimeError, LowlpTypeError, LowlpValueError
from lowlp_runtime.stream import other_torch_stream

from .activation_calls import call_key, remember, repeated
from .activation_launch import Work, launches_of, matrix_of, planes_of_codes, results_of, run
from .graph_breaks import outside_of_graphs

_SCALES = ("token", "tensor")


@outside_of_graphs
def quantize_activations(
    x: Any,
    dtype: str | DType = "int8",
    *,
    scale: Any = "token",
    symmetric: bool = True,
    clip: float = 1.0,
    smooth: Any = None,
    hadamard: int | None = None,
    group_size: int | None = None,
    planes: bool = False,
    stream: object = None,
) -> QuantizedActivations:
    """Quantises activations, each row by itself.

    x           [..., K], K >= 1, float16, bfloat16 or float32, any strides; numpy, or a tensor of PyTorch on the CPU:
                numpy computes; on a GPU: one launch there, on `stream` or PyTorch's current one (more
                with scale='tensor' and some transforms, see docs/activations.md)
    dtype       'int2' to 'int8', 'uint1' to 'uint8', 'bipolar1' to 'bipolar8', 'ternary' (-1, 0, 1), 'f8e4m3', 'f8e5m2'
    scale       'token': one a row, max|x| * clip / (largest number of the type); 'tensor': one for all rows; or scales
                that were found before (static ones): a number, or float32 of shape [..., 1], [...], or with groups
                [..., K / group_size], from 2^-126 on, which is not checked on a GPU
    symmetric   True: no zero points; unsigned types then have one of 2^(b - 1). False: a zero point of each row, so
                that its least and largest numbers become the least and largest codes; integers only, no given scales
    clip        in (0, 1]: numbers beyond that part of max|x| become the largest code
    smooth      float32 [K], positive: x is divided by it first, as SmoothQuant does (x * (1 / smooth))
    hadamard    numbers of a block of `lowlp.hadamard`, which transforms x, after `smooth`, and rounds to the type of x;
                None: no transform
    group_size  divides K: so many numbers of a row share a scale; None: all. Not with scale='tensor'
    planes      make `.planes` in the same launch, for which a use on bits will ask; else at their first use
    stream      as for `lowlp.linear`

    Returns codes, scales, zero points, and on demand sums and planes, in the library of x. A row, or group, with NaN or
    an infinity has the scale NaN, and no other row changes. Each step, in float32, is in
    `lowlp.activations.quantize`. There is no gradient: `LowlpRuntimeError` where PyTorch would record one. Raises
    `LowlpTypeError` and `LowlpValueError`, which name the argument.
    """
    on_gpu = is_cuda(x, stream)
    refuse_gradients(x=x)
    if other := other_torch_stream(stream, x.device) if on_gpu else None:
        with other:
            return quantize_activations(
                x,
                dtype,
                scale=scale,
                symmetric=symmetric,
                clip=clip,
                smooth=smooth,
                hadamard=hadamard,
                group_size=group_size,
                planes=planes,
            )
    key = None
    if on_gpu and smooth is None:
        key = call_key((x,), "quantise", name_of(dtype), scale, symmetric, clip, hadamard, group_size, planes)
        if found := repeated(key, (x,)):
            return found[0]
    check_rows(x)
    k = x.shape[-1]
    kind = activation_kind(dtype)
    group = checked_group_size(group_size, k)
    rule = rule_of(kind, scale, symmetric, clip, hadamard, group, k)
    check_planes(planes, kind)
    shape = (*x.shape[:-1], 1 if group is None else k // group)
    given = None if rule.scale != "given" else given_scales(scale, shape, group is not None, x if on_gpu else None)
    if on_gpu:
        inverse = None if smooth is None else _inverse_on_gpu(smooth, k, x)
        at_once = planes and (group is None or group % WORD_CODES == 0)
        work = Work(k, rule, inverse, hadamard=rule.hadamard, group_size=group, given=given, planes=at_once)
        parts, launches = launches_of(matrix_of(x), work)
        run(launches)
        made = activations_of(parts, kind, tuple(x.shape), group)
        remember(key, (x,), launches, made)
        return made
    rows = as_host_array(x, "x").reshape(-1, k)
    codes, scales, zeros = quantized_rows(rows, rule, _smooth(smooth, k), given)
    parts = {"codes": codes, "scales": scales} | ({} if zeros is None else {"zeros": zeros})
    made = activations_of(parts, kind, tuple(x.shape), group, is_torch_tensor(x))
    if planes:
        _ = made.planes
    return made


@outside_of_graphs
def hadamard(x: Any, block: int | None = None, *, stream: object = None) -> Any:
    """The normalised Hadamard transform of blocks of K, its own inverse.

    x       [..., K], float16, bfloat16 or float32; numpy, or a tensor of PyTorch, on the CPU or a GPU
    block   numbers of a block, which divides K: a power of two, or 12, 20 or 28 times one, from 32 to 32768; None: K
    stream  as for `lowlp.linear`

    Returns an array of the shape and type of x, in its library. Sums are float32, in the order that
    `lowlp.activations.hadamard` says, and rounded to the type of x at the end. Raises `LowlpTypeError` and
    `LowlpValueError`, which name the argument.
    """
    on_gpu = is_cuda(x, stream)
    refuse_gradients(x=x)
    if other := other_torch_stream(stream, x.device) if on_gpu else None:
        with other:
            return hadamard(x, block)
    check_rows(x)
    k = x.shape[-1]
    size = checked_block(block, k, "block")
    if on_gpu:
        return results_of(matrix_of(x), Work(k, None, hadamard=size, group_size=size))["y"].reshape(x.shape)
    rows = as_host_array(x, "x")
    with np.errstate(over="ignore"):
        result = transformed(rows.astype(np.float32).reshape(-1, k), size).astype(rows.dtype).reshape(rows.shape)
    return as_torch_tensor(result) if is_torch_tensor(x) else result


def activations_of(
    parts: dict[str, Any], kind: ActivationKind, shape: tuple[int, ...], group: int | None, as_tensors: bool = False
) -> QuantizedActivations:
    """Of what kernels or numpy have made of rows; numpy's as tensors on the CPU if `as_tensors`."""
    groups = 1 if group is None else shape[-1] // group
    shapes = dict.fromkeys(("scales", "zeros"), (*shape[:-1], groups))
    shapes |= {"codes": shape, "sums": shape[:-1] if group is None else (*shape[:-1], groups)}
    shapes["planes"] = (*shape[:-1], kind.dtype.bits, -(-shape[-1] // WORD_CODES))
    found: dict[str, Any] = dict.fromkeys(shapes)
    for name in shapes:
        if name in parts:
            array = parts[name].reshape(shapes[name])
            found[name] = as_torch_tensor(array) if as_tensors else array
    on_gpu = is_torch_tensor(found["codes"]) and found["codes"].is_cuda
    return QuantizedActivations._of(
        kind,
        found["codes"],
        found["scales"],
        found["zeros"],
        found["sums"],
        group,
        found["planes"],
        planes_of_codes if on_gpu else None,
    )


def name_of(dtype: object) -> object:
    """A type by its name, as keys of calls have it."""
    return dtype.name if isinstance(dtype, DType) else library_name(dtype) or dtype


def is_cuda(x: Any, stream: object) -> bool:
    """Whether x is on a GPU. Raises `LowlpValueError` for a stream where it is not."""
    found = is_torch_tensor(x) and bool(x.is_cuda)
    if stream is not None and not found:
        raise LowlpValueError("stream: allowed for CUDA tensors only, and x is on the CPU")
    return found


def refuse_gradients(**tensors: Any) -> None:
    """Raises `LowlpRuntimeError` where PyTorch would record the call: what comes out would have no gradient."""
    for name, tensor in tensors.items():
        if getattr(tensor, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
            raise LowlpRuntimeError(
                f"{name}: requires a gradient, and there is none; call it under torch.no_grad(), or pass "
                f"{name}.detach()"
            )


def check_rows(x: Any, argument: str = "x") -> None:
    """Raises unless x is an array of activations, [..., K] with K >= 1."""
    if not (is_torch_tensor(x) and x.is_cuda):
        x = as_host_array(x, argument)
    if str(x.dtype).removeprefix("torch.") not in ("float16", "bfloat16", "float32"):
        raise LowlpTypeError(f"{argument}: expected float16, bfloat16 or float32, got {x.dtype}")
    if len(x.shape) < 1 or not x.shape[-1]:
        raise LowlpValueError(f"{argument}: must have a last dimension K of at least 1, got shape {tuple(x.shape)}")


def check_planes(planes: object, kind: ActivationKind) -> None:
    """Raises unless `planes` is a bool, and False for floats."""
    if not isinstance(planes, bool | np.bool_):
        raise LowlpTypeError(f"planes: expected a bool, got {planes!r:.40}")
    if planes and kind.is_float:
        raise LowlpValueError(f"planes: must be False for {kind.name}, which has none")


def rule_of(
    kind: ActivationKind, scale: object, symmetric: object, clip: object, block: object, group: int | None, k: int
) -> Rule:
    """The checked arguments of `quantize_activations`."""
    if isinstance(scale, str) and scale not in _SCALES:
        raise LowlpValueError(f"scale: must be 'token', 'tensor' or scales, got {scale!r:.40}")
    name = scale if isinstance(scale, str) else "given"
    if not isinstance(symmetric, bool | np.bool_):
        raise LowlpTypeError(f"symmetric: expected a bool, got {symmetric!r:.40}")
    if not symmetric and (not kind.dtype.is_integer or kind.ternary):
        raise LowlpValueError(f"symmetric: must be True for {kind.name}, which has no zero points")
    if not symmetric and name == "given":
        raise LowlpValueError("symmetric: must be True with given scales, for which nobody gives zero points")
    if symmetric and kind.name == "uint1":
        raise LowlpValueError(
            "symmetric: must be False for uint1, whose one code beside 0 has one sign; or use bipolar1"
        )
    if isinstance(clip, bool) or not isinstance(clip, int | float | np.floating):
        raise LowlpTypeError(f"clip: expected a number, got {clip!r:.40}")
    if not 0 < clip <= 1:
        raise LowlpValueError(f"clip: must be above 0 and at most 1, got {clip}")
    if name == "given" and clip != 1:
        raise LowlpValueError(f"clip: must be 1 with given scales, got {clip}")
    if name == "tensor" and group is not None:
        raise LowlpValueError(f"group_size: must be None with scale='tensor', got {group}")
    size = 0 if block is None else checked_block(block, k, "hadamard")
    return Rule(kind, name, bool(symmetric), float(clip), size, group)


def given_scales(scale: Any, shape: tuple[int, ...], grouped: bool, on_gpu: Any = None) -> Any:
    """float32 [M, groups] of given scales, of numpy, or where the tensor `on_gpu` is."""
    if isinstance(scale, bool) or not (isinstance(scale, int | float) or hasattr(scale, "shape")):
        raise LowlpTypeError(f"scale: expected 'token', 'tensor', a number or an array, got {scale!r:.40}")
    if on_gpu is not None and is_torch_tensor(scale) and scale.is_cuda:
        return _given_on_gpu(scale, shape, grouped, on_gpu)
    number = isinstance(scale, int | float)
    array = (
        np.asarray(scale if abs(scale) < 2**128 else np.inf, np.float32) if number else as_host_array(scale, "scale")
    )
    if array.dtype not in FLOAT_DTYPES.values() and array.dtype != np.float64:
        raise LowlpTypeError(f"scale: expected float32, got {array.dtype}")
    if array.shape == shape[:-1] and not grouped:
        array = array[..., None]
    if array.size != 1 and array.shape != shape:
        raise LowlpValueError(f"scale: must be one number or of shape {shape}, got shape {array.shape}")
    with np.errstate(over="ignore"):
        numbers = array.astype(np.float32)
    bad = ~(np.isfinite(numbers) & (numbers >= LEAST_SCALE))
    if bad.any():
        raise LowlpValueError(f"scale: must be finite and at least 2^-126, got {numbers[bad].flat[0]}")
    if on_gpu is not None and numbers.size == 1:
        torch: Any = sys.modules["torch"]
        return torch.full((math.prod(shape[:-1]), shape[-1]), float(numbers.flat[0]), device=on_gpu.device)
    if on_gpu is not None:
        raise LowlpTypeError(f"scale: expected a number, or a tensor on {on_gpu.device}, got one on the CPU")
    full = np.broadcast_to(numbers.reshape(()) if numbers.size == 1 else numbers, shape)
    return np.ascontiguousarray(full).reshape(math.prod(shape[:-1]), shape[-1])


def _smooth(smooth: Any, k: int) -> NDArray[np.float32] | None:
    """float32 [K], or None."""
    if smooth is None:
        return None
    array = as_host_array(smooth, "smooth")
    if array.dtype not in FLOAT_DTYPES.values():
        raise LowlpTypeError(f"smooth: expected float16, bfloat16 or float32, got {array.dtype}")
    if array.shape != (k,):
        raise LowlpValueError(f"smooth: must have shape ({k},), got {array.shape}")
    numbers = array.astype(np.float32)
    bad = ~(np.isfinite(numbers) & (numbers >= LEAST_SCALE))
    if bad.any():
        raise LowlpValueError(f"smooth: must be finite and at least 2^-126, got {numbers[bad].flat[0]}")
    return numbers


def _given_on_gpu(scale: Any, shape: tuple[int, ...], grouped: bool, x: Any) -> Any:
    """float32 [M, groups] of a tensor, whose numbers nobody reads here."""
    torch: Any = sys.modules["torch"]
    if scale.dtype != torch.float32 or scale.device != x.device:
        raise LowlpTypeError(f"scale: expected float32 on {x.device}, got {scale.dtype} on {scale.device}")
    if tuple(scale.shape) == shape[:-1] and not grouped:
        scale = scale[..., None]
    if scale.numel() != 1 and tuple(scale.shape) != shape:
        raise LowlpValueError(f"scale: must be one number or of shape {shape}, got shape {tuple(scale.shape)}")
    full = scale.reshape(()).expand(shape) if scale.numel() == 1 else scale
    return full.reshape(math.prod(shape[:-1]), shape[-1]).contiguous()


def _inverse_on_gpu(smooth: Any, k: int, x: Any) -> Any:
    """float32 1 / smooth, where x is."""
    if not is_torch_tensor(smooth) or smooth.device != x.device:
        raise LowlpTypeError(f"smooth: expected a tensor on {x.device}, got {smooth!r:.60}")
    if tuple(smooth.shape) != (k,):
        raise LowlpValueError(f"smooth: must have shape ({k},), got {tuple(smooth.shape)}")
    return smooth.float().reciprocal()
