"""`lowlp.linear` of quantised activations by products of bit planes, on the CPU target and on a GPU."""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lowlp.activations.quantized import QuantizedActivations
from lowlp.kernels.linear.measured import added_schedules
from lowlp.kernels.linear.operands import NUMPY_TYPES
from lowlp.kernels.linear.planes.choosing import choose_planes
from lowlp.kernels.linear.planes.program import PlanesSpec
from lowlp.kernels.linear.planes.shapes import choose_schedule
from lowlp.numeric.dtypes import DType
from lowlp.schedules.device import device_of
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.device import device_name
from lowlp_runtime.errors import LowlpTypeError
from lowlp_runtime.operand_tensors import torch_type, upload
from lowlp_runtime.stream import other_torch_stream

from .kept_products import BoundProduct, KeptProducts, kept_products, tensors_of
from .linear_launch import check_shapes
from .planes_kernels import cpu_planes_kernel, gpu_planes_kernel

SUMS: Final = "s32"
_FEW_PROCESSORS: Final = 5
"""For which the CPU target divides the work: it makes tiles one after the other."""
_TYPES: Final = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}


_OF_CALL: Final = ("planes", "x_scales", "x_zeros", "x_sums", "bias", "residual", "y")
"""What is another one in every call, in the order in which calls hand over the addresses."""


def planes_linear(
    x: QuantizedActivations,
    qw: QuantizedTensor,
    bias: Any,
    epilogue: str,
    residual: Any,
    out: str,
    stream: object,
    call: object = None,
) -> Any:
    """y [..., N] of x [..., K], as `lowlp.linear` has it.

    x         with a scale for each row; numpy's, or tensors on a GPU
    qw        weights [N, K] for which `obstacle_of_planes` finds nothing
    bias      [N], residual [..., N]: in the library and on the device of x; None
    epilogue  one of `planes.EPILOGUES`
    out       'f16', 'bf16', 'f32', or 's32' for the exact sums
    stream    of the GPU; None: PyTorch's current one
    call      as `kept_products.call_of` has it, or None

    Raises `LowlpTypeError` and `LowlpValueError` for other arguments.
    """
    check_shapes(x.shape, getattr(bias, "shape", None), getattr(residual, "shape", None), qw, epilogue)
    if qw.permutation is not None:
        x = _ordered(x, qw.permutation)
    given = {"bias": bias, "residual": residual}
    if is_torch_tensor(x.codes) and x.codes.is_cuda:
        return _on_gpu(x, qw, given, epilogue, out, stream, None if qw.permutation is not None else call)
    spec = _spec_of(x, qw, _type_of(bias, "bias"), epilogue, _type_of(residual, "residual"), out)
    return _on_cpu(spec, x, qw, given, math.prod(x.shape[:-1]), (*x.shape[:-1], qw.shape[0]))


def _spec_of(
    x: QuantizedActivations, qw: QuantizedTensor, bias: str, epilogue: str, residual: str, out: str
) -> PlanesSpec:
    code = qw.codec.code
    assert isinstance(code, DType)
    is_sums = out == SUMS
    return PlanesSpec(
        n=qw.shape[0],
        k=qw.shape[1],
        weight=code.name,
        activation="ternary" if x.is_ternary else x.dtype.name,
        zeros=qw.zeros is not None,
        x_zeros=x.zeros is not None,
        scale="" if is_sums else qw.codec.scale,
        x_scale=not is_sums,
        bias=bias,
        epilogue=epilogue,
        residual=residual,
        out="int32" if is_sums else out,
    )


def _type_of(part: Any, argument: str) -> str:
    if part is None:
        return ""
    given = getattr(part, "dtype", type(part).__name__)
    found = _TYPES.get(str(given).removeprefix("torch."))
    if found is None:
        raise LowlpTypeError(f"{argument}: expected float16, bfloat16 or float32, got {given}")
    return found


def _ordered(x: QuantizedActivations, permutation: Any) -> QuantizedActivations:
    """The same columns in the order of the packed weights; sums stay."""
    if is_torch_tensor(x.codes):
        torch: Any = sys.modules["torch"]
        codes = x.codes.index_select(-1, torch.from_numpy(np.array(permutation)).long().to(x.codes.device))
    else:
        codes = np.ascontiguousarray(x.codes[..., permutation])
    kind = "ternary" if x.is_ternary else x.dtype
    return QuantizedActivations(codes, dtype=kind, scales=x.scales, zeros=x.zeros, sums=x.sums)


def _of_weights(spec: PlanesSpec, qw: QuantizedTensor) -> dict[str, NDArray[Any]]:
    """What kernels take of the weights, by name."""
    found: dict[str, NDArray[Any]] = {"weights": qw.packed_for("b1")}
    if spec.scale:
        found["scales"] = _by_row(qw.scales, spec.n)
    if spec.zeros:
        found["zeros"] = _by_row(np.asarray(qw.zeros).astype(np.int32), spec.n)
    if spec.takes_sums_of_weights:
        found["w_sums"] = qw.code_sums.sum(axis=1, dtype=np.int32)
    return found


