"""`lowlp.vllm`: quantised checkpoints in vLLM, by the quantisation method 'lowlp'.

    vllm serve TheModel-GPTQ-3bit                          # claimed: vLLM has no kernel for it
    vllm serve TheModel-lowlp                              # what lowlp convert or save_pretrained wrote
    vllm serve TheModel-AWQ --quantization lowlp           # asked for

vLLM finds `register` by the entry point `vllm.general_plugins`; nobody imports this package. docs/vllm.md has what is
claimed and served. Importing `lowlp` does not import this package, nor vLLM.
"""

from __future__ import annotations

from lowlp_runtime.errors import LowlpError

__all__ = ["register"]


def register() -> None:
    """Registers the quantisation method 'lowlp' in this process; again does nothing. Raises
    `lowlp_runtime.errors.LowlpError` where vLLM, or PyTorch, is missing."""
    try:
        from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS, register_quantization_config
    except ImportError as error:
        raise LowlpError(f"lowlp.vllm needs vLLM, of which version 0.33 was tried ({error})") from error
    from lowlp.checkpoints.own import METHOD

    if METHOD in QUANTIZATION_METHODS:
        return
    from .config import LowlpConfig

    register_quantization_config(METHOD)(LowlpConfig)
