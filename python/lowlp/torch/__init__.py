"""`lowlp.torch`: quantised weights as modules and operators of PyTorch.

    lowlp.torch.quantize_(model, "int4", group_size=128)
    lowlp.torch.warm_up(model, rows=[1, 16])

Modules compute on the device of their buffers: on a GPU by the kernels of `lowlp.linear`, on a CPU by PyTorch's
products with slabs of dequantised weights. Importing `lowlp` does not import this package, nor PyTorch.
"""

from __future__ import annotations

from lowlp_runtime.errors import LowlpError

try:
    import torch as _torch
except ImportError as _error:

    class MissingTorchError(LowlpError, ImportError):
        """PyTorch is not installed."""

    raise MissingTorchError(f"lowlp.torch needs PyTorch: pip install 'lowlp[torch]' ({_error})") from _error

from .config import Config as Config
from .embedding import Embedding as Embedding
from .experts import Experts as Experts
from .experts import GroupedLinear as GroupedLinear
from .learnt_scales import learn_scales as learn_scales
from .linear import Linear as Linear
from .merged_linear import MergedLinear as MergedLinear
from .quantized_module import QuantizedModule as QuantizedModule
from .quantizing import quantize_ as quantize_
from .warming import warm_up as warm_up

__all__ = [
    "Config",
    "Embedding",
    "Experts",
    "GroupedLinear",
    "Linear",
    "MergedLinear",
    "QuantizedModule",
    "learn_scales",
    "quantize_",
    "warm_up",
]
del _torch
