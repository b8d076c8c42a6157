"""`lowlp.torch.learn_scales`: scales that are trained on calibration batches (FLUTE, arXiv 2407.10960, section 4.2).

A group's weights u become s f T[c] with the codes c nearest to u / (s f) in the table T; s is the scale that
`lowlp.quantize` finds, and f, 1 at first, is learnt by gradient descent on the model's loss. Through the rounding the
gradient goes straight, and stops where u is beyond the table:

    d(s f T[c]) / df = s (T[c] - u / (s f))      within the table
                     = s T[c]                    beyond it

At the end s f is rounded to the type of the scales, and codes are those nearest under it. So learnt weights have the
codec, and the bytes, that they would have without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from lowlp.numeric.codec import Codec, Table
from lowlp.numeric.host_array import FLOAT_DTYPES
from lowlp.weights.quantize.progress_bar import shown
from lowlp.weights.quantize.quantization import quantize
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

from .calibration import as_batches, run_model
from .config import Config
from .grids import sorted_values
from .linear import Linear
from .products import check_options, placed_for
from .quantized_module import options_of
from .quantizing import FilterFn, chosen_modules, named_errors, replace_module

Loss = Callable[[torch.nn.Module, Any], torch.Tensor]


def learn_scales(
    model: torch.nn.Module,
    calibration: object,
    config: object = "nf4",
    *,
    loss: Loss | None = None,
    epochs: int = 4,
    learning_rate: float = 3e-2,
    filter_fn: FilterFn | None = None,
    rules: Mapping[str, object] | None = None,
    progress: bool = True,
    **options: Any,
) -> torch.nn.Module:
    """Quantises a model in place as `quantize_` does, with scales that are learnt, and returns it.

    model          with the weights as they are, float32 for the best gradients
    calibration    batches, or one of them, as for `quantize_`
    config, options, filter_fn, rules   as for `quantize_`, for modules `torch.nn.Linear`; codecs of one value a code
                   and scales of float16, bfloat16 or float32 alone: tables, integers and floats without zero points,
                   offsets and second scales
    loss           `loss(model, batch)`, a number with a gradient; None: the result's `.loss`, or of a dict with
                   'input_ids' and a result with `.logits` the mean negative log-likelihood of the next tokens
    epochs         how often each batch is seen; one step of Adam for each
    learning_rate  of Adam, for the factors
    progress       show a bar, where tqdm is installed

    All layers learn together. The model holds its weights and one number for each group; nothing else has a gradient.
    Where the batches' loss is not below that of scales that are not learnt, these are taken.
    Raises as `quantize_`, and `LowlpValueError` for other codecs.
    """
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
        raise LowlpValueError(f"epochs: must be an int of at least 1, got {epochs!r:.40}")
    batches, compute = as_batches(calibration), loss or _loss_of_result
    base = Config.of(config, **options)
    learners: list[tuple[torch.nn.Module, _LearningLinear]] = []
    for name, (module, found) in chosen_modules(model, base, filter_fn, rules or {}).items():
        with named_errors(name):
            learners.append((module, _LearningLinear(module, found)))
    before = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    was_training = model.training
    for module, learner in learners:
        replace_module(model, module, learner)
    try:
        for parameter, _ in before:
            parameter.requires_grad_(False)
        model.eval()
        _learn(model, [learner for _, learner in learners], batches, compute, epochs, learning_rate, progress)
        made = [learner.quantised() for _, learner in learners]
    except BaseException:
        made = [module for module, _ in learners]
        raise
    finally:
        for parameter, wanted in before:
            parameter.requires_grad_(wanted)
        for (_, learner), module in zip(learners, made, strict=True):
            replace_module(model, learner, module)
        model.train(was_training)
    return model


def _learn(
    model: torch.nn.Module,
    learners: Sequence[_LearningLinear],
    batches: Sequence[Any],
    loss: Loss,
    epochs: int,
    learning_rate: float,
    progress: bool,
) -> None:
    factors = [learner.factors for learner in learners]
    for factor in factors:
        factor.requires_grad_()
    at_first = _total(model, batches, loss)
    optimizer = torch.optim.Adam(factors, lr=learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(batches))
    steps = [batch for _ in range(epochs) for batch in batches]
    for batch in shown(steps, "steps", len(steps), progress, "step", "learn scales"):
        optimizer.zero_grad(set_to_none=True)
        with torch.enable_grad():
            loss(model, batch).backward()
        optimizer.step()
        schedule.step()
    for factor in factors:
        factor.grad = None
    if not _total(model, batches, loss) < at_first:
        for factor in factors:
            factor.data.fill_(1.0)


def _total(model: torch.nn.Module, batches: Sequence[Any], loss: Loss) -> float:
    with torch.no_grad():
        return sum(float(loss(model, batch)) for batch in batches)


def _loss_of_result(model: torch.nn.Module, batch: Any) -> torch.Tensor:
    result = run_model(model, batch)
    found = getattr(result, "loss", None)
    if found is not None:
        return found
    logits = getattr(result, "logits", None)
    if logits is None or not isinstance(batch, Mapping) or "input_ids" not in batch:
        raise LowlpTypeError(
            "loss: must be given for a model whose result has no .loss, and no .logits for batches with 'input_ids'"
        )
    rows = logits[..., :-1, :].float().flatten(0, -2)
    return torch.nn.functional.cross_entropy(rows, batch["input_ids"][..., 1:].reshape(-1))


class _LearningLinear(torch.nn.Module):  # type: ignore[misc]
    """A linear layer while its scales are learnt: its weights, and a factor for the scale of each group."""

    def __init__(self, module: torch.nn.Module, config: Config) -> None:
        super().__init__()
        if not isinstance(module, torch.nn.Linear):
            raise LowlpTypeError(f"expected a torch.nn.Linear, got {type(module).__name__}")
        check_options(None, config.activation, config.path)
        weight = module.weight.detach()
        self._config, self._start = config, _start(weight, config)
        self.weight, self.bias = module.weight, module.bias
        n, groups = weight.shape[0], weight.shape[1] // self._start.group_size
        scales = torch.from_numpy(self._start.scales.astype(np.float32)).to(weight.device)
        self.register_buffer("_scales", scales.expand(n, groups) if scales.numel() == 1 else scales)
        values, order = sorted_values(self._start, weight.device)
        self.register_buffer("_values", values)
        self.register_buffer("_order", order)
        self.factors = torch.nn.Parameter(torch.ones_like(scales))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """As the quantised layer computes it, in the type of x."""
        weight = self._rounded(self._scales * self.factors)[0]
        return torch.nn.functional.linear(x, weight.to(x.dtype), self.bias)

    def _rounded(self, scales: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights that these scales give, with their gradient, and the places of their values in order."""
        grouped = self.weight.detach().float().unflatten(1, (-1, self._start.group_size))
        spread = scales.unsqueeze(-1)
        quotients = torch.where(spread == 0, torch.zeros_like(grouped), grouped / spread)
        held = quotients.clamp(float(self._values[0]), float(self._values[-1]))
        middles = (self._values[1:] + self._values[:-1]) / 2
        places = torch.searchsorted(middles, held.detach().contiguous())
        straight = held + (self._values[places] - held).detach()
        return (spread * straight).flatten(1), places.flatten(1)

    def quantised(self) -> Linear:
        """The layer with what was learnt."""
        start = self._start
        learnt = (self._scales * self.factors).detach().cpu().numpy()
        learnt = learnt[:1, :1] if start.codec.group == "tensor" else learnt
        with np.errstate(over="ignore"):
            scales = learnt.astype(FLOAT_DTYPES[start.codec.scale])
        # A factor that led out of the type's range is not taken.
        scales = np.where(np.isfinite(scales.astype(np.float32)), scales, start.scales)
        with torch.no_grad():
            exact = torch.from_numpy(scales.astype(np.float32)).to(self.weight.device)
            codes = self._order[self._rounded(exact.expand_as(self._scales))[1]].to(torch.uint8)
        is_table = isinstance(start.codec.code, Table)
        qw = QuantizedTensor(
            codes.cpu().numpy(),
            dtype=None if is_table else start.dtype,
            lut=start.lut,
            scales=scales,
            group_size="tensor" if start.codec.group == "tensor" else start.group_size,
            activation=start.family,
        )
        return Linear.from_quantized(
            placed_for(qw, self._config.activation, self._config.path, self.weight.device),
            self.bias,
            activation=self._config.activation,
            path=self._config.path,
            device=self.weight.device,
            dtype=self.weight.dtype,
        )


def _start(weight: torch.Tensor, config: Config) -> QuantizedTensor:
    """The weights with scales that are not learnt. Raises `LowlpValueError` for codecs that have more than scales."""
    qw = quantize(weight, config.dtype, **options_of(weight.dtype, config.options, config.activation))
    codec: Codec = qw.codec
    more = codec.vectors or codec.zeros or codec.offsets or codec.scale2 or codec.super_scale
    of_rows = codec.table is not None and codec.table.scope != "tensor"
    if more or of_rows or codec.scale not in FLOAT_DTYPES:
        raise LowlpValueError(
            f"config: scales are learnt of codes with one table and scales of f16, bf16 or f32 alone, got {codec}"
        )
    return qw
