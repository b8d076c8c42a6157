"""`lowlp.grouped_linear` on CUDA tensors.

As `linear_launch`: the first call of a kind finds the kernel, uploads the weights and binds what stays; later ones
launch with their own addresses. No call reads the offsets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.experts import blocks_of_experts
from lowlp.kernels.linear.experts_choosing import rows_of_tile, schedule_for_experts
from lowlp.kernels.linear.operand_list import WIDE_BYTES, product_of
from lowlp.kernels.linear.operands import for_weights, spec_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import ACTIVATIONS, SUMS, LinearSpec
from lowlp.schedules.device import device_of
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.dependent_launch import is_allowed, no_dependent_launch
from lowlp_runtime.device import multiprocessors
from lowlp_runtime.device_workspace import is_captured
from lowlp_runtime.kept import KeptFor
from lowlp_runtime.operand_tensors import torch_type, upload
from lowlp_runtime.ordered_rows import OrderedRows, row_stride
from lowlp_runtime.stream import current_torch_stream, other_torch_stream

from .linear_kernels import gpu_kernel, gpu_ordering_kernel
from .linear_launch import allocator, columns_of_y, device_operands, first_call_in_capture, permutation_on
from .quantized_x import OF_X, QuantizedX

# What of a kernel's operands is another one in every call, in the order in which calls hand over the addresses.
_OF_CALL: Final = ("x", *OF_X[:3], "bias", "residual", "row_offsets", "y")
_MAX_CALLS: Final = 256


class _BoundCall(NamedTuple):
    """What a call needs beside its arguments; see `linear_launch`."""

    launch: BoundLaunch | None
    allocate: Callable[[], Any]
    ordered: OrderedRows | None
    tensors: dict[str, Any]


_kept: KeptFor[dict[object, _BoundCall]] = KeptFor(dict)


def grouped_on_gpu(
    x: Any,
    qw: QuantizedTensor,
    offsets: Any,
    bias: Any,
    epilogue: str,
    residual: Any,
    out: str | None,
    stream: object,
    quantized: QuantizedX | None = None,
) -> Any:
    """`lowlp.grouped_linear` for a CUDA tensor x; with `quantized`, whose codes x are."""
    ordinal = x.get_device()
    if stream is not None and (other := other_torch_stream(stream, x.device)):
        with other:
            return grouped_on_gpu(x, qw, offsets, bias, epilogue, residual, out, None, quantized)
    current = current_torch_stream(ordinal)
    rows = _rows(x)
    if quantized and qw.permutation is not None:
        rows = rows.index_select(-1, permutation_on(qw, x.device).long())
    given = {"x": rows, "bias": bias, "residual": residual, "row_offsets": offsets}
    for role, name in (("bias", "bias"), ("residual", "residual"), ("row_offsets", "offsets")):
        part = given[role]
        if part is None and role != "row_offsets":
            continue
        if not is_torch_tensor(part) or part.device != x.device:
            raise LowlpTypeError(f"{name}: expected a tensor on {x.device}, got {part!r:.80}")
        given[role] = _rows(part) if role == "residual" else part.contiguous()
    parts = {role: part for role, part in given.items() if part is not None}
    places = parts["x"].data_ptr() | (parts["residual"].data_ptr() if residual is not None else 0)
    aligned = places % WIDE_BYTES == 0
    kinds = tuple((role, part.dtype, part.shape, part.stride()) for role, part in parts.items())
    form = quantized and (quantized.activation, quantized.bipolar, quantized.has_zeros)
    key = (ordinal, kinds, form, epilogue, out, aligned, is_allowed())
    calls = _kept.of(qw)
    call, is_new = calls.get(key), False
    if call is None:
        if is_captured(current):
            raise first_call_in_capture("x", x.shape[0], x.dtype)
        call, is_new = _bind(qw, parts, epilogue, out, aligned, quantized), True
        if len(calls) >= _MAX_CALLS:
            calls.clear()
        calls[key] = call
    y = call.allocate()
    if call.launch is None:
        return y
    parts["y"] = y
    if quantized:
        parts.update(_of_x(quantized, call.tensors))
    if not is_new:
        _launch(call, parts, ordinal, current)
        return y
    # What is in front on the stream may have written the packed weights.
    with no_dependent_launch():
        _launch(call, parts, ordinal, current)
    return y


def _of_x(quantized: QuantizedX, taken: dict[str, Any]) -> dict[str, Any]:
    """What comes with quantised x, of what the kernel takes."""
    given = quantized.given
    parts = {"x_scales": given.scales, "x_zeros": given.zeros}
    if "x_sums" in taken["roles"]:
        parts["x_sums"] = given.sums
    return {role: part.contiguous() for role, part in parts.items() if role in taken["roles"]}


def _launch(call: _BoundCall, parts: dict[str, Any], ordinal: int, current: int) -> None:
    assert call.launch is not None
    if call.ordered is not None:
        parts["x"] = call.ordered.make(parts["x"].data_ptr(), ordinal, current)
    call.launch.run([parts[role].data_ptr() for role in _OF_CALL if role in parts], ordinal, current)


def _rows(part: Any) -> Any:
    """Rows whose elements lie one after the other."""
    is_matrix = part.dim() == 2 and part.stride(1) == 1 and (part.shape[0] < 2 or part.stride(0) >= part.shape[1])
    return part if is_matrix else part.contiguous()


def _stride(part: Any) -> int:
    """From row to row, in elements."""
    return int(part.stride(0)) if part.shape[0] > 1 else int(part.shape[1])


def _spec(
    qw: QuantizedTensor,
    parts: dict[str, Any],
    epilogue: str,
    out: str | None,
    aligned: bool,
    quantized: QuantizedX | None,
) -> LinearSpec:
    """Of the kernel; raises for tensors that do not fit."""
    torch: Any = sys.modules["torch"]
    names = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}
    x = parts["x"]
    activation = quantized.activation if quantized else names.get(x.dtype)
    if not quantized and activation not in ACTIVATIONS:
        raise LowlpTypeError(f"x: expected float16 or bfloat16, got {x.dtype}")
    experts, n, k = qw.shape
    if x.dim() != 2 or x.shape[1] != k:
        raise LowlpValueError(f"x: must have shape [M, K = {k}], got {list(x.shape)}")
    offsets = parts["row_offsets"]
    if offsets.dtype != torch.int32:
        raise LowlpTypeError(f"offsets: expected int32, got {offsets.dtype}")
    wanted = {"row_offsets": [experts + 1], "bias": [experts, n], "residual": [x.shape[0], columns_of_y(qw, epilogue)]}
    for role, shape in wanted.items():
        if role in parts and list(parts[role].shape) != shape:
            name = "offsets" if role == "row_offsets" else role
            raise LowlpValueError(f"{name}: must have shape {shape}, got {list(parts[role].shape)}")
    kinds = []
    for role in ("bias", "residual"):
        if role in parts and parts[role].dtype not in names:
            raise LowlpTypeError(f"{role}: expected float16, bfloat16 or float32, got {parts[role].dtype}")
        kinds.append(names[parts[role].dtype] if role in parts else "")
    if quantized:
        return quantized.spec(qw, out or "f16", kinds[0], aligned, epilogue, kinds[1])
    assert activation is not None
    return for_weights(spec_for(qw, activation, out or activation, kinds[0], aligned, epilogue, kinds[1]), qw)


def _bind(
    qw: QuantizedTensor,
    parts: dict[str, Any],
    epilogue: str,
    out: str | None,
    starts_aligned: bool,
    quantized: QuantizedX | None,
) -> _BoundCall:
    """Checks what the key of a kept call holds, and finds what such calls need."""
    torch: Any = sys.modules["torch"]
    x, residual = parts["x"], parts.get("residual")
    ordinal = x.get_device()
    spec = _spec(qw, parts, epilogue, out, False, quantized)
    is_made = qw.permutation is not None and not quantized
    x_stride, residual_stride = _stride(x), None if residual is None else _stride(residual)
    x_aligned = starts_aligned and x_stride % (WIDE_BYTES // spec.x_bytes) == 0
    aligned = (x_aligned or is_made) and (residual_stride or 0) % 8 == 0
    aligned = aligned and (starts_aligned or residual is None)
    m, k = x.shape
    given_stride, early = x_stride, is_allowed()
    if is_made:
        x_stride = row_stride(k)
    spec = replace(spec, aligned=aligned)
    result = torch_type("int32" if spec.out == SUMS else spec.out)
    allocate = allocator((m, spec.columns_of_y), result, x.device)
    if m == 0:
        return _BoundCall(None, allocate, None, {})
    device = device_of(ordinal)
    schedule = schedule_for_experts(spec, m, device)
    # `upload` returns when its copies are done, and nothing writes to them again: they are constant for every launch.
    spec = replace(spec, dependent_launch=early and schedule.stages > 0)
    launcher = gpu_kernel(spec, schedule, device.arch).launcher
    with torch.cuda.device(x.device):
        tensors = device_operands(qw, spec.activation, x.device, epilogue, schedule)
        if quantized and (operand := product_of(spec, schedule).operand("weight_sums")):
            sums = quantized.operands(spec, qw)["weight_sums"]
            tensors = {**tensors, operand.name: upload(sums, operand.element, x.device)}
    numbers = _numbers(spec, schedule, m, x_stride, residual_stride, multiprocessors(ordinal))
    product = product_of(spec, schedule)
    kept: dict[str, Any] = {name: launcher.read(name, tensor) for name, tensor in tensors.items()}
    kept.update(product.by_name(numbers))
    roles = [role for role in _OF_CALL if product.operand(role)]
    order = [product.required(role).name for role in roles]
    ordered = None
    if is_made:
        ordering = gpu_ordering_kernel(k, None, x_aligned, early, device.arch).launcher
        with torch.cuda.device(x.device):
            permutation = permutation_on(qw, x.device)
        rows = allocator((m, x_stride), x.dtype, x.device)
        ordered = OrderedRows(ordering, permutation, k, m, given_stride, multiprocessors(ordinal), rows)
    return _BoundCall(launcher.bind(kept, order), allocate, ordered, {**tensors, "roles": roles})


def _numbers(
    spec: LinearSpec, schedule: Schedule, m: int, x_stride: int, residual_stride: int | None, multiprocessors: int
) -> dict[str, int]:
    """The numbers of a launch by role."""
    numbers = product_of(spec, schedule).launch_numbers(m, x_stride, residual_stride, multiprocessors)
    rows = rows_of_tile(spec, schedule)
    return {**numbers, "blocks": blocks_of_experts(spec, schedule, rows, m, multiprocessors)}
