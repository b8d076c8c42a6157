"""lowlp: a compiler for GPU kernels on weights of 1 to 8 bits.

Importing this package loads nothing else: a name is looked up in the module that defines it when it is first used, so
that reading a layout needs no MLIR, and compiling a kernel needs no GPU.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lowlp_runtime import no_dependent_launch as no_dependent_launch

    from .activations.quantized import QuantizedActivations as QuantizedActivations
    from .compiler.compilation import compile as compile
    from .compiler.compilation import compile_cpu as compile_cpu
    from .compiler.compilation_times import compile_times as compile_times
    from .compiler.compiled_kernel import load as load
    from .errors import LowlpError as LowlpError
    from .kernels.linear.measured import use_tuned as use_tuned
    from .language import kernel as kernel
    from .layouts.register_layout import Layout as Layout
    from .layouts.register_layout import column_local as column_local
    from .layouts.register_layout import column_spatial as column_spatial
    from .layouts.register_layout import layout as layout
    from .layouts.register_layout import local as local
    from .layouts.register_layout import reduce as reduce
    from .layouts.register_layout import spatial as spatial
    from .layouts.shared_layout import SharedLayout as SharedLayout
    from .layouts.shared_layout import swizzle as swizzle
    from .numeric.codec import Codec as Codec
    from .numeric.dtypes import dtype as dtype
    from .numeric.lookup_tables import nf as nf
    from .numeric.vectors import vq as vq
    from .ops.activations import hadamard as hadamard
    from .ops.activations import quantize_activations as quantize_activations
    from .ops.attention import attention_decode as attention_decode
    from .ops.embedding import embedding as embedding
    from .ops.fused_activations import rms_norm_quant as rms_norm_quant
    from .ops.fused_activations import silu_mul_quant as silu_mul_quant
    from .ops.grouped_linear import grouped_linear as grouped_linear
    from .ops.kv_append import kv_append as kv_append
    from .ops.kv_cache import KVCache as KVCache
    from .ops.linear import compile_linear as compile_linear
    from .ops.linear import linear as linear
    from .tuning.autotuning import autotune as autotune
    from .tuning.search import tune_linear as tune_linear
    from .weights.concatenation import concat as concat
    from .weights.packing import pack as pack
    from .weights.packing import unpack as unpack
    from .weights.quantize.kv_codebooks import KVCodebooks as KVCodebooks
    from .weights.quantize.kv_codebooks import kv_codebooks as kv_codebooks
    from .weights.quantize.quantization import quantize as quantize
    from .weights.quantized_tensor import QuantizedTensor as QuantizedTensor

# Every float of 3 to 8 bits: one sign bit, X >= 1 exponent bits, Y mantissa bits.
_SMALL_FLOATS = tuple(
    f"f{bits}e{exponent}m{bits - 1 - exponent}" for bits in range(3, 9) for exponent in range(1, bits)
)
_TYPES = (
    *(f"{kind}{bits}" for kind in ("uint", "int", "bipolar") for bits in range(1, 9)),
    *_SMALL_FLOATS,
    *(f"float{name[1:].replace('e', '_e')}" for name in _SMALL_FLOATS),
    *("int16", "uint16", "int32", "uint32"),
    "f16",
    "bf16",
    "f32",
)

# Public name -> the module that defines it.
_MODULES = {
    **dict.fromkeys(_TYPES, "numeric.dtypes"),
    "dtype": "numeric.dtypes",
    **dict.fromkeys(
        ("Layout", "layout", "local", "spatial", "column_local", "column_spatial", "reduce"), "layouts.register_layout"
    ),
    **dict.fromkeys(("SharedLayout", "swizzle"), "layouts.shared_layout"),
    "QuantizedActivations": "activations.quantized",
    **dict.fromkeys(("hadamard", "quantize_activations"), "ops.activations"),
    **dict.fromkeys(("rms_norm_quant", "silu_mul_quant"), "ops.fused_activations"),
    "quantize": "weights.quantize.quantization",
    "QuantizedTensor": "weights.quantized_tensor",
    "concat": "weights.concatenation",
    **dict.fromkeys(("KVCodebooks", "kv_codebooks"), "weights.quantize.kv_codebooks"),
    **dict.fromkeys(("pack", "unpack"), "weights.packing"),
    "Codec": "numeric.codec",
    "nf": "numeric.lookup_tables",
    "vq": "numeric.vectors",
    "linear": "ops.linear",
    "compile_linear": "ops.linear",
    "embedding": "ops.embedding",
    "grouped_linear": "ops.grouped_linear",
    "attention_decode": "ops.attention",
    "KVCache": "ops.kv_cache",
    "kv_append": "ops.kv_append",
    "use_tuned": "kernels.linear.measured",
    "tune_linear": "tuning.search",
    "autotune": "tuning.autotuning",
    "compile": "compiler.compilation",
    "compile_cpu": "compiler.compilation",
    "compile_times": "compiler.compilation_times",
    "load": "compiler.compiled_kernel",
    "kernel": "language",
    "LowlpError": "errors",
}
# Those of `lowlp_runtime`.
_OF_RUNTIME = ("no_dependent_launch",)
# Modules that are public as such.
_SUBMODULES = ("checkpoints", "compiler", "drawing", "errors", "language", "packing", "targets")
# Need PyTorch and transformers, and are named with their package: `from lowlp import *` leaves these names alone.
_OPTIONAL = ("torch", "transformers")

__all__ = [*_MODULES, *_OF_RUNTIME, *_SUBMODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in (*_SUBMODULES, *_OPTIONAL):
        return importlib.import_module(f".{name}", __name__)
    module = "lowlp_runtime" if name in _OF_RUNTIME else f".{_MODULES.get(name, '')}"
    if module == ".":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
