"""torchao's `quantize_` with codecs of lowlp: importing this module registers `LowlpConfig` with torchao.

import torchao
from lowlp.torch.torchao import LowlpConfig

torchao.quantize_(model, LowlpConfig("int6", group_size=128))
"""

from __future__ import annotations

from typing import Any

import torch
from torchao.core.config import AOBaseConfig
from torchao.quantization.transform_module import register_quantize_module_handler

from .config import Config
from .quantizing import quantized_module


class LowlpConfig(AOBaseConfig):  # type: ignore[misc]
    """A `lowlp.torch.Config` that torchao takes, alone or in its `FqnToConfig`; the arguments are those of `Config`."""

    def __init__(self, dtype: object = None, **options: Any) -> None:
        self.config = Config(dtype, **options)

    def __repr__(self) -> str:
        return f"Lowlp{self.config!r}"


def _handle(module: torch.nn.Module, config: LowlpConfig) -> torch.nn.Module:
    return quantized_module(module, config.config)


register_quantize_module_handler(LowlpConfig)(_handle)
