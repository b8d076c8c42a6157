"""Which checkpoints SGLang 0.5.23 has no kernel for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lowlp.serving.claims import bits_of_autoround, parts_of_gptq

_GROUPS_OF_MARLIN: Final = (-1, 32, 64, 128)


def lacking(method: str, fields: Mapping[str, Any]) -> Iterator[bool]:
    """Of `lowlp.serving.claims.claims`."""
    if method == "gptq":
        for said in parts_of_gptq(fields):
            yield said.get("bits") not in (4, 8) or said.get("sym") is False
            yield said.get("group_size", -1) not in _GROUPS_OF_MARLIN
            yield said.get("checkpoint_format", "gptq") == "gptq_p"
    elif method == "auto-round":
        for bits in bits_of_autoround(fields):
            yield bits in (2, 3, 5, 6, 7)
