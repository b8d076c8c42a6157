"""`lowlp.sglang`: quantised checkpoints in SGLang, by the quantisation method 'lowlp'.

    sglang serve --model-path TheModel-GPTQ-3bit                      # claimed: SGLang has no kernel for it
    sglang serve --model-path TheModel-lowlp                          # what lowlp convert or save_pretrained wrote
    sglang serve --model-path TheModel-AWQ --quantization lowlp       # asked for

SGLang finds `register` by the entry point `sglang.srt.plugins`; nobody imports this package. docs/sglang.md has what is
claimed and served. Importing `lowlp` does not import this package, nor SGLang.
"""

from __future__ import annotations

from lowlp_runtime.errors import LowlpError

__all__ = ["register"]


def register() -> None:
    """Registers the quantisation method 'lowlp' in this process; again does nothing. Raises
    `lowlp_runtime.errors.LowlpError` where SGLang, or PyTorch, is missing."""
    try:
        from sglang.srt.arg_groups.choices import QUANTIZATION_CHOICES
        from sglang.srt.layers.linear import WEIGHT_LOADER_V2_SUPPORTED
        from sglang.srt.layers.quantization import QUANTIZATION_METHODS
        from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    except ImportError as error:
        raise LowlpError(f"lowlp.sglang needs SGLang, of which version 0.5.23 was tried ({error})") from error
    from lowlp.checkpoints.own import METHOD

    if METHOD in QUANTIZATION_METHODS:
        return
    from .config import LowlpConfig, read_names
    from .linear import LowlpLinearMethod

    # SGLang takes the first method that claims a checkpoint, and the dict is held by those who have imported it.
    others = dict(QUANTIZATION_METHODS)
    QUANTIZATION_METHODS.clear()
    QUANTIZATION_METHODS.update({METHOD: LowlpConfig, **others})
    QUANTIZATION_CHOICES.append(METHOD)
    WEIGHT_LOADER_V2_SUPPORTED.append(LowlpLinearMethod.__name__)
    # A config is made without the checkpoint's place, which this function's arguments have.
    HookRegistry.register("sglang.srt.model_loader.weight_utils.get_quant_config", read_names, HookType.AFTER)
