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

    from .codec import Codec as Codec
    from .compilation_times import compile_times as compile_times
    from .compiler import compile as compile
    from .compiler import load as load
    from .dtypes import dtype as dtype
    from .errors import LowlpError as LowlpError
    from .kernels.linear_tables import use_tuned as use_tuned
    from .language import kernel as kernel
    from .layouts import Layout as Layout
    from .layouts import column_local as column_local
    from .layouts import column_spatial as column_spatial
    from .layouts import layout as layout
    from .layouts import local as local
    from .layouts import reduce as reduce
    from .layouts import spatial as spatial
    from .linear_op import compile_linear as compile_linear
    from .linear_op import linear as linear
    from .quantization import quantize as quantize
    from .quantized_tensor import QuantizedTensor as QuantizedTensor
    from .shared_layouts import SharedLayout as SharedLayout
    from .shared_layouts import swizzle as swizzle
    from .tables import nf as nf

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
    **dict.fromkeys(_TYPES, "dtypes"),
    "dtype": "dtypes",
    **dict.fromkeys(("Layout", "layout", "local", "spatial", "column_local", "column_spatial", "reduce"), "layouts"),
    **dict.fromkeys(("SharedLayout", "swizzle"), "shared_layouts"),
    "quantize": "quantization",
    "QuantizedTensor": "quantized_tensor",
    "Codec": "codec",
    "nf": "tables",
    "linear": "linear_op",
    "compile_linear": "linear_op",
    "use_tuned": "kernels.linear_tables",
    "compile": "compiler",
    "compile_times": "compilation_times",
    "load": "compiler",
    "kernel": "language",
    "LowlpError": "errors",
}
# Those of `lowlp_runtime`.
_OF_RUNTIME = ("no_dependent_launch",)
# Modules that are public as such.
_SUBMODULES = ("drawing", "errors", "language")

__all__ = [*_MODULES, *_OF_RUNTIME, *_SUBMODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    module = "lowlp_runtime" if name in _OF_RUNTIME else f".{_MODULES.get(name, '')}"
    if module == ".":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
