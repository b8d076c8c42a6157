"""Which checkpoints `lowlp` serves in an engine: what it is asked to, and what the engine has no kernel for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from lowlp.checkpoints.detection import known_method
from lowlp.checkpoints.own import METHOD
from lowlp.errors import CheckpointError

_IN_NO_ENGINE: Final = (METHOD, "hqq", "aqlm", "mlx", "gemma", "bitnet")
_NOT_BY_LAYER: Final = {
    "bitsandbytes": "its tensors have names that no layer of an engine can have",
    "mxfp4": "its experts are stacked in one tensor",
    "torchao": "its tensors are described in the metadata of the file",
    "quip#": "its layers transform x and y besides the product",
}
"""Methods that `lowlp.checkpoints` reads from files, and not from the tensors that an engine gives a layer."""


def method_of(fields: Mapping[str, Any]) -> str:
    """The method of a checkpoint's quantisation config, as `lowlp.checkpoints` calls it. Raises `CheckpointError` for
    one that no engine's layers can have from lowlp, with the reason."""
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


Lacking = Callable[[str, Mapping[str, Any]], Iterator[bool]]
"""Whether an engine has no kernel for what a config says, for each of its parts: of the method and the config."""


def claims(fields: Mapping[str, Any], user: str | None, lacking: Lacking) -> bool:
    """Whether lowlp serves a checkpoint with this quantisation config, where the user asked for the method `user`."""
    if user is not None:
        return user == METHOD
    try:
        method = method_of(fields)
    except CheckpointError:
        return False
    return method in _IN_NO_ENGINE or any(lacking(method, fields))


def parts_of_gptq(fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The config of a GPTQ checkpoint, and with each of its rules for some layers."""
    rules = fields.get("dynamic") or {}
    yield fields
    for pattern, rule in rules.items():
        if isinstance(rule, Mapping) and not pattern.startswith("-:"):
            yield {**fields, **rule}


def bits_of_autoround(fields: Mapping[str, Any]) -> Iterator[Any]:
    """The bits of an AutoRound checkpoint that is packed as GPTQ, and of each of its exceptions."""
    if "gptq" in str(fields.get("packing_format", "gptq")):
        extra = fields.get("extra_config") or {}
        for part in ({}, *(rule for rule in extra.values() if isinstance(rule, Mapping))):
            yield part.get("bits", fields.get("bits"))
