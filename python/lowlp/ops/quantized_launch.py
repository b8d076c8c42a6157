"""`lowlp.linear` of quantised activations on a GPU.

As `linear_launch`: the first call of a kind finds the kernel, uploads the weights and binds what stays; later ones
launch with their own addresses.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.measured import added_schedules
from lowlp.kernels.linear.operand_list import WIDE_BYTES, product_of
from lowlp.schedules.device import device_of
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.dependent_launch import is_allowed, no_dependent_launch
from lowlp_runtime.device import device_name, multiprocessors
from lowlp_runtime.device_workspace import is_captured
from lowlp_runtime.kept import KeptFor
from lowlp_runtime.operand_tensors import torch_type, upload
from lowlp_runtime.stream import current_torch_stream, stream_handle

from .linear_kernels import gpu_kernel
from .linear_launch import check_shapes, columns_of_y, device_operands, first_call_in_capture, permutation_on
from .quantized_x import OF_X, QuantizedX

# What of a kernel's operands is another one in every call, in the order in which calls hand over the addresses.
_OF_CALL = ("x", *OF_X[:3], "bias", "residual", "y")
_MAX_CALLS = 256


class _BoundCall(NamedTuple):
    """The kernel with all that stays, what the call allocates, tensors that it keeps alive, and the roles of those that
    calls hand over, in order."""

    launch: BoundLaunch | None
    allocate: Callable[[], Any]
    tensors: dict[str, Any]
    roles: list[str]


class _KeptForWeights:
    """Of one tensor: bound calls by kind, and sums of rows of weights."""

    def __init__(self) -> None:
        self.calls: dict[object, _BoundCall] = {}
        self.sums: dict[object, Any] = {}


_kept: KeptFor[_KeptForWeights] = KeptFor(_KeptForWeights)


def quantized_on_gpu(
    quantized: QuantizedX,
    qw: QuantizedTensor,
    bias: Any,
    epilogue: str,
    residual: Any,
    out: str,
    batch_invariant: bool,
    stream: object,
) -> Any:
    """`lowlp.linear` for codes on a GPU."""
    torch: Any = sys.modules["torch"]
    codes = quantized.codes
    ordinal = codes.get_device()
    current = current_torch_stream(ordinal)
    if stream is not None and stream_handle(stream) != current:
        with torch.cuda.stream(torch.cuda.ExternalStream(stream_handle(stream), device=codes.device)):
            return quantized_on_gpu(quantized, qw, bias, epilogue, residual, out, batch_invariant, None)
    codes = codes.contiguous()
    if qw.permutation is not None:
        codes = codes.index_select(-1, permutation_on(qw, codes.device).long())
    for name, part in (("bias", bias), ("residual", residual)):
        if part is not None and (not is_torch_tensor(part) or part.device != codes.device):
            raise LowlpTypeError(f"{name}: expected a tensor on {codes.device}, got {part!r:.80}")
    bias = None if bias is None else bias.contiguous()
    residual = None if residual is None else residual.contiguous()
    given = {"x": codes, "bias": bias, "residual": residual}
    places = codes.data_ptr() | (0 if residual is None else residual.data_ptr())
    aligned = places % WIDE_BYTES == 0
    kinds = tuple(None if part is None else (part.dtype, part.shape) for part in given.values())
    form = (quantized.activation, quantized.bipolar, quantized.has_zeros)
    key = (ordinal, kinds, form, out, epilogue, aligned, batch_invariant, is_allowed(), added_schedules())
    of_weights = _kept.of(qw)
    call, is_new = of_weights.calls.get(key), False
    if call is None:
        if is_captured(current):
            raise first_call_in_capture("x", math.prod(codes.shape[:-1]), codes.dtype)
        with torch.cuda.device(codes.device):
            call, is_new = _bind(quantized, qw, given, epilogue, out, aligned, batch_invariant, of_weights), True
        if len(of_weights.calls) >= _MAX_CALLS:
            of_weights.calls.clear()
        of_weights.calls[key] = call
    y = call.allocate()
    if call.launch is None:
        return y
    of_x = {"x_scales": quantized.given.scales, "x_zeros": quantized.given.zeros}
    if "x_sums" in call.roles:
        of_x["x_sums"] = quantized.given.sums
    held = {role: part.contiguous() for role, part in of_x.items() if part is not None}
    held.update({**{role: part for role, part in given.items() if part is not None}, "y": y})
    addresses = [held[role].data_ptr() for role in call.roles]
    if is_new:
        # What is in front on the stream may have written the packed weights.
        with no_dependent_launch():
            call.launch.run(addresses, ordinal, current)
    else:
        call.launch.run(addresses, ordinal, current)
    return y


def _type_of(part: Any, argument: str) -> str:
    torch: Any = sys.modules["torch"]
    names = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}
    if part is None:
        return ""
    if part.dtype not in names:
        raise LowlpTypeError(f"{argument}: expected float16, bfloat16 or float32, got {part.dtype}")
    return names[part.dtype]


def _bind(
    quantized: QuantizedX,
    qw: QuantizedTensor,
    given: dict[str, Any],
    epilogue: str,
    out: str,
    aligned: bool,
    batch_invariant: bool,
    of_weights: _KeptForWeights,
) -> _BoundCall:
    """Checks what the key of a kept call holds, and finds what such calls need."""
    torch: Any = sys.modules["torch"]
    codes, bias, residual = given["x"], given["bias"], given["residual"]
    check_shapes(codes.shape, getattr(bias, "shape", None), getattr(residual, "shape", None), qw, epilogue)
    ordinal, device = codes.get_device(), device_of(codes.get_device())
    k, columns = qw.shape[1], columns_of_y(qw, epilogue)
    wide = aligned and k % WIDE_BYTES == 0 and (residual is None or columns % 8 == 0)
    spec = quantized.spec(qw, out, _type_of(bias, "bias"), wide, epilogue, _type_of(residual, "residual"))
    m, shape = math.prod(codes.shape[:-1]), (*codes.shape[:-1], columns)
    result = torch_type("int32" if out == "s32" else out)

    def allocate() -> Any:
        return torch.empty(shape, dtype=result, device=codes.device)

    if m == 0:
        return _BoundCall(None, allocate, {}, [])
    schedule = schedule_for(spec, m, device, batch_invariant, device_name(ordinal))
    spec = replace(spec, dependent_launch=is_allowed() and schedule.stages > 0)
    launcher = gpu_kernel(spec, schedule, device.arch).launcher
    tensors = device_operands(qw, spec.activation, codes.device, epilogue, schedule)
    product = product_of(spec, schedule)
    numbers = product.launch_numbers(m, k, columns if spec.residual else None, multiprocessors(ordinal))
    operand = product.operand("weight_sums")
    if operand:
        place = (str(codes.device), operand)
        if place not in of_weights.sums:
            of_weights.sums[place] = upload(quantized.operands(spec, qw)["weight_sums"], operand.element, codes.device)
        tensors = {**tensors, operand.name: of_weights.sums[place]}
    kept: dict[str, Any] = {name: launcher.read(name, tensor) for name, tensor in tensors.items()}
    kept.update(product.by_name(numbers))
    roles = [role for role in _OF_CALL if product.operand(role)]
    if len(codes.shape) == 0:
        raise LowlpValueError(f"x: the last dimension must be K = {k}, got shape {tuple(codes.shape)}")
    order = [product.required(role).name for role in roles]
    return _BoundCall(launcher.bind(kept, order), allocate, tensors, roles)
