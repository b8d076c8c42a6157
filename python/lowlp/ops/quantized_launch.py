"""`lowlp.linear` of quantised activations on a GPU, by products of bytes; later calls of a kind launch alone
(`kept_products`)."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

from lowlp.compiler.targets import target
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.integer_sums import for_many_rows
from lowlp.kernels.linear.measured import added_schedules
from lowlp.kernels.linear.operand_list import WIDE_BYTES, product_of
from lowlp.schedules.device import device_of
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.dependent_launch import is_allowed
from lowlp_runtime.device import device_name, multiprocessors
from lowlp_runtime.operand_tensors import torch_type, upload
from lowlp_runtime.stream import current_torch_stream, stream_handle

from .kept_products import BoundProduct, KeptProducts, kept_products, tensors_of
from .linear_kernels import gpu_kernel
from .linear_launch import check_shapes, columns_of_y, device_operands, permutation_on
from .quantized_x import OF_X, QuantizedX

# What of a kernel's operands is another one in every call, in the order in which calls hand over the addresses.
_OF_CALL = ("x", *OF_X[:3], "bias", "residual", "y")


def quantized_on_gpu(
    quantized: QuantizedX,
    qw: QuantizedTensor,
    bias: Any,
    epilogue: str,
    residual: Any,
    out: str,
    batch_invariant: int,
    stream: object,
    call: object = None,
) -> Any:
    """`lowlp.linear` for codes on a GPU; `call` as `kept_products.call_of` has it, or None."""
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

    def tensors(product: BoundProduct) -> dict[str, Any]:
        return tensors_of(product.roles, quantized.given, codes, bias, residual)

    def bind(kept: KeptProducts) -> BoundProduct:
        return _bind(quantized, qw, given, epilogue, out, aligned, batch_invariant, kept)

    return kept_products.of(qw).run(key, codes, tensors, bind, None if qw.permutation is not None else call)


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
    batch_invariant: int,
    of_weights: KeptProducts,
) -> BoundProduct:
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
        return BoundProduct(None, allocate)
    if not batch_invariant:
        spec = for_many_rows(spec, m, bool(target(device.arch).instructions["wgmma.mma_async"]))
    schedule = schedule_for(spec, m, device, batch_invariant, device_name(ordinal))
    spec = replace(spec, dependent_launch=is_allowed() and schedule.stages > 0)
    launcher = gpu_kernel(spec, schedule, device.arch).launcher
    tensors = device_operands(qw, spec.activation, codes.device, epilogue, schedule)
    product = product_of(spec, schedule)
    numbers = product.launch_numbers(m, k, columns if spec.residual else None, multiprocessors(ordinal))
    operand = product.operand("weight_sums")
    if operand:

        def sums() -> Any:
            return upload(quantized.operands(spec, qw)["weight_sums"], operand.element, codes.device)

        tensors = {**tensors, operand.name: of_weights.tensor((str(codes.device), operand), sums)}
    kept: dict[str, Any] = {name: launcher.read(name, tensor) for name, tensor in tensors.items()}
    kept.update(product.by_name(numbers))
    roles = tuple(role for role in _OF_CALL if product.operand(role))
    if len(codes.shape) == 0:
        raise LowlpValueError(f"x: the last dimension must be K = {k}, got shape {tuple(codes.shape)}")
    order = [product.required(role).name for role in roles]
    return BoundProduct(launcher.bind(kept, order, ordinal), allocate, tuple(roles), tuple(tensors.values()))
