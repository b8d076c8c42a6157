"""`lowlp.transformers.from_pretrained`: a quantised checkpoint of any format, as a model of transformers."""

from __future__ import annotations

import os
from typing import Any

from transformers import AutoConfig, AutoModelForCausalLM

from lowlp.checkpoints.own import METHOD

_OF_CONFIG = ("fuse", "activations", "strict")


def from_pretrained(path: str | os.PathLike[str], *, model_class: Any = AutoModelForCausalLM, **kwargs: Any) -> Any:
    """The model of a quantised checkpoint: lowlp's own, or GPTQ, AWQ, compressed-tensors and the others of
    docs/checkpoints.md, whose codes are packed while they are read and never become floats.

    path         a folder, or a name on the Hub
    model_class  whose `from_pretrained` is called
    kwargs       for that: dtype, device_map, ...; and for `LowlpConfig`: fuse, activations, strict

    Raises `CheckpointError` for what cannot be read, and what transformers raises.
    """
    options = {name: kwargs.pop(name) for name in _OF_CONFIG if name in kwargs}
    config = kwargs.pop("config", None)
    if config is None:
        names = ("trust_remote_code", "revision", "token", "cache_dir", "local_files_only", "subfolder")
        config = AutoConfig.from_pretrained(path, **{name: kwargs[name] for name in names if name in kwargs})
    said = getattr(config, "quantization_config", None)
    fields = dict(said) if isinstance(said, dict) else dict(said.to_dict()) if said is not None else {}
    if fields.get("quant_method") != METHOD:
        fields = {"quant_method": METHOD, "source": fields}
    # A dict, since transformers makes the object of it.
    config.quantization_config = {**fields, **options}
    return model_class.from_pretrained(path, config=config, **kwargs)
