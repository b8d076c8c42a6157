"""What `models.py` measures of a model: its weights, or its cache of keys and values, quantised in many ways."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from transformers.cache_utils import DynamicCache

import lowlp
import lowlp.transformers

WINDOW = 512
GROUPS = (32, 64, 128, 256)
CACHES = ("int8", "f8e4m3", "int4", "cq-4", "cq-2")
EPOCHS = 2
WINDOWS = {"importance": 4, "caches": 4, "feedback": 8, "learnt": 8}
"""How many windows of the text's end each way of calibration sees."""
_LEARNT = (*((kind, group) for group in GROUPS for kind in ("nf3", "nf4")), ("int3", 64), ("int4", 64))


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name -> arguments of `lowlp.torch.quantize_`, and 'how' where it is more than rounding: 'learnt' scales,
    'feedback' of errors as GPTQ has it, or 'importance', both from calibration."""
    for bits in (8, 6, 5, 4, 3, 2):
        yield f"int{bits} g128", {"config": f"int{bits}", "group_size": 128}
    for kind in ("nf4", "nf3"):
        yield f"{kind} g128", {"config": kind, "group_size": 128}
    for kind in ("int4", "int3", "nf3"):
        yield f"{kind} g64, scales by search", {"config": kind, "group_size": 64, "search": True}
    for kind in ("int4", "nf4", "int3", "nf3", "int2"):
        for group in GROUPS:
            yield f"{kind} g{group}", {"config": kind, "group_size": group}
    for bits in (4, 3, 2):
        yield f"uint{bits} with zero points g64", {"config": f"uint{bits}", "group_size": 64, "zero_point": True}
    for weights, x in (("int8", "int8"), ("int4", "int8"), ("int3", "int4"), ("int2", "int2")):
        options = {"config": weights, "group_size": None, "activation": x}
        yield f"W{weights[3:]}A{x[3:]} by rows and tokens", options
    yield "1 book of 256, 8 weights", {"config": None, "vq": lowlp.vq(8, 8), "group_size": None}
    yield "2 books of 256, 8 weights", {"config": None, "vq": lowlp.vq(8, 8, 2), "group_size": None}
    yield "1 book of 256 a 256 x 256, 4 weights", {"config": "gptvq-2"}
    for kind in ("int4", "int3", "nf3"):
        name = f"{kind} g64, scales by search with importance"
        yield name, {"config": kind, "group_size": 64, "how": "importance"}
    name = "2 books of 256, 8 weights, with importance"
    yield name, {"config": None, "vq": lowlp.vq(8, 8, 2), "group_size": None, "how": "importance"}
    for kind in ("int4", "nf4", "int3", "nf3"):
        yield f"{kind} g64, feedback of errors", {"config": kind, "group_size": 64, "how": "feedback"}
    for kind, group in _LEARNT:
        yield f"{kind} g{group}, learnt scales", {"config": kind, "group_size": group, "how": "learnt"}


@torch.no_grad()
def perplexity(model: torch.nn.Module, ids: torch.Tensor, cache: Callable[[], Any] | None = None) -> float:
    """exp of the mean loss of each token but the first of its window [windows, WINDOW]; `cache` makes one for each."""
    total, count = 0.0, 0
    for window in ids:
        options = {} if cache is None else {"past_key_values": cache(), "use_cache": True}
        logits = model(window[None], **options).logits[0, :-1].float()
        total += float(torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum"))
        count += len(window) - 1
    return math.exp(total / count)


def quantised(model: Any, ids: torch.Tensor, options: dict[str, Any], calibration: torch.Tensor) -> dict[str, Any]:
    """Perplexity with the layers quantised; the model is as before afterwards.

    calibration  [windows, WINDOW], for scales that are learnt and for importance
    """
    options = dict(options)
    how = options.pop("how", None)
    kept = {name: module for name, module in model.model.named_modules() if isinstance(module, torch.nn.Linear)}
    # The head stays as it is, as in the other cases, and takes part in the loss.
    layers = {id(module) for module in kept.values()}
    rules = _smaller_groups(kept, options)
    batches = [{"input_ids": window[None]} for window in calibration[-WINDOWS.get(how, 0) :]]
    options |= {"filter_fn": lambda module, _: id(module) in layers, "progress": False, "rules": rules}
    try:
        if how == "learnt":
            lowlp.torch.learn_scales(model, batches, epochs=EPOCHS, **options)
        elif how in ("importance", "feedback"):
            lowlp.torch.quantize_(model, calibration=batches, error_feedback=how == "feedback", **options)
        else:
            lowlp.torch.quantize_(model, **options)
        modules = [module for module in model.model.modules() if isinstance(module, lowlp.torch.Linear)]
        bits = 8 * sum(module.weight_bytes for module in modules)
        weights = sum(module.in_features * module.out_features for module in modules)
        found = {"bits": bits / weights, "perplexity": perplexity(model, ids)}
        if how is not None:
            found["tokens learnt from"] = len(batches) * WINDOW
        if rules:
            found["note"] = f"groups of {GROUPS[-2]} where {options['group_size']} do not divide K"
        return found
    finally:
        for name, module in kept.items():
            model.model.set_submodule(name, module)


def _smaller_groups(layers: dict[str, Any], options: dict[str, Any]) -> dict[str, object]:
    """Rules for the layers whose K the group does not divide: these take the next smaller one."""
    group = options.get("group_size")
    names = [name for name, layer in layers.items() if group and layer.in_features % group]
    if not names:
        return {}
    smaller = lowlp.torch.Config(options["config"], group_size=GROUPS[-2])
    return {r"model\.(" + "|".join(map(re.escape, names)) + ")": smaller}


def of_cache(model: Any, ids: torch.Tensor, kind: str, calibration: torch.Tensor) -> dict[str, Any]:
    """Perplexity where all tokens, themselves included, see keys and values as a cache of a type holds them.

    calibration  [windows, WINDOW], of which the books of 'cq-4' and 'cq-2' are learnt
    """
    books, seen = None, calibration[-WINDOWS["caches"] :]
    if kind.startswith("cq"):
        vectors = lowlp.vq(2 if kind == "cq-4" else 4, 8)
        books = [lowlp.kv_codebooks(keys, values, vectors) for keys, values in _keys_and_values(model, seen)]

    def cache() -> Any:
        made = lowlp.transformers.QuantizedCache(model.config, kind, max_tokens=WINDOW, codebooks=books)
        for layer in made.layers:
            layer.update = _seen_quantised(layer)
        return made

    return {"perplexity": perplexity(model, ids, cache), "tokens learnt from": seen.numel() if books else 0}


def _seen_quantised(layer: Any) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    """`update` of a layer of the cache that returns what the cache holds, of a prompt too."""
    update = layer.update

    def dense(key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        update(key_states, value_states, *args, **kwargs)
        return layer.dense(key_states.shape[2])

    return dense


@torch.no_grad()
def _keys_and_values(model: Any, ids: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Of each layer, [tokens, heads, head_dim], as a cache gets them."""
    caches = []
    for window in ids:
        # Without the config, which would have windows forget tokens.
        cache = DynamicCache()
        model.model(window[None], past_key_values=cache, use_cache=True)
        caches.append(cache)
    for number in range(model.config.num_hidden_layers):
        layers = [cache.layers[number] for cache in caches]
        keys, values = (torch.cat([getattr(layer, name)[0] for layer in layers], 1) for name in ("keys", "values"))
        yield keys.transpose(0, 1).float(), values.transpose(0, 1).float()
