"""Checkpoints of whole models, in folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from encoded import GPTQ, Tensors, gptq, hqq
from safetensors.torch import save_file

SIZES: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "vocab_size": 300,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
IDS = torch.arange(9) * 7


def write(folder: Path, model: Any, said: Any, encode: Callable[..., tuple[Tensors, np.ndarray]], *others: str) -> Any:
    """A checkpoint of the model with its layers' weights replaced, and `others` too; the model gets what they mean."""
    state = {name: tensor.half() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight")
    for seed, (name, module) in enumerate(model.named_modules()):
        is_linear = isinstance(module, torch.nn.Linear) and name != "lm_head" and not name.endswith("mlp.gate")
        if is_linear or name in others:
            tensors, meant = encode(*module.weight.shape, seed)
            module.weight.data = torch.from_numpy(meant).half()
            state.pop(f"{name}.weight")
            state |= {f"{name}.{part}": tensor for part, tensor in tensors.items()}
    config = model.config.to_dict() | {"architectures": [type(model).__name__], "quantization_config": dict(said)}
    (folder / "config.json").write_text(json.dumps(config | {"dtype": "float16"}))
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, folder / "model.safetensors")
    return model


CASES: dict[str, Any] = {
    "gptq, 3 bits": (GPTQ, gptq),
    "gptq, act-order": ({**GPTQ, "desc_act": True}, lambda n, k, seed: gptq(n, k, seed, act_order=True)),
    "hqq": ({"quant_method": "hqq"}, hqq),
}


def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, size: int) -> torch.Tensor:
    """Attention over one prompt, [tokens, heads x size], by PyTorch: that of engines is compiled code."""
    given = [x.view(1, len(x), -1, size).transpose(1, 2).float() for x in (q, k, v)]
    y = torch.nn.functional.scaled_dot_product_attention(*given, is_causal=True, enable_gqa=True)
    return y.transpose(1, 2).reshape(len(q), -1).to(q.dtype)
