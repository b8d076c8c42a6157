"""What a plug-in says of its engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch

from .pieces import CheckpointTensor


class Engine(ABC):
    """An engine that loads checkpoints by weight loaders of its layers, and computes layers by quantisation methods.

    name       what errors call it
    parameter  the class of parameters for the checkpoint's tensors: `CheckpointTensor`, and the engine's base class
    """

    name: ClassVar[str]
    parameter: ClassVar[type[CheckpointTensor]]

    def other_names(self, part: str) -> tuple[str, ...]:
        """What the engine may call a tensor of a module, besides its name, when it looks for its parameter."""
        return ()

    @abstractmethod
    def of_rows(self, layer: torch.nn.Module, numbers: torch.Tensor, loader: Callable[..., Any]) -> Any:
        """A parameter of the engine that holds a number for each row of a layer."""

    @abstractmethod
    def of_columns(self, layer: torch.nn.Module, numbers: torch.Tensor, loader: Callable[..., Any]) -> Any:
        """A parameter of the engine that holds a number for each column of a layer."""

    @abstractmethod
    def rank(self, layer: torch.nn.Module) -> tuple[int, int]:
        """The place of this process among those that a layer is divided among, and their number."""

    @abstractmethod
    def rows_of_calls(self) -> tuple[int, ...]:
        """The numbers of tokens that graphs are captured for, and powers of two up to the most that are computed at
        once; () where the engine has not said it."""


def with_powers(captured: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Numbers of tokens of graphs, powers of two up to the most tokens, and the most."""
    powers = (1 << bit for bit in range(most.bit_length()))
    return tuple(sorted({*captured, *powers, most}))
