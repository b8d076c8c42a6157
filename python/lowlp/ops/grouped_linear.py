"""`lowlp.grouped_linear`: rows of activations, sorted by expert, times the weights of their experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowlp.activations.quantized import QuantizedActivations
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.experts import blocks_of_experts
from lowlp.kernels.linear.experts_choosing import rows_of_tile, schedule_for_experts
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import NUMPY_TYPES
from lowlp.kernels.linear.spec import EPILOGUES, GATED, MOST_EXPERTS, OUTPUTS, SUMS
from lowlp.numeric.dtypes import DType, dtype_among
from lowlp.numeric.host_array import AnyArray, as_host_array, as_torch_tensor, memory_of_rows
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.array import is_torch_tensor

from .activations import quantize_activations, refuse_gradients
from .graph_breaks import outside_of_graphs, skip_frames
from .grouped_launch import grouped_on_gpu
from .linear_launch import columns_of_y
from .linear_on_cpu import CPU_MULTIPROCESSORS, ordered_on_cpu, product_on_cpu, rows_of_array
from .quantized_linear import check_sums_alone, on_host
from .quantized_x import QuantizedX, result_of


@outside_of_graphs
def grouped_linear(
    x: Any,
    qw: QuantizedTensor,
    offsets: Any,
    *,
    bias: Any = None,
    epilogue: str | None = None,
    residual: Any = None,
    out_dtype: str | DType | None = None,
    activation: str | DType | None = None,
    stream: object = None,
) -> Any:
    """y[i] = epilogue(x[i] @ w[e]^T + bias[e]) + residual[i] for the rows i of each expert e, in one launch.

    x          [M, K], float16 or bfloat16, sorted by expert, any row stride; numpy, or a tensor of PyTorch on the CPU:
               the CPU target computes; on a GPU: that GPU does, on `stream` or PyTorch's current one. Or
               `QuantizedActivations` with a scale for each row, multiplied in bytes; with `activation` float32 too
    qw         weights of 1 to 512 experts, [E, N, K], of any codec but codebooks; uploaded at their first use on a GPU
    offsets    int32 [E + 1], where x is: the rows of expert e are those from offsets[e] up to offsets[e + 1], of some
               experts none. A GPU reads them as the kernel runs: nothing waits for them, and a CUDA graph takes others
               at each replay. They do not fall, and end at M at the most; on a GPU nobody checks that, and of others
               rows of y are undefined, but nothing beyond y is written. Rows of y of no expert are undefined
    bias       [E, N], float16, bfloat16 or float32, or None
    epilogue   as for `lowlp.linear`; with 'silu_mul' and 'gpt_oss' the first N / 2 rows of each expert are the gate
    residual   of the shape of the result, float16, bfloat16 or float32, or None
    out_dtype  'f16', 'bf16' or 'f32'; None: as x, of quantised x 'f16'. Of quantised integers 's32' too, the sums
               as they are, as for `lowlp.linear`
    activation  a type to which x is quantised first, 'int8' or 'f8e4m3' for example, as `quantize_activations` does;
               None: x is taken as it is

    Returns [M, N] of `out_dtype`, or [M, N / 2] with a gate, in the library of x. Results are those of `linear` for
    each expert's rows but for the order of sums: products are added in f32 in one fixed order, which follows from M,
    E and the weights alone. So a row does not depend on what other rows hold, nor on how they are divided among
    experts; and for all M up to 8 E the order is the same. `linear` says what else holds. Where the shape of the
    weights has no kernel with stages, one that is slower multiplies.

    The schedule is chosen for rows that are divided at random: by M and E, never by the offsets. `torch.compile` breaks
    its graph at a call. There is no gradient: `LowlpRuntimeError` where PyTorch would record one. Raises
    `LowlpTypeError` and `LowlpValueError` for arguments that do not fit, `CpuTargetError`, `DeviceError`.
    """
    if not isinstance(qw, QuantizedTensor):
        raise LowlpTypeError(f"qw: expected a QuantizedTensor, got {type(qw).__name__}; lowlp.quantize makes one")
    _check_weights(qw)
    ending = _ending(epilogue, qw)
    if activation is not None or isinstance(x, QuantizedActivations):
        return _grouped_quantized(x, qw, offsets, bias, ending, residual, out_dtype, activation, stream)
    out = None if out_dtype is None else dtype_among(out_dtype, "out_dtype", OUTPUTS)
    if isinstance(x, np.ndarray):
        if stream is not None:
            raise LowlpValueError("stream: allowed for CUDA tensors only, and x is a numpy array")
        return _grouped_numpy(x, qw, offsets, bias, ending, residual, out)
    if not is_torch_tensor(x):
        raise LowlpTypeError(f"x: expected a numpy array or a tensor of PyTorch, got {type(x).__name__}")
    skip_frames()
    refuse_gradients(x=x, bias=bias, residual=residual)
    if x.is_cuda:
        return grouped_on_gpu(x, qw, offsets, bias, ending, residual, out, stream)
    if stream is not None:
        raise LowlpValueError("stream: allowed for CUDA tensors only, and x is on the CPU")
    host_bias = None if bias is None else as_host_array(bias, "bias")
    host_residual = None if residual is None else as_host_array(residual, "residual")
    starts = as_host_array(offsets, "offsets")
    y = _grouped_numpy(as_host_array(x, "x"), qw, starts, host_bias, ending, host_residual, out)
    return as_torch_tensor(y)


def _grouped_quantized(
    x: Any,
    qw: QuantizedTensor,
    offsets: Any,
    bias: Any,
    epilogue: str,
    residual: Any,
    out_dtype: object,
    activation: str | DType | None,
    stream: object,
) -> Any:
    """Of quantised x, or x that is quantised first."""
    refuse_gradients(bias=bias, residual=residual)
    if activation is not None:
        if isinstance(x, QuantizedActivations):
            raise LowlpValueError(f"activation: x is quantised already, to {x.dtype}; got {activation!r:.40}")
        x = quantize_activations(x, activation, stream=stream)
    quantized, out = QuantizedX.of(x), result_of(out_dtype)
    if out == SUMS:
        check_sums_alone(bias, epilogue or None, residual)
    if is_torch_tensor(quantized.codes) and quantized.codes.is_cuda:
        return grouped_on_gpu(quantized.codes, qw, offsets, bias, epilogue, residual, out, stream, quantized)
    if stream is not None:
        raise LowlpValueError("stream: allowed for CUDA tensors only, and x is on the CPU")
    if not is_torch_tensor(quantized.codes):
        return _grouped_numpy(quantized.codes, qw, offsets, bias, epilogue, residual, out, quantized)
    host = QuantizedX.of(on_host(x))
    host_bias = None if bias is None else as_host_array(bias, "bias")
    host_residual = None if residual is None else as_host_array(residual, "residual")
    starts = as_host_array(offsets, "offsets")
    return as_torch_tensor(_grouped_numpy(host.codes, qw, starts, host_bias, epilogue, host_residual, out, host))


def _check_weights(qw: QuantizedTensor) -> None:
    if len(qw.shape) != 3:
        raise LowlpValueError(f"qw: expected weights of experts [E, N, K], got {list(qw.shape)}; use lowlp.linear")
    if qw.shape[0] > MOST_EXPERTS:
        raise LowlpValueError(f"qw: must have 1 to {MOST_EXPERTS} experts, got {qw.shape[0]}")
    if qw.codec.vectors is not None:
        raise LowlpValueError(f"qw: weights of codebooks have no kernel for experts; use lowlp.linear, got {qw.codec}")


def _ending(epilogue: object, qw: QuantizedTensor) -> str:
    """The name of an epilogue, '' for None."""
    if epilogue is None:
        return ""
    if not isinstance(epilogue, str):
        raise LowlpTypeError(f"epilogue: expected None or a str, got {epilogue!r:.40}")
    if epilogue not in EPILOGUES:
        raise LowlpValueError(f"epilogue: must be None or one of {', '.join(EPILOGUES)}, got {epilogue!r:.40}")
    if epilogue in GATED and qw.shape[1] % 2:
        raise LowlpValueError(f"epilogue: {epilogue} needs an even N, got weights of N = {qw.shape[1]}")
    return epilogue


def _grouped_numpy(
    x: AnyArray,
    qw: QuantizedTensor,
    offsets: object,
    bias: Any,
    epilogue: str,
    residual: Any,
    out_dtype: str | None,
    quantized: QuantizedX | None = None,
) -> AnyArray:
    """As `grouped_linear`; with `quantized`, whose codes x are."""
    x, product = product_on_cpu(x, qw, bias, epilogue, residual, out_dtype, quantized)
    experts, n, k = qw.shape
    columns = columns_of_y(qw, epilogue)
    _check_shapes(x, bias, residual, (experts, n, k), columns)
    starts = _checked_offsets(offsets, experts, x.shape[0])
    m = x.shape[0]
    y = np.zeros((m, columns), NUMPY_TYPES[product.out])
    if m == 0:
        return y
    rows, stride, aligned = rows_of_array(x, k)
    if qw.permutation is not None and quantized:
        rows, stride, aligned = rows_of_array(np.ascontiguousarray(rows[:, qw.permutation]), k)
    elif qw.permutation is not None:
        rows, stride = ordered_on_cpu(rows, stride, aligned, permutation=qw.permutation)
        aligned = True
    spec, given, residual_stride = product.spec_and_parts(aligned)
    given.update({"x": memory_of_rows(rows), "y": y, "row_offsets": starts})
    schedule = schedule_for_experts(spec, m)
    given.update(product_of(spec, schedule).launch_numbers(m, stride, residual_stride, CPU_MULTIPROCESSORS))
    given["blocks"] = blocks_of_experts(spec, schedule, rows_of_tile(spec, schedule), m, CPU_MULTIPROCESSORS)
    product.run(spec, schedule, given)
    return y


def _check_shapes(x: AnyArray, bias: Any, residual: Any, shape: tuple[int, int, int], columns: int) -> None:
    experts, n, k = shape
    if len(x.shape) != 2 or x.shape[1] != k:
        raise LowlpValueError(f"x: must have shape [M, K = {k}], got {list(x.shape)}")
    if bias is not None and tuple(bias.shape) != (experts, n):
        raise LowlpValueError(f"bias: must have shape {[experts, n]}, got {list(bias.shape)}")
    if residual is not None and tuple(residual.shape) != (x.shape[0], columns):
        raise LowlpValueError(
            f"residual: must have the shape of the result, {[x.shape[0], columns]}, got {list(residual.shape)}"
        )


def _checked_offsets(offsets: object, experts: int, m: int) -> AnyArray:
    if not isinstance(offsets, np.ndarray) or offsets.dtype != np.int32:
        got = offsets.dtype if isinstance(offsets, np.ndarray) else type(offsets).__name__
        raise LowlpTypeError(f"offsets: expected a numpy array of int32, got {got}")
    if offsets.shape != (experts + 1,):
        raise LowlpValueError(f"offsets: must have shape [E + 1] = [{experts + 1}], got {list(offsets.shape)}")
    ends = np.concatenate([[0], offsets, [m]])
    wrong = np.flatnonzero(np.diff(ends) < 0)
    if len(wrong):
        place = min(int(wrong[0]), experts)
        raise LowlpValueError(
            f"offsets: must not fall, and lie in 0..{m}, the rows of x; got {offsets[place]} at {place}"
        )
    return np.ascontiguousarray(offsets)
