"""`lowlp.linear`: activations times quantised weights, where the activations are."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from lowlp.activations.quantized import QuantizedActivations
from lowlp.compiler.architectures import DEFAULT_ARCH, check_arch
from lowlp.compiler.compilation import warn_of_spills
from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp.compiler.targets import target as find_target
from lowlp.errors import LowlpRuntimeError, LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.candidates import ANY_ROWS, CLASSES, EXACT_ROWS, class_of
from lowlp.kernels.linear.choosing import ordered_within, reason_for, schedule_for
from lowlp.kernels.linear.integer_sums import for_many_rows
from lowlp.kernels.linear.measured import measured_gpus
from lowlp.kernels.linear.paths import check_path
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import ACTIVATIONS, EPILOGUES, GATED, OUTPUTS, SUMS, LinearSpec, check_weight
from lowlp.numeric.codec import OFFSET_TYPES, SCOPES, ZERO_TYPES, Codec, Table
from lowlp.numeric.dtypes import DType, dtype_among, named_dtype
from lowlp.numeric.group_codes import GROUP_CODE_TYPES
from lowlp.numeric.host_array import as_host_array, as_torch_tensor
from lowlp.numeric.scale_types import scale_type
from lowlp.numeric.vectors import Vectors
from lowlp.schedules.device import H200, device_ahead
from lowlp.weights.codebook_order import check_frequencies
from lowlp.weights.meaning import check_whole_codes, group_size_of
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.super_scales import checked_super_group_size
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.tiles import TooManyRowsError

from .graph_breaks import outside_of_graphs, skip_frames
from .invariance import invariance_of
from .linear_kernels import compile_for_gpu, gpu_ordering_kernel
from .linear_launch import linear_on_gpu
from .linear_on_cpu import linear_numpy
from .quantized_linear import activation_of_kernel, check_compiled_path, quantized_linear
from .quantized_x import result_of

_INT32_MAX = 2**31 - 1
_BOOLS = (bool, np.bool_)
_TABLES = {f"lut{bits}": bits for bits in range(1, 9)}


@outside_of_graphs
def linear(
    x: Any,
    qw: QuantizedTensor,
    *,
    bias: Any = None,
    epilogue: str | None = None,
    residual: Any = None,
    out_dtype: str | DType | None = None,
    batch_invariant: bool | int = False,
    activation: str | DType | None = None,
    path: str | None = None,
    stream: object = None,
) -> Any:
    """y = epilogue(x @ w^T + bias) + residual, with w the quantised weights.

    x                [..., K], float16 or bfloat16, any row stride; numpy, or a tensor of PyTorch on the CPU: the CPU
                     target computes; on a GPU: that GPU does, on `stream` or PyTorch's current one. Or
                     `QuantizedActivations`, with a scale for each row; with `activation` float32 too
    qw               weights [N, K]; uploaded at their first use on a GPU, and kept there as long as `qw` lives. Of
                     another family than the activations they are repacked once, with a warning
    bias             [N], float16, bfloat16 or float32, or None
    epilogue         None, 'relu', 'gelu' (by erf), 'gelu_tanh', 'silu', or of gate and up, where the first N / 2 rows
                     of w are the gate and the others up, as in a merged `gate_up_proj`: 'silu_mul', silu(gate) * up; or
                     'gpt_oss', (up + 1) * gate * sigmoid(1.702 gate), with gate at most 7 and up in -7 to 7
    residual         of the shape of the result, float16, bfloat16 or float32, any row stride, where x is; or None
    out_dtype        'f16', 'bf16' or 'f32'; None: as x, of quantised x 'f16'. Of quantised integers 's32' too: the sums
                     of the products of the numbers as they are, less zero points, without scales, bias and the like
    batch_invariant  a row's result does not depend on M: all M add its products in one order. Results differ by
                     roundings from those without it, and take a little longer (docs/adr/0046). Without it that holds
                     among M of 1 to 16, with books perhaps of 1 and 2 and of 3 to 16 (docs/codebooks.md), and for any
                     M rows do not depend on what the others hold. Without it, entries of several books may be added
                     in the type of x, for results of f32 where M is more than 64 (docs/adr/0055, 0119). An int of at
                     least N: these are some rows of weights of so many rows, and results are, bit for bit, what those
                     give with True
    activation       a type to which x is quantised first, 'int8' or 'f8e4m3' for example, as `quantize_activations`
                     does without further arguments; None: x is taken as it is
    path             by which products quantised x is multiplied: 's8', 'fp8', 'planes', or 'f16', which dequantises it:
                     to bf16 where the weights are packed for that, else to f16, with its range: above 65504 x becomes
                     infinite, below 2^-14 it loses bits; None: chosen (`kernels.linear.paths`)

    Sums of products of quantised integers are exact, in int32, which wraps around. With a scale for each row of weights
    y = round((f32(sum) * s_w) * s_x + bias), with a rounding for each step; scales of groups go on sums of groups,
    which are added in f32. Products of floats of 8 bits are added in f32.

    Returns [..., N] of `out_dtype`, or [..., N / 2] with a gate, in the library of x. Products are added in f32, in
    one fixed order; the second scale of w, bias, epilogue and residual follow in f32, in this order and in the same
    launch, gates of many rows in one after it (docs/adr/0086), and the result is rounded once. An epilogue is within a
    relative error of 1e-6 of the function of what it gets ('gelu_tanh' of less than -3 and 'gpt_oss' of a gate of less
    than -7: 1e-5); NaN stays NaN.
    With many rows of x and weights that take long to decode, a GPU decodes up to 256 MiB of them to memory at a time,
    and PyTorch multiplies: in its order of sums, and with what its flags allow (docs/adr/0098). Not with
    `batch_invariant`.
    `torch.compile` breaks its graph at a call. There is no gradient yet: `LowlpRuntimeError` where PyTorch would record
    one, that is for tensors that require it, but for `torch.no_grad()`.
    Raises `LowlpTypeError` and `LowlpValueError` for arguments that do not fit, `CpuTargetError`, `DeviceError`.
    """
    if not isinstance(qw, QuantizedTensor):
        raise LowlpTypeError(f"qw: expected a QuantizedTensor, got {type(qw).__name__}; lowlp.quantize makes one")
    if batch_invariant is not False:
        batch_invariant = invariance_of(batch_invariant, qw.shape[-2], epilogue in GATED)
    if activation is not None or path is not None or isinstance(x, QuantizedActivations):
        return quantized_linear(x, qw, bias, epilogue, residual, out_dtype, batch_invariant, activation, path, stream)
    out = None if out_dtype is None else dtype_among(out_dtype, "out_dtype", OUTPUTS)
    ending = "" if epilogue is None else _epilogue_of(epilogue)
    if isinstance(x, np.ma.MaskedArray):
        raise LowlpTypeError("x: masked arrays are not supported; pass x.filled(value), or x.data without the mask")
    if isinstance(x, np.ndarray):
        if stream is not None:
            raise LowlpValueError("stream: allowed for CUDA tensors only, and x is a numpy array")
        return linear_numpy(x, qw, bias, ending, residual, out, batch_invariant)
    if is_torch_tensor(x):
        skip_frames()
        return _linear_torch(x, qw, bias, ending, residual, out, batch_invariant, stream)
    raise LowlpTypeError(f"x: expected a numpy array or a tensor of PyTorch, got {type(x).__name__}")


@outside_of_graphs
def _linear_torch(
    x: Any,
    qw: QuantizedTensor,
    bias: Any,
    epilogue: str,
    residual: Any,
    out_dtype: str | None,
    batch_invariant: int,
    stream: object,
) -> Any:
    _refuse_gradients(x, bias, residual)
    if x.is_cuda:
        return linear_on_gpu(x, qw, bias, epilogue, residual, out_dtype, stream, batch_invariant)
    if stream is not None:
        raise LowlpValueError("stream: allowed for CUDA tensors only, and x is on the CPU")
    host_bias = None if bias is None else as_host_array(bias, "bias")
    host_residual = None if residual is None else as_host_array(residual, "residual")
    y = linear_numpy(as_host_array(x, "x"), qw, host_bias, epilogue, host_residual, out_dtype, batch_invariant)
    return as_torch_tensor(y)


def _refuse_gradients(*tensors: Any) -> None:
    """Raises `LowlpRuntimeError` where PyTorch would record the call: the result would have no gradient."""
    for name, tensor in zip(("x", "bias", "residual"), tensors, strict=True):
        if getattr(tensor, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
            raise LowlpRuntimeError(
                f"{name}: requires a gradient, and linear has none yet; call it under torch.no_grad(), or pass "
                f"{name}.detach()"
            )


def compile_linear(
    *,
    n: int,
    k: int,
    weight: str | DType | Vectors,
    m: tuple[int, int] | None = None,
    group_size: int | None = 128,
    activation: str | DType = "f16",
    path: str | None = None,
    target: str = DEFAULT_ARCH,
    schedule: Schedule | None = None,
    out_dtype: str | DType | None = None,
    scale_dtype: str | DType = "f16",
    zeros: bool | str = False,
    offsets: bool | str = False,
    table: str | None = None,
    scale2: bool | str = False,
    bias: str | DType | None = None,
    epilogue: str | None = None,
    residual: str | DType | None = None,
    permutation: bool = False,
    super_scale_dtype: str | DType | None = None,
    super_group_size: int | None = None,
    dependent_launch: bool = False,
    gpu: str | None = None,
    frequencies: Sequence[int] | None = None,
) -> CompiledKernel:
    """Compiles the kernel of `linear` ahead of time.

    n, k         the weights' shape [N, K], each up to 2**31 - 1
    weight       type of the codes, by name or as a `DType`: an integer, bipolar or float of 1 to 8 bits; or 'lut1' to
                 'lut8', indices of a table; or `lowlp.vq` for vectors, `.with_book_per` for books of blocks
    m            the least and the largest number of rows it is meant for; the kernel is right for every number. Results
                 of f32 are of weights that are not rounded where the least is up to 64, which is slower for many rows
    group_size   divides K; None or -1: one group a row
    activation   type of x: 'f16' or 'bf16'; or of `QuantizedActivations`, 'int2' to 'int8', 'uint1' to 'uint8',
                 'f8e4m3' or 'f8e5m2', with a scale for each row and no zero points
    path         by which products, as for `linear`: 's8' or 'fp8'; None: chosen
    target       architecture, 'sm_90a' for example
    schedule     a `lowlp.kernels.linear.spec.Schedule`; None: chosen by m and the shape, by what was measured
                 (`lowlp.use_tuned`) or by estimate. The result does not depend on it
    gpu          the name of a GPU that schedules were measured on, which go first: 'NVIDIA H200', and those of
                 `lowlp.use_tuned` and LOWLP_TUNED; None: all of the architecture count alike
    out_dtype    'f16', 'bf16' or 'f32'; None: as the activation, of quantised ones 'f16'. 's32', of quantised integers:
                 the exact sums
    scale_dtype  type of the scales: 'f16', 'bf16', 'f32', 'e8m0' or 'e4m3'
    zeros        with zero points [N, K / group_size]: True for f32, or the name of their type, as `Codec` lists them;
                 integers only
    offsets      with offsets [N, K / group_size]: True for f32, or the name of their type
    table        'tensor', 'channel' or 'group': how many tables there are; None: one, if the weight is 'lut{b}'
    scale2       with a second scale: True for one f32 number, 'row' for one for each row; excludes offsets
    bias         type of a bias [N]: 'f16', 'bf16' or 'f32'; or None
    epilogue     as for `linear`; None: none
    residual     type of a residual, [M, columns of y]: 'f16', 'bf16' or 'f32'; or None
    permutation  for weights with a permutation of K: of few rows the kernel puts the columns of x in their order; else
                 `kernel(x, qw)` launches a kernel before it that does, which is compiled and saved with it
    super_scale_dtype  type of super-scales, 'f16', 'bf16' or 'f32': `scale_dtype` is then 'uint4', 'int6', 'uint8' or
                 'int8', and `offsets` may be one of these too. None: scales have one level
    super_group_size  weights of a row that share a super-scale, a multiple of group_size; None or -1: one a row
    dependent_launch  a promise that no launch that may still run when the kernel begins writes weights, scales, zero
                 points, offsets, tables and codebooks. Most kernels then begin while the one before them on the stream
                 runs, and fetch of these what comes first; `lowlp.no_dependent_launch` switches it off for launches

    frequencies  deprecated, and without an effect: kernels for few rows keep the first entries of books that do not fit
                 in shared memory there in any case (`lowlp.weights.codebook_order` brings frequent ones first)

    `y = kernel(x, qw)` launches it, also when it was saved and loaded (docs/saved-kernel.md). Its parameters are listed
    with their roles in `kernel.description.product.operands`.
    Raises `LowlpTypeError` and `LowlpValueError`, which name the argument, and `AssembleError` where ptxas is missing.
    """
    if schedule is not None and not isinstance(schedule, Schedule):
        raise LowlpTypeError(f"schedule: expected None or a Schedule, got {schedule!r:.40}")
    if gpu is not None and not isinstance(gpu, str):
        raise LowlpTypeError(f"gpu: expected None or the name of a GPU, got {gpu!r:.40}")
    if gpu is not None and gpu not in (known := measured_gpus()):
        raise LowlpValueError(
            f"gpu: expected a GPU that schedules were measured on, {' or '.join(known)}, got {gpu!r:.40}"
        )
    rows, columns = _extent(n, "n"), _extent(k, "k")
    meant_for = _rows_meant(m)
    x_type, x_bits, bipolar = activation_of_kernel(activation)
    code = _code_of(weight, table, x_type)
    if not isinstance(scale2, _BOOLS) and scale2 != "row":
        raise LowlpTypeError(f"scale2: expected a bool or 'row', got {scale2!r:.40}")
    _check_bool(permutation, "permutation")
    _check_bool(dependent_launch, "dependent_launch")
    size = group_size_of(columns, group_size)
    if isinstance(code, Vectors):
        check_whole_codes(size, code)
        if permutation:
            raise LowlpValueError(f"permutation: must be False, since columns of vectors have one order, with {code}")
    _check_frequencies(code, frequencies)
    of_zeros = _type_of_part(zeros, "zeros", ZERO_TYPES) or None
    levels = _types_of_levels(scale_dtype, offsets, super_scale_dtype, super_group_size, size)
    scale, of_offsets, super_scale, super_group = levels
    wanted, is_quantised = check_path(path), x_type not in ACTIVATIONS
    out = result_of(out_dtype) if is_quantised else x_type
    if out_dtype is not None and not is_quantised:
        out = dtype_among(out_dtype, "out_dtype", OUTPUTS)
    spec = LinearSpec(
        n=rows,
        k=columns,
        codec=Codec(code, size, scale, of_zeros, of_offsets, bool(scale2), super_scale, super_group),
        activation=x_type,
        out=out,
        bias="" if bias is None else dtype_among(bias, "bias", OUTPUTS),
        epilogue=_epilogue_of(epilogue),
        residual="" if residual is None else dtype_among(residual, "residual", OUTPUTS),
        aligned=True,
        row_scale2=scale2 == "row",
        dependent_launch=bool(dependent_launch),
        x_scale="token" if is_quantised and out != SUMS else "",
        x_bipolar=bipolar,
    )
    by_path = check_compiled_path(spec, x_bits, target, wanted, bool(permutation))
    if spec.out == "f32" and (meant_for is None or meant_for[0] <= EXACT_ROWS):
        # So many rows are promised weights that are not rounded.
        spec = replace(spec, scales_weights=False)
    device = device_ahead(check_arch(target), H200.multiprocessors, gpu or "")
    if meant_for:
        spec = for_many_rows(spec, meant_for[0], bool(find_target(target).instructions["wgmma.mma_async"]))
    most_rows, reason = meant_for[1] if meant_for and schedule is None else ANY_ROWS, ""
    is_chosen = schedule is None
    if schedule is None:
        rows_meant = meant_for[1] if meant_for else ANY_ROWS
        if meant_for and meant_for[0] < rows_meant and class_of(rows_meant) == CLASSES[-1]:
            rows_meant = ANY_ROWS
        try:
            schedule = schedule_for(spec, rows_meant, device, gpu=gpu or "")
            reason = reason_for(spec, rows_meant, device, gpu or "")
        except TooManyRowsError as error:
            raise LowlpValueError(f"m: {error.reason} of weights {rows} x {columns}; give fewer rows") from None
    within = ordered_within(spec, schedule, most_rows, device) if permutation else None
    kernel = compile_for_gpu(*(within or (spec, schedule)), target, meant_for, by_path, reason)
    if not is_chosen:
        warn_of_spills(kernel)
    if within or not permutation:
        return kernel
    before = gpu_ordering_kernel(columns, None, True, spec.dependent_launch, kernel.arch)
    return replace(kernel, binary=replace(kernel.binary, before=before.binary))


def _check_frequencies(code: DType | Table | Vectors, frequencies: object) -> None:
    if frequencies is None:
        return
    if not isinstance(code, Vectors):
        raise LowlpValueError(f"frequencies: go with codes of vectors, not with {code}")
    check_frequencies(code, frequencies)
    text = "leave it out; first entries are kept in any case, and ordered_by_frequency brings frequent ones first"
    warnings.warn(f"frequencies: {text}", DeprecationWarning, stacklevel=3)


def _code_of(weight: object, table: object, activation: str) -> DType | Table | Vectors:
    """The type of the codes, or their table, whose entries the kernel takes, or what vectors they are."""
    if isinstance(weight, Vectors):
        if table is not None or weight.lattices:
            raise LowlpValueError(
                f"table: must be None for vectors, got {table!r:.40}"
                if table is not None
                else f"weight: kernels compute {weight} from tables that saved weights lack; use linear"
            )
        return weight
    is_table = isinstance(weight, str) and weight.startswith("lut")
    if is_table and weight not in _TABLES:
        raise LowlpValueError(f"weight: tables are 'lut1' to 'lut8', got {weight!r}")
    found = None if is_table else named_dtype(weight, "weight")
    if found is not None and activation in ACTIVATIONS:
        check_weight(found, activation)
    if table is not None and (found is not None or table not in SCOPES):
        raise LowlpValueError(
            f"table: must be one of {', '.join(SCOPES)} with a weight of 'lut1' to 'lut8', got {table!r} with "
            f"{weight if found is None else found}"
        )
    return Table(_TABLES[str(weight)], "f32", str(table or "tensor")) if found is None else found


def _type_of_part(value: object, argument: str, allowed: tuple[str, ...]) -> str:
    """The type of zero points or offsets, '' without them."""
    if isinstance(value, bool | np.bool_):
        return "f32" if value else ""
    if not isinstance(value, str) or value not in allowed:
        kind = LowlpValueError if isinstance(value, str) else LowlpTypeError
        raise kind(f"{argument}: expected a bool or one of {', '.join(allowed)}, got {value!r:.40}")
    return value


def _types_of_levels(
    scale: object, offsets: object, super_scale: object, super_group_size: object, group_size: int
) -> tuple[str, str | None, str | None, int | Literal["channel"]]:
    """The types of scales and offsets, and the type and group of super-scales, as `Codec` takes them."""
    if super_scale is None:
        if super_group_size is not None:
            raise LowlpValueError(
                f"super_group_size: goes with super_scale_dtype, which is not given; got {super_group_size!r:.40}"
            )
        return scale_type(scale), _type_of_part(offsets, "offsets", OFFSET_TYPES) or None, None, "channel"
    size = checked_super_group_size(super_group_size, group_size)
    kind = dtype_among(scale, "scale_dtype", GROUP_CODE_TYPES)
    of_offsets = _type_of_part(offsets, "offsets", (*OFFSET_TYPES, *GROUP_CODE_TYPES)) or None
    return kind, of_offsets, dtype_among(super_scale, "super_scale_dtype", OUTPUTS), size or "channel"


def _epilogue_of(value: object) -> str:
    """The name of an epilogue, '' for None."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise LowlpTypeError(f"epilogue: expected None or a str, got {value!r:.40}")
    if value not in EPILOGUES:
        raise LowlpValueError(f"epilogue: must be None or one of {', '.join(EPILOGUES)}, got {value!r:.40}")
    return value


def _check_bool(value: object, argument: str) -> None:
    if not isinstance(value, _BOOLS):
        raise LowlpTypeError(f"{argument}: expected a bool, got {value!r:.40}")


def _is_int(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _extent(value: Any, argument: str) -> int:
    if not _is_int(value):
        raise LowlpTypeError(f"{argument}: expected an int, got {value!r:.40}")
    if not 1 <= value <= _INT32_MAX:
        raise LowlpValueError(f"{argument}: must be in 1..{_INT32_MAX}, got {value}")
    return int(value)


def _rows_meant(m: Any) -> tuple[int, int] | None:
    if m is None:
        return None
    if not isinstance(m, tuple | list) or not all(map(_is_int, m)):
        raise LowlpTypeError(f"m: expected None or a pair of ints (least, largest), got {m!r:.40}")
    if len(m) != 2 or not 0 <= m[0] <= m[1] <= _INT32_MAX:
        raise LowlpValueError(f"m: expected 0 <= least <= largest <= {_INT32_MAX}, got {m!r:.40}")
    return int(m[0]), int(m[1])
