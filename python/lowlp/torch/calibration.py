"""What modules see when a model runs on calibration batches: second moments of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

Run = Callable[[torch.nn.Module, Any], object]


class SecondMoments:
    """Of the inputs x [..., K] of one module, added up in float32 on its device.

    whole    the matrix [K, K] of mean products x_i x_j, the Hessian of squared errors of a linear layer but for a
             factor; else its diagonal alone
    """

    def __init__(self, k: int, device: torch.device, whole: bool) -> None:
        self._sums = torch.zeros((k, k) if whole else (k,), device=device)
        self.rows = 0

    def add(self, x: torch.Tensor) -> None:
        """Counts the rows of x."""
        rows = x.detach().reshape(-1, x.shape[-1]).float()
        if self._sums.ndim == 2:
            self._sums.addmm_(rows.t(), rows)
        else:
            self._sums += rows.square().sum(0)
        self.rows += rows.shape[0]

    @property
    def mean(self) -> torch.Tensor:
        """[K, K] or [K], float32. Raises `LowlpValueError` where no row came by."""
        if not self.rows:
            raise LowlpValueError("calibration: no row reached the module; does the model call it?")
        return self._sums / self.rows


def second_moments(
    model: torch.nn.Module,
    modules: Mapping[str, torch.nn.Linear],
    batches: Sequence[Any],
    *,
    whole: bool = False,
    run: Run | None = None,
) -> dict[str, torch.Tensor]:
    """Runs the model on the batches, without gradients, and gives the second moments of the inputs of some modules.

    modules  by name
    batches  what the model takes: dicts are given as keyword arguments, tuples and lists as positional ones, and others
             as the only one; or as `run(model, batch)` has it
    whole    matrices [K, K]; else diagonals [K]

    Raises `LowlpValueError`, which names the module, where one saw no input.
    """
    found = {name: SecondMoments(module.in_features, module.weight.device, whole) for name, module in modules.items()}
    hooks = [
        module.register_forward_pre_hook(lambda _, inputs, name=name: found[name].add(inputs[0]))
        for name, module in modules.items()
    ]
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for batch in batches:
                (run or run_model)(model, batch)
    finally:
        model.train(was_training)
        for hook in hooks:
            hook.remove()
    for name, moments in found.items():
        if not moments.rows:
            raise LowlpValueError(f"calibration: no row reached {name!r}; does the model call it on these batches?")
    return {name: moments.mean for name, moments in found.items()}


def run_model(model: torch.nn.Module, batch: Any) -> object:
    """Calls the model on a batch."""
    if isinstance(batch, Mapping):
        return model(**batch)
    if isinstance(batch, tuple | list):
        return model(*batch)
    return model(batch)


def as_batches(calibration: object) -> list[Any]:
    """The batches of an argument `calibration`: one tensor or dict is one batch. Raises `LowlpTypeError` and
    `LowlpValueError`."""
    if isinstance(calibration, torch.Tensor | Mapping):
        return [calibration]
    if not isinstance(calibration, Iterable) or isinstance(calibration, str):
        raise LowlpTypeError(f"calibration: expected batches, or one of them, got {type(calibration).__name__}")
    batches = list(calibration)
    if not batches:
        raise LowlpValueError("calibration: expected at least one batch, got none")
    return batches
