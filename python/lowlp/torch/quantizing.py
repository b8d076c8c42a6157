"""`lowlp.torch.quantize_`: a model's modules quantised in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch

from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import DType, named_dtype
from lowlp.numeric.named_codecs import NAMED_BOOKS
from lowlp.weights.quantize.progress_bar import shown
from lowlp.weights.quantize.quantization import quantize
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

from .calibration import Run, as_batches, second_moments
from .config import Config
from .embedding import Embedding
from .error_feedback import quantize_with_feedback
from .linear import Linear
from .products import check_options, placed_for
from .quantized_module import options_of

FilterFn = Callable[[torch.nn.Module, str], bool]
_BYTES_OF_MOMENTS: Final = 2 << 30
"""Of matrices that are held at a time; modules beyond see inputs that those before them, quantised, make."""


def quantize_(
    model: torch.nn.Module,
    config: object = "int4",
    *,
    filter_fn: FilterFn | None = None,
    rules: Mapping[str, object] | None = None,
    calibration: object = None,
    importance: Mapping[str, Any] | None = None,
    error_feedback: bool = False,
    run: Run | None = None,
    progress: bool = True,
    **options: Any,
) -> torch.nn.Module:
    """Replaces the modules `torch.nn.Linear` of a model by `lowlp.torch.Linear`, in place, and returns the model.

        lowlp.torch.quantize_(model, "int4", group_size=128, rules={r".*down_proj": "int6", r"lm_head": None})

    config          a `Config`, or a codec as `lowlp.quantize` takes it, with `options`: group_size, zero_point, search
    filter_fn       which modules, by module and name, as torchao has it; None: every `torch.nn.Linear`, no subclasses
    rules           by regular expressions that must match a module's whole name, of which the first counts: another
                    config or codec, or None to leave the module as it is. A codec has the options of `config` where it
                    has none of its own. A rule may name a `torch.nn.Embedding` too
    calibration     batches that the model is run on, or one of them: of their inputs modules take the mean squares as
                    `importance`, or all second moments with `error_feedback`
    importance      the same [K] by the module's name, computed elsewhere. Scalar codes then search the scale of least
                    weighted error, vectors weigh their errors by it
    error_feedback  rounds column after column, and brings the error of each to those that are still to come, as GPTQ
                    does (arXiv 2210.17323); scalar codes only, and takes `calibration`
    run             `run(model, batch)`; None: the model is called with the batch
    progress        show a bar, where tqdm is installed

    Raises `LowlpTypeError` for a filter that takes other modules, `LowlpValueError` for a rule that matches no module
    and for no module at all, and with the module's name what `lowlp.quantize` raises. Modules that were quantised
    before an error stay so.
    """
    base = Config.of(config, **options)
    chosen = chosen_modules(model, base, filter_fn, rules or {})
    if error_feedback and calibration is None:
        raise LowlpValueError("error_feedback: takes calibration, which is not given")
    if calibration is not None and importance is not None:
        raise LowlpValueError("importance: computed from calibration where that is given; give one of them")
    unknown = sorted(set(importance or ()) - set(chosen))
    if unknown:
        raise LowlpValueError(f"importance: {unknown[0]!r} is no module that is quantised")
    batches = None if calibration is None else as_batches(calibration)
    bar = iter(shown(list(chosen), "modules", len(chosen), progress, "module"))
    for part in _parts(chosen, error_feedback):
        moments: dict[str, Any] = dict(importance or {})
        if batches is not None:
            linears = {name: module for name, (module, _) in part.items() if isinstance(module, torch.nn.Linear)}
            moments = dict(second_moments(model, linears, batches, whole=error_feedback, run=run))
        for name, (module, found) in part.items():
            next(bar)
            with named_errors(name):
                replaced = quantized_module(module, found, moments.get(name))
            replace_module(model, module, replaced)
    next(bar, None)
    return model


@contextmanager
def named_errors(name: str) -> Iterator[None]:
    """What is wrong with a module comes with its name."""
    try:
        yield
    except (LowlpValueError, LowlpTypeError) as error:
        raise type(error)(f"{name}: {error}") from error


def quantized_module(module: torch.nn.Module, config: Config, moments: Any = None) -> torch.nn.Module:
    """A module quantised as a config says.

    moments  of its inputs: None; the mean squares [K]; or the mean products [K, K], for feedback of errors
    """
    if isinstance(module, torch.nn.Linear | torch.nn.Embedding):
        check_computes(module)
    if isinstance(module, torch.nn.Embedding):
        return Embedding.from_embedding(module, config.dtype, **config.options)
    if not isinstance(module, torch.nn.Linear):
        raise LowlpTypeError(f"expected a torch.nn.Linear or torch.nn.Embedding, got {type(module).__name__}")
    weight = module.weight.detach()
    options = options_of(weight.dtype, config.options, config.activation)
    check_options(None, config.activation, config.path)
    if moments is not None and getattr(moments, "ndim", 1) == 2:
        qw = quantize_with_feedback(weight, moments, config.dtype, **options)
    else:
        if moments is not None:
            options["importance"] = moments
            if _is_scalar(config):
                options.setdefault("search", True)
        qw = quantize(weight, config.dtype, **options)
    return Linear.from_quantized(
        placed_for(qw, config.activation, config.path, weight.device),
        module.bias,
        activation=config.activation,
        path=config.path,
        device=weight.device,
        dtype=weight.dtype,
    ).train(module.training)


def check_computes(module: torch.nn.Module) -> None:
    """Raises `LowlpValueError` for a subclass that computes something of its own: an embedding that multiplies its rows
    by a number, for example, which a module in its place would not."""
    if type(module).forward not in (torch.nn.Linear.forward, torch.nn.Embedding.forward):
        raise LowlpValueError(
            f"expected a module that computes what torch.nn.Linear or torch.nn.Embedding does, and "
            f"{type(module).__name__} has a forward of its own"
        )


def _is_scalar(config: Config) -> bool:
    if isinstance(config.dtype, Codec):
        return config.dtype.vectors is None
    return config.options.get("vq") is None and config.dtype not in NAMED_BOOKS


def chosen_modules(
    model: torch.nn.Module, base: Config, filter_fn: FilterFn | None, rules: Mapping[str, object]
) -> dict[str, tuple[torch.nn.Module, Config]]:
    """Modules by name, with their configs. Raises `LowlpValueError` as `quantize_`."""
    return dict(_chosen(model, base, filter_fn, rules))


def _chosen(
    model: torch.nn.Module, base: Config, filter_fn: FilterFn | None, rules: Mapping[str, object]
) -> Iterator[tuple[str, tuple[torch.nn.Module, Config]]]:
    """Modules by name, with their configs."""
    patterns = {_compiled(text): _config_of_rule(value, base) for text, value in rules.items()}
    used: set[re.Pattern[str]] = set()
    count = 0
    for name, module in model.named_modules():
        matching = next((pattern for pattern in patterns if pattern.fullmatch(name)), None)
        is_taken = type(module) is torch.nn.Linear if filter_fn is None else filter_fn(module, name)
        if matching is not None and isinstance(module, torch.nn.Linear | torch.nn.Embedding):
            used.add(matching)
            config = patterns[matching]
            is_taken = config is not None and (filter_fn is None or is_taken)
        else:
            config = base
        if is_taken and config is not None:
            if not isinstance(module, torch.nn.Linear | torch.nn.Embedding):
                raise LowlpTypeError(
                    f"filter_fn: must take modules torch.nn.Linear and torch.nn.Embedding alone, took {name!r}, of "
                    f"type {type(module).__name__}"
                )
            if not name:
                raise LowlpValueError("model: is itself such a module; use lowlp.torch.Linear.from_linear")
            count += 1
            yield name, (module, config)
    for pattern in patterns:
        if pattern not in used:
            raise LowlpValueError(
                f"rules: {pattern.pattern!r} matches no torch.nn.Linear or torch.nn.Embedding by name"
            )
    if not count:
        raise LowlpValueError("model: has no module to quantise, a torch.nn.Linear that filter_fn and rules leave")


def _compiled(text: object) -> re.Pattern[str]:
    if not isinstance(text, str):
        raise LowlpTypeError(f"rules: expected regular expressions as keys, got {text!r:.40}")
    try:
        return re.compile(text)
    except re.error as error:
        raise LowlpValueError(f"rules: {text!r:.60} is no regular expression: {error}") from None


def _config_of_rule(value: object, base: Config) -> Config | None:
    """None to leave a module as it is. A name has the options of the base, but for those that a name decides."""
    if value is None or isinstance(value, Config):
        return value
    if isinstance(value, DType) or (isinstance(value, str) and _is_type(value)):
        kept = {name: option for name, option in base.options.items() if name not in ("lut", "vq", "book_per")}
        return Config(value, activation=base.activation, path=base.path, **kept)
    return Config(value, activation=base.activation, path=base.path)


def _is_type(name: str) -> bool:
    try:
        named_dtype(name, "rules")
    except LowlpValueError:
        return name.startswith("nf")
    return True


def _parts(
    chosen: Mapping[str, tuple[torch.nn.Module, Config]], whole: bool
) -> Iterator[dict[str, tuple[torch.nn.Module, Config]]]:
    """All modules, or those whose matrices of second moments are held at a time."""
    part: dict[str, tuple[torch.nn.Module, Config]] = {}
    held = 0
    for name, (module, config) in chosen.items():
        nbytes = 4 * module.in_features**2 if whole and isinstance(module, torch.nn.Linear) else 0
        if part and held + nbytes > _BYTES_OF_MOMENTS:
            yield part
            part, held = {}, 0
        part[name] = (module, config)
        held += nbytes
    if part:
        yield part


def replace_module(model: torch.nn.Module, module: torch.nn.Module, by: torch.nn.Module) -> None:
    """Puts a module in the place of another one, wherever the model has that."""
    for parent in list(model.modules()):
        for child, found in list(parent._modules.items()):
            if found is module:
                setattr(parent, child, by)
