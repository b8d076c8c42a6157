"""Which checkpoints `lowlp` serves in vLLM: those that it is asked to, and those that vLLM 0.33 has no kernel for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lowlp.checkpoints.detection import known_method
from lowlp.checkpoints.own import METHOD
from lowlp.errors import CheckpointError

_NOT_IN_VLLM: Final = (METHOD, "hqq", "aqlm", "mlx", "gemma", "bitnet")
_NOT_BY_LAYER: Final = {
    "bitsandbytes": "its tensors have names that no layer of vLLM can have",
    "mxfp4": "its experts are stacked in one tensor",
    "torchao": "its tensors are described in the metadata of the file",
    "quip#": "its layers transform x and y besides the product",
}
"""Methods that `lowlp.checkpoints` reads from files, and not from the tensors that vLLM gives a layer."""


def method_of(fields: Mapping[str, Any]) -> str:
    """The method of a checkpoint's quantisation config, as `lowlp.checkpoints` calls it. Raises `CheckpointError` for
    one that vLLM's layers cannot have from lowlp, with the reason."""
    named = fields.get("quant_method", fields.get("method"))
    if not isinstance(named, str) or not named:
        raise CheckpointError(f"quantization_config: quant_method must be a text, got {named!r:.40}")
    found = known_method(named, "quantization_config")
    if found in _NOT_BY_LAYER:
        raise CheckpointError(
            f"quantization_config: quant_method {found!r} is not served by lowlp, since {_NOT_BY_LAYER[found]}; "
            "lowlp convert makes a checkpoint of it that is"
        )
    return found


def claims(fields: Mapping[str, Any], user: str | None) -> bool:
    """Whether lowlp serves a checkpoint with this quantisation config, where the user asked for the method `user`."""
    if user is not None:
        return user == METHOD
    try:
        method = method_of(fields)
    except CheckpointError:
        return False
    return method in _NOT_IN_VLLM or any(_lacking(method, fields))


def _lacking(method: str, fields: Mapping[str, Any]) -> Iterator[bool]:
    """Whether vLLM has no kernel for what a config says, for each of its parts."""
    if method == "gptq":
        rules = fields.get("dynamic") or {}
        parts = [rule for pattern, rule in rules.items() if isinstance(rule, Mapping) and not pattern.startswith("-:")]
        for part in ({}, *parts):
            said = {**fields, **part}
            size = said.get("group_size", -1)
            yield said.get("bits") not in (4, 8) or said.get("sym") is False
            yield bool(said.get("desc_act")) and size != -1
            yield said.get("checkpoint_format", "gptq") == "gptq_p"
    elif method == "auto-round" and "gptq" in str(fields.get("packing_format", "gptq")):
        extra = fields.get("extra_config") or {}
        for part in ({}, *(rule for rule in extra.values() if isinstance(rule, Mapping))):
            yield part.get("bits", fields.get("bits")) in (3, 5, 6, 7)
    elif method == "compressed-tensors":
        groups = fields.get("config_groups") or {}
        for group in groups.values() if isinstance(groups, Mapping) else ():
            weights = group.get("weights") if isinstance(group, Mapping) else None
            # Dropped from vLLM in 2026: columns in groups of their own order.
            yield isinstance(weights, Mapping) and weights.get("actorder") in ("group", "dynamic")
