"""`lowlp.linear` of quantised activations: by which products, and on which device."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from lowlp.activations.kinds import TERNARY, activation_kind
from lowlp.activations.quantized import QuantizedActivations
from lowlp.compiler.architectures import DEFAULT_ARCH
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.activations import BYTES
from lowlp.kernels.linear.paths import Path, check_path, choose_path
from lowlp.kernels.linear.planes.program import EPILOGUES as PLANE_EPILOGUES
from lowlp.kernels.linear.spec import ACTIVATIONS, EPILOGUES, SUMS, LinearSpec
from lowlp.numeric.dtypes import DType, dtype_among, library_name, named_dtype
from lowlp.numeric.host_array import as_host_array, as_torch_tensor
from lowlp.schedules.device import device_of
from lowlp.weights.packing import PLANES
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.array import is_torch_tensor

from .activations import quantize_activations, refuse_gradients
from .invariance import argument_of
from .kept_products import call_of, kept_products
from .linear_on_cpu import linear_numpy
from .planes_linear import planes_linear
from .quantized_launch import quantized_on_gpu
from .quantized_x import QuantizedX, result_of

_HALVES = {"float16": "f16", "bfloat16": "bf16"}


def quantized_linear(
    x: Any,
    qw: QuantizedTensor,
    bias: Any,
    epilogue: str | None,
    residual: Any,
    out_dtype: str | DType | None,
    batch_invariant: int,
    activation: str | DType | None,
    path: str | None,
    stream: object,
) -> Any:
    """`lowlp.linear` where x is quantised, or `activation` or `path` is given; arguments as there, and not checked
    but for `batch_invariant`, which is as `invariance_of` has it."""
    call = None
    if isinstance(x, QuantizedActivations) and activation is None and stream is None:
        call = call_of(x, bias, residual, epilogue, out_dtype, batch_invariant, path)
        if call is not None:
            refuse_gradients(bias=bias, residual=residual)
            y = kept_products.of(qw).repeated(call, x, bias, residual)
            if y is not None:
                return y
    out, wanted = result_of(out_dtype, _default_result(x)), check_path(path)
    if epilogue is not None and (not isinstance(epilogue, str) or epilogue not in EPILOGUES):
        raise LowlpValueError(f"epilogue: must be None or one of {', '.join(EPILOGUES)}, got {epilogue!r:.40}")
    refuse_gradients(bias=bias, residual=residual)
    quantized = QuantizedX.of(_quantised(x, activation, stream, qw.family == PLANES))
    is_torch = is_torch_tensor(quantized.codes)
    is_on_gpu = is_torch and quantized.codes.is_cuda
    if stream is not None and not is_on_gpu:
        raise LowlpValueError("stream: allowed for CUDA tensors only, and x is on the CPU")
    arch = device_of(quantized.codes.get_device()).arch if is_on_gpu else DEFAULT_ARCH
    chosen = quantized.path(qw, arch, wanted)
    if chosen.name == "planes" and epilogue not in (None, *PLANE_EPILOGUES):
        if wanted:
            raise LowlpValueError(f"epilogue: products of planes have none named {epilogue!r}; use path='s8'")
        chosen = quantized.path(qw, arch, "s8")
    parts = (bias, epilogue or "", residual, out, batch_invariant)
    if chosen.name == "f16":
        return _by_halves(quantized, qw, *parts, stream)
    if out == SUMS:
        check_sums_alone(bias, epilogue, residual)
    if chosen.name == "planes" and (is_on_gpu or not is_torch):
        return planes_linear(quantized.given, qw, *parts[:-1], stream, call)
    if is_on_gpu:
        return quantized_on_gpu(quantized, qw, *parts, stream, call)
    if not is_torch:
        return linear_numpy(quantized.codes, qw, *parts, quantized)
    host = QuantizedX.of(on_host(quantized.given))
    host_bias = None if bias is None else as_host_array(bias, "bias")
    host_residual = None if residual is None else as_host_array(residual, "residual")
    if chosen.name == "planes":
        return as_torch_tensor(planes_linear(host.given, qw, host_bias, epilogue or "", host_residual, out, None))
    y = linear_numpy(host.codes, qw, host_bias, epilogue or "", host_residual, out, batch_invariant, host)
    return as_torch_tensor(y)


def activation_of_kernel(activation: object) -> tuple[str, int, int]:
    """Of a type of activations: the type of elements of x, bits of a code, and the same of bipolar ones, else 0. Raises
    `LowlpTypeError` and `LowlpValueError` for other types."""
    found = None if library_name(activation) == TERNARY else named_dtype(activation, "activation")
    if found is not None and found.name in ACTIVATIONS:
        return found.name, 16, 0
    try:
        kind = activation_kind(found or activation)
    except LowlpValueError:
        dtype_among(activation, "activation", (*ACTIVATIONS, *BYTES))
        raise
    bits = kind.dtype.bits
    if kind.is_float:
        return kind.name, bits, 0
    return "int8" if kind.stored == np.int8 else "uint8", bits, bits if kind.is_bipolar else 0


def check_compiled_path(spec: LinearSpec, x_bits: int, arch: str, wanted: str | None, permutation: bool) -> Path | None:
    """The path of a kernel of `compile_linear`; None for x that is not quantised. Raises `LowlpValueError` where there
    are no kernels of the one that is wanted."""
    if not spec.is_of_bytes:
        if wanted not in (None, "f16"):
            raise LowlpValueError(f"path: {wanted!r} is of quantised activations, got {spec.activation}")
        return None
    if spec.x_bipolar:
        raise LowlpValueError("activation: bipolar activations are multiplied by sums of weights too; use linear")
    if permutation:
        raise LowlpValueError(
            f"permutation: {spec.activation} activations come in the order of the weights; use linear"
        )
    if wanted in ("f16", "planes"):
        raise LowlpValueError(f"path: kernels for {spec.activation} are 's8' and 'fp8', got {wanted!r}")
    found = choose_path(spec.codec, spec.n, spec.k, spec.activation, x_bits, arch, wanted)
    if found.name == "planes":
        return Path("s8", f"{found.reason}, but kernels are compiled ahead for bytes alone; linear takes planes")
    return found


def _default_result(x: Any) -> str:
    """The type of results without `out_dtype`: that of x, where it is one of halves; else f16."""
    return _HALVES.get(str(getattr(x, "dtype", "")).removeprefix("torch."), "f16")


def _quantised(x: Any, activation: str | DType | None, stream: object, planes: bool) -> QuantizedActivations:
    """x as it is, or quantised; with `planes` these are made in the same launch."""
    if isinstance(x, QuantizedActivations):
        if activation is not None:
            raise LowlpValueError(f"activation: x is quantised already, to {x.dtype}; got {activation!r:.40}")
        return x
    if activation is None:
        raise LowlpValueError("path: goes with quantised x, or with activation='int8' and the like")
    if not isinstance(x, np.ndarray) and not is_torch_tensor(x):
        raise LowlpTypeError(
            f"x: expected QuantizedActivations, a numpy array or a tensor of PyTorch, got {type(x).__name__}"
        )
    kind = activation_kind(activation, "activation")
    if kind.name == "uint1":
        raise LowlpValueError(
            "activation: uint1 has zero points; pass quantize_activations(x, 'uint1', symmetric=False) as x"
        )
    has_planes = planes and not kind.is_float
    return quantize_activations(x, activation, planes=has_planes, stream=stream)


def on_host(x: QuantizedActivations) -> QuantizedActivations:
    """Of tensors on the CPU, as arrays of numpy."""
    zeros = None if x.zeros is None else as_host_array(x.zeros, "x")
    codes, scales = as_host_array(x.codes, "x"), as_host_array(x.scales, "x")
    kind = "ternary" if x.is_ternary else x.dtype
    return QuantizedActivations(codes, dtype=kind, scales=scales, zeros=zeros)


def check_sums_alone(*parts: Any) -> None:
    """Raises `LowlpValueError` for a bias, epilogue or residual, which sums as they are do not have."""
    for name, part in zip(("bias", "epilogue", "residual"), parts, strict=True):
        if part is not None:
            found = repr(part) if isinstance(part, str) else f"{type(part).__name__} {list(getattr(part, 'shape', ()))}"
            raise LowlpValueError(f"{name}: must be None with out_dtype='s32', sums as they are; got {found}")


def _by_halves(
    quantized: QuantizedX,
    qw: QuantizedTensor,
    bias: Any,
    epilogue: str,
    residual: Any,
    out: str,
    batch_invariant: int,
    stream: object,
) -> Any:
    """By x dequantised to bf16 where the weights are packed for it, else to f16."""
    if out == SUMS:
        raise LowlpValueError("out_dtype: s32 is of products of integers, not of path='f16'")
    from .linear import linear

    kind = "bfloat16" if qw.family == "bf16" else "float16"
    if is_torch_tensor(quantized.codes):
        x = quantized.dequantized(getattr(sys.modules["torch"], kind))
    else:
        import ml_dtypes

        x = quantized.dequantized(ml_dtypes.bfloat16 if kind == "bfloat16" else np.float16)
    return linear(
        x,
        qw,
        bias=bias,
        epilogue=epilogue or None,
        residual=residual,
        out_dtype=out,
        batch_invariant=argument_of(batch_invariant),
        stream=stream,
    )
