"""Which checkpoints vLLM 0.33 has no kernel for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lowlp.serving.claims import bits_of_autoround, parts_of_gptq


def lacking(method: str, fields: Mapping[str, Any]) -> Iterator[bool]:
    """Of `lowlp.serving.claims.claims`."""
    if method == "gptq":
        for said in parts_of_gptq(fields):
            yield said.get("bits") not in (4, 8) or said.get("sym") is False
            yield bool(said.get("desc_act")) and said.get("group_size", -1) != -1
            yield said.get("checkpoint_format", "gptq") == "gptq_p"
    elif method == "auto-round":
        for bits in bits_of_autoround(fields):
            yield bits in (3, 5, 6, 7)
    elif method == "compressed-tensors":
        groups = fields.get("config_groups") or {}
        for group in groups.values() if isinstance(groups, Mapping) else ():
            weights = group.get("weights") if isinstance(group, Mapping) else None
            # Dropped from vLLM in 2026: columns in groups of their own order.
            yield isinstance(weights, Mapping) and weights.get("actorder") in ("group", "dynamic")