def _by_row(numbers: Any, n: int) -> NDArray[Any]:
    """[N], also of one number for the whole tensor."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(numbers).reshape(-1), (n,)))


def _on_cpu(
    spec: PlanesSpec,
    x: QuantizedActivations,
    qw: QuantizedTensor,
    given: dict[str, Any],
    m: int,
    shape: tuple[int, ...],
) -> NDArray[Any]:
    for name, part in given.items():
        if part is not None and not isinstance(part, np.ndarray):
            raise LowlpTypeError(f"{name}: expected a numpy array, as x is one, got {type(part).__name__}")
    y = np.empty(shape, np.int32 if spec.out == "int32" else NUMPY_TYPES[spec.out])
    if m == 0:
        return y
    planes = x.planes.reshape(m, spec.x_code.bits, -1)
    padded = np.zeros((m, spec.x_code.bits, spec.words), np.uint32)
    padded[..., : planes.shape[-1]] = planes
    of_x = {
        "x_scales": x.scales if spec.x_scale else None,
        "x_zeros": x.zeros if spec.x_zeros else None,
        "x_sums": x.sums if spec.takes_sums_of_x else None,
        **given,
    }
    operands = {name: np.ascontiguousarray(part) for name, part in of_x.items() if part is not None}
    schedule = choose_schedule(spec, m, multiprocessors=_FEW_PROCESSORS)
    kernel: Any = cpu_planes_kernel(spec, schedule)
    kernel(planes=padded, **_of_weights(spec, qw), **operands, y=y.reshape(m, spec.n), m=m)
    return y


def _on_gpu(
    x: QuantizedActivations,
    qw: QuantizedTensor,
    given: dict[str, Any],
    epilogue: str,
    out: str,
    stream: object,
    call: object,
) -> Any:
    device = x.codes.device
    if (other := other_torch_stream(stream, device)) is not None:
        with other:
            return _on_gpu(x, qw, given, epilogue, out, None, None)
    for name, part in given.items():
        if part is not None and (not is_torch_tensor(part) or part.device != device):
            raise LowlpTypeError(f"{name}: expected a tensor on {device}, got {part!r:.80}")
    kinds = tuple(None if part is None else (part.dtype, part.shape) for part in given.values())
    of_x = (x.dtype.name, x.is_ternary, x.zeros is not None, x.shape)
    key = ("planes", device.index, of_x, kinds, epilogue, out, added_schedules())

    def tensors(product: BoundProduct) -> dict[str, Any]:
        return tensors_of(product.roles, x, x.codes, given["bias"], given["residual"])

    def bind(kept: KeptProducts) -> BoundProduct:
        return _bind(x, qw, given, epilogue, out, kept)

    return kept_products.of(qw).run(key, x.codes, tensors, bind, call)


def _bind(
    x: QuantizedActivations, qw: QuantizedTensor, given: dict[str, Any], epilogue: str, out: str, kept: KeptProducts
) -> BoundProduct:
    """Finds the kernel of a kind of calls, and uploads what it takes of the weights."""
    torch: Any = sys.modules["torch"]
    device, ordinal = x.codes.device, x.codes.get_device()
    spec = _spec_of(x, qw, _type_of(given["bias"], "bias"), epilogue, _type_of(given["residual"], "residual"), out)
    m, shape = math.prod(x.shape[:-1]), (*x.shape[:-1], spec.n)
    element = torch_type(spec.out)

    def allocate() -> Any:
        return torch.empty(shape, dtype=element, device=device)

    if m == 0:
        return BoundProduct(None, allocate)
    device_here = device_of(ordinal)
    chosen = choose_planes(spec, m, device_here, device_name(ordinal))
    launcher = gpu_planes_kernel(spec, chosen.schedule, device_here.arch, chosen.reason).launcher
    made: dict[str, NDArray[Any]] = {}

    def uploaded(name: str) -> Any:
        # All at once: the first of them that is not there makes the others too.
        made.update({} if made else _of_weights(spec, qw))
        return upload(made[name], {"weights": "uint32", "scales": spec.scale}.get(name, "int32"), device)

    of_weights = {
        name: kept.tensor(("planes", str(device), name), partial(uploaded, name)) for name in _names_of_weights(spec)
    }
    there = {
        "x_scales": spec.x_scale,
        "x_zeros": spec.x_zeros,
        "x_sums": spec.takes_sums_of_x,
        "bias": bool(spec.bias),
        "residual": bool(spec.residual),
    }
    roles = tuple(role for role in _OF_CALL if there.get(role, True))
    stays: dict[str, Any] = {name: launcher.read(name, tensor) for name, tensor in of_weights.items()}
    return BoundProduct(launcher.bind({**stays, "m": m}, roles), allocate, roles, tuple(of_weights.values()))


def _names_of_weights(spec: PlanesSpec) -> list[str]:
    others = {"scales": bool(spec.scale), "zeros": spec.zeros, "w_sums": spec.takes_sums_of_weights}
    return ["weights", *(name for name, is_there in others.items() if is_there)]
