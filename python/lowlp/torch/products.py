"""The product of a module, where x is: what its operator and, without gradients, the module itself call."""

from __future__ import annotations

import itertools
from typing import Any, Final

import torch

from lowlp.activations.kinds import activation_kind
from lowlp.compiler.architectures import DEFAULT_ARCH
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.paths import FAMILIES_OF_PATHS, check_path, choose_path
from lowlp.kernels.linear.spec import EPILOGUES, GATED
from lowlp.ops.activations import quantize_activations
from lowlp.ops.grouped_linear import grouped_linear
from lowlp.ops.invariance import argument_of
from lowlp.ops.linear import linear
from lowlp.ops.quantized_linear import activation_of_kernel
from lowlp.schedules.device import device_of
from lowlp.weights.quantized_tensor import QuantizedTensor

from .host_products import product_with_slabs
from .stored_tensors import weights_of

TYPES: Final = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
_NAMES: Final = {dtype: name for name, dtype in TYPES.items()}


def check_options(epilogue: str | None, activation: object, path: str | None) -> dict[str, str]:
    """The options of a product by their names, '' for None. Raises `LowlpTypeError` and `LowlpValueError` for what
    `lowlp.linear` does not take."""
    if epilogue is not None and epilogue not in EPILOGUES:
        raise LowlpValueError(f"epilogue: must be None or one of {', '.join(EPILOGUES)}, got {epilogue!r:.40}")
    given = {"activation": activation, "path": check_path(path)}
    if activation is not None:
        activation_kind(activation, "activation")
    elif path is not None:
        raise LowlpValueError(f"path: goes with activation, which is not given; got {path!r:.40}")
    return {"epilogue": epilogue or "", **{name: "" if value is None else str(value) for name, value in given.items()}}


def check_device(given: torch.Tensor, tensors: list[torch.Tensor], argument: str) -> None:
    """Raises `LowlpValueError` unless an argument is where the weights are: nothing is moved that nobody moves."""
    if given.get_device() != tensors[0].get_device():
        raise LowlpValueError(
            f"{argument}: is on {given.device}, and the weights are on {tensors[0].device}; move one of them"
        )


def placed_for(qw: QuantizedTensor, activation: str | None, path: str | None, device: torch.device) -> QuantizedTensor:
    """Weights in the family of the products by which activations of a type are multiplied on a device. Raises
    `LowlpValueError` where none takes them exactly."""
    if activation is None:
        return qw
    kind, bits, _ = activation_of_kernel(activation)
    arch = device_of(device.index or 0).arch if device.type == "cuda" else DEFAULT_ARCH
    n, k = qw.shape[-2:]
    chosen = choose_path(qw.codec, n, k, kind, bits, arch, path).name
    return qw.pack_for(FAMILIES_OF_PATHS[chosen]) if chosen in FAMILIES_OF_PATHS else qw


def product(
    x: torch.Tensor,
    tensors: list[torch.Tensor],
    bias: torch.Tensor | None,
    header: str,
    epilogue: str,
    out_dtype: str,
    activation: str,
    path: str,
    batch_invariant: int = 0,
) -> torch.Tensor:
    """epilogue(x @ w^T + bias), without a gradient. `batch_invariant` as `invariance_of` has it; a CPU, which adds as
    PyTorch does, passes over it."""
    check_device(x, tensors, "x")
    qw = weights_of(tensors, header)
    if not x.is_cuda:
        out = TYPES[out_dtype] if out_dtype else x.dtype
        # What their codes mean: the sums of products are exact in integers, and here in float32 but for roundings.
        meant = quantize_activations(x.detach(), activation).dequantize() if activation else x
        return product_with_slabs(meant, qw, bias, epilogue, out)
    options: dict[str, Any] = {}
    if activation:
        options["activation"] = activation
        out_dtype = out_dtype or _NAMES.get(x.dtype, "")
    if path:
        options["path"] = path
    if batch_invariant:
        options["batch_invariant"] = argument_of(batch_invariant)
    if x.dim() != 2:
        # So that calls made ready for some rows serve x of every rank.
        y = linear(
            x.reshape(-1, x.shape[-1]), qw, bias=bias, epilogue=epilogue or None, out_dtype=out_dtype or None, **options
        )
        return y.view(*x.shape[:-1], y.shape[-1])
    found: torch.Tensor = linear(x, qw, bias=bias, epilogue=epilogue or None, out_dtype=out_dtype or None, **options)
    return found


def grouped_product(
    x: torch.Tensor,
    tensors: list[torch.Tensor],
    offsets: torch.Tensor,
    bias: torch.Tensor | None,
    header: str,
    epilogue: str,
) -> torch.Tensor:
    """epilogue(x[i] @ w[e]^T + bias[e]) of rows sorted by expert, without a gradient."""
    check_device(x, tensors, "x")
    qw = weights_of(tensors, header)
    if x.is_cuda:
        y: torch.Tensor = grouped_linear(x, qw, offsets, bias=bias, epilogue=epilogue or None)
        return y
    result = x.new_zeros((x.shape[0], qw.shape[1] // (2 if epilogue in GATED else 1)))
    for expert, (begin, end) in enumerate(itertools.pairwise(offsets.tolist())):
        if begin < end:
            of_expert = None if bias is None else bias[expert]
            result[begin:end] = product_with_slabs(x[begin:end], qw[expert], of_expert, epilogue, x.dtype)
    return result
