"""`LowlpConfig`: what transformers knows of a model that lowlp quantises, or whose checkpoint it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from transformers.quantizers.auto import register_quantization_config
from transformers.utils.quantization_config import QuantizationConfigMixin

from lowlp.checkpoints.own import METHOD, VERSION
from lowlp.torch import Config
from lowlp.weights.packing import PACKED_FORMAT_VERSION
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

_ROUNDINGS: Final = ("checkpoint", None)


@register_quantization_config(METHOD)
class LowlpConfig(QuantizationConfigMixin):  # type: ignore[misc]
    """How a model is quantised while it loads, and how a checkpoint is read.

        LowlpConfig("int4", group_size=128, rules={r".*down_proj": "int6", r"lm_head": "int8"})

    dtype       the codec, as `lowlp.quantize` takes it; None for checkpoints that are quantised already
    rules       as for `lowlp.torch.quantize_`: by regular expressions that match a module's whole name, another codec
                or `lowlp.torch.Config`, or None for a module that stays as it is. Without a rule the model's head stays
                as it is, and so do embeddings
    modules_to_not_convert  names, or parts of names, of modules that stay as they are, as transformers has it
    fuse        after loading, makes projections of the same x one product: q, k and v; gate and up, whose activation is
                computed with it
    activations 'checkpoint': x is rounded where the checkpoint says so; None: it is not, which is more exact
    strict      whether tensors that the checkpoint lacks, or has beyond the model, are an error; else transformers
                reports them
    options     the other arguments of `lowlp.torch.Config`: group_size, scale_dtype, zero_point, activation, ...

    `source`, `version`, `packed_format` and `modules` are what config.json says of a checkpoint; nobody gives them by
    hand. Raises `LowlpTypeError` and `LowlpValueError`, which name the argument.
    """

    def __init__(
        self,
        dtype: object = None,
        *,
        rules: Mapping[str, object] | None = None,
        modules_to_not_convert: Sequence[str] | None = None,
        fuse: bool = False,
        activations: str | None = "checkpoint",
        strict: bool = True,
        source: Mapping[str, Any] | None = None,
        version: int = VERSION,
        packed_format: int = PACKED_FORMAT_VERSION,
        modules: Mapping[str, Mapping[str, Any]] | None = None,
        quant_method: str = METHOD,
        **options: Any,
    ) -> None:
        if quant_method != METHOD:
            raise LowlpValueError(f"quant_method: must be {METHOD!r}, got {quant_method!r:.40}")
        if activations not in _ROUNDINGS:
            raise LowlpValueError(f"activations: must be 'checkpoint' or None, got {activations!r:.40}")
        if rules is not None and not isinstance(rules, Mapping):
            raise LowlpTypeError(f"rules: expected a mapping, got {type(rules).__name__}")
        if version != VERSION:
            raise LowlpValueError(f"version: this lowlp reads checkpoints of version {VERSION}, got {version!r:.20}")
        if packed_format != PACKED_FORMAT_VERSION:
            raise LowlpValueError(
                f"packed_format: this lowlp reads weights of packed format {PACKED_FORMAT_VERSION}, got "
                f"{packed_format!r:.20}: quantize the model again"
            )
        if dtype is None and options and not {"lut", "vq"} & options.keys():
            raise LowlpValueError(f"{next(iter(options))}: goes with dtype, which is not given")
        self.quant_method = METHOD
        self.quantize = Config.of(dtype, **options) if dtype is not None or options else None
        self.rules = dict(rules or {})
        self.modules_to_not_convert = list(modules_to_not_convert or ())
        self.fuse, self.activations, self.strict = bool(fuse), activations, bool(strict)
        self.source = dict(source) if source is not None else None
        self.modules: dict[str, dict[str, Any]] = {name: dict(found) for name, found in (modules or {}).items()}

    @property
    def version(self) -> int:
        """Of lowlp's checkpoints."""
        return VERSION

    def to_dict(self) -> dict[str, Any]:
        """What config.json has: a loaded model's weights say by themselves what their codes mean."""
        found: dict[str, Any] = {
            "quant_method": METHOD,
            "version": VERSION,
            "packed_format": PACKED_FORMAT_VERSION,
        }
        if self.modules:
            found["modules"] = self.modules
        return found

    def to_diff_dict(self) -> dict[str, Any]:
        """The same."""
        return self.to_dict()

    def __repr__(self) -> str:
        what = repr(self.quantize) if self.quantize else f"source={self.source!r:.80}" if self.source else ""
        return f"LowlpConfig({what})"
