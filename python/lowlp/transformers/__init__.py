"""`lowlp.transformers`: quantised models of transformers 5. Importing it registers the method 'lowlp' there.

    import lowlp.transformers

    AutoModelForCausalLM.from_pretrained("TheModel", quantization_config=lowlp.transformers.LowlpConfig("int4"))
    AutoModelForCausalLM.from_pretrained("TheModel-lowlp")               # what save_pretrained or lowlp convert wrote
    lowlp.transformers.from_pretrained("TheModel-GPTQ")                  # any format of docs/checkpoints.md
    lowlp.transformers.from_gguf("TheModel-Q4_K_M.gguf")

docs/transformers.md has all of it. Importing `lowlp` does not import this package, nor transformers.
"""

from __future__ import annotations

from lowlp_runtime.errors import LowlpError

try:
    import torch as _torch
    import transformers as _transformers
except ImportError as _error:

    class MissingTransformersError(LowlpError, ImportError):
        """transformers, or PyTorch, is not installed."""

    raise MissingTransformersError(
        f"lowlp.transformers needs transformers 5: pip install 'lowlp[transformers]' ({_error})"
    ) from _error

if int(_transformers.__version__.split(".")[0]) < 5:
    raise LowlpError(f"lowlp.transformers needs transformers 5, and {_transformers.__version__} is installed")

from .cache import QuantizedCache as QuantizedCache
from .config import LowlpConfig as LowlpConfig
from .fusing import fuse_projections as fuse_projections
from .gguf import from_gguf as from_gguf
from .loading import from_pretrained as from_pretrained
from .quantizer import LowlpQuantizer as LowlpQuantizer

__all__ = ["LowlpConfig", "LowlpQuantizer", "QuantizedCache", "from_gguf", "from_pretrained", "fuse_projections"]
del _torch, _transformers
