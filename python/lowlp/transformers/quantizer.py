"""`LowlpQuantizer`: lowlp in `from_pretrained` and `save_pretrained` of transformers 5.

Of an ordinary checkpoint each weight is quantised when transformers has read it, so that no more than one is there in
its own type. Of a quantised one `lowlp.checkpoints` reads the weights: of each layer transformers reads the smallest
tensor alone, which is the sign to read the layer to the device where that tensor went.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers.core_model_loading import ConversionOps, WeightConverter
from transformers.quantizers.auto import register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.quantizers.quantizers_utils import should_convert_module

from lowlp import checkpoints
from lowlp.checkpoints.own import METHOD, PackedParts
from lowlp.errors import CheckpointError
from lowlp.torch import Config, Embedding, Linear
from lowlp.torch.inputs import linear_of, linear_with, settings_of
from lowlp.torch.quantized_module import QuantizedModule, family_of
from lowlp.torch.quantizing import chosen_modules, named_errors, quantized_module
from lowlp_runtime.errors import LowlpValueError

from .config import LowlpConfig
from .embeddings import ScaledEmbedding, scale_of, scaled_like
from .fusing import fuse_projections, is_fused
from .gguf import FILE, GgufModel
from .parallel import cut_bias_of_part, divided, family_said, head_of, multiple_of, read_part, share_part
from .placing import Placing, Waiting, forget_tie, place


@register_quantizer(METHOD)
class LowlpQuantizer(HfQuantizer):  # type: ignore[misc]
    """Quantises while a model loads, or reads what is quantised already; see `LowlpConfig`."""

    requires_calibration = False
    quantization_config: LowlpConfig

    def __init__(self, quantization_config: LowlpConfig, **kwargs: Any) -> None:
        super().__init__(quantization_config, **kwargs)
        self.placing = Placing()
        self._chosen: dict[str, Config] = {}
        self._tied: dict[str, Config] = {}
        self._triggers: list[str] = []
        if not self.pre_quantized and quantization_config.quantize is None:
            raise LowlpValueError(
                "dtype: LowlpConfig must say how to quantise, 'int4' for example, since the checkpoint is not quantised"
            )

    def validate_environment(self, *args: Any, **kwargs: Any) -> None:
        """Refuses maps of devices with the disk, where packed weights cannot be kept."""
        places = kwargs.get("device_map")
        if isinstance(places, Mapping) and "disk" in places.values():
            raise LowlpValueError("device_map: weights of lowlp cannot be kept on the disk")

    def is_serializable(self, *args: Any, **kwargs: Any) -> bool:
        """`save_pretrained` writes a checkpoint of lowlp."""
        return True

    @property
    def is_trainable(self) -> bool:
        """There are gradients of x and none of weights."""
        return False

    @property
    def is_compileable(self) -> bool:
        """Modules are operators of PyTorch."""
        return True

    # --- before weights are read --------------------------------------------------------------------------------------

    def _process_model_before_weight_loading(self, model: Any, checkpoint_files: Any = None, **kwargs: Any) -> None:
        if self.pre_quantized:
            opened = self._opened(model, checkpoint_files)
            if not opened.layers:
                raise CheckpointError(f'{opened.path}: nothing in it is quantised; LowlpConfig("int4") quantises it')
            self.placing = place(model, opened, self.quantization_config.strict)
            self._triggers = _triggers(self.placing, opened)
            for base, layer in self.placing.layers.items():
                model.get_submodule(base).head = head_of(model, base, layer.shape[0])
            return
        if (getattr(getattr(model.config, "distributed_config", None), "tp_size", None) or 1) > 1:
            raise LowlpValueError(
                "quantization_config: weights are not quantised in parts; quantise and save the model on one process, "
                "and load what was saved in parallel"
            )
        excluded = self.get_modules_to_not_convert(
            model, self.quantization_config.modules_to_not_convert, model._keep_in_fp32_modules, add_default_skips=True
        )
        rules = self.quantization_config.rules
        assert self.quantization_config.quantize is not None

        def is_taken(module: torch.nn.Module, name: str) -> bool:
            if any(re.fullmatch(pattern, name) for pattern in rules):
                return isinstance(module, torch.nn.Linear | torch.nn.Embedding)
            return type(module) is torch.nn.Linear and should_convert_module(name, excluded)

        chosen = chosen_modules(model, self.quantization_config.quantize, is_taken, rules)
        tied = {name.removesuffix(".weight") for pair in model.all_tied_weights_keys.items() for name in pair}
        for name, (_, config) in chosen.items():
            (self._tied if name in tied else self._chosen)[name] = config

    def _opened(self, model: Any, files: list[str] | None) -> checkpoints.Checkpoint | GgufModel:
        """The checkpoint whose files transformers found, or that the config names."""
        source = self.quantization_config.source or {}
        if FILE in source:
            return GgufModel(Path(source[FILE]), model)
        if not files:
            raise CheckpointError("a quantised model is read from files, and there are none")
        first = Path(files[0])
        if first.suffix != ".safetensors":
            raise CheckpointError(f"{first}: quantised checkpoints are read from safetensors files")
        return checkpoints.open(first if len(files) == 1 else first.parent)

    def param_needs_quantization(self, model: Any, param_name: str, **kwargs: Any) -> bool:
        """Whether a parameter that was read is to be quantised."""
        base, _, last = param_name.rpartition(".")
        return last == "weight" and base in self._chosen

    def get_quantize_ops(self) -> ConversionOps:
        """Of transformers: what quantises a parameter."""
        return _Quantize(self)

    def get_weight_conversions(self) -> list[WeightConverter]:
        """Of transformers: what reads the layers of a quantised checkpoint."""
        return [WeightConverter(rf"\.{re.escape(end)}$", ".waiting", [_Read(self)]) for end in self._triggers]

    # --- when they are there ------------------------------------------------------------------------------------------

    def quantise(self, model: Any, base: str, weight: torch.Tensor) -> None:
        """Puts a quantised module in the place of the module `base`, whose weight was read."""
        old = model.get_submodule(base)
        with named_errors(base), torch.no_grad():
            dense = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
            if isinstance(old, torch.nn.Embedding):
                dense = torch.nn.Embedding(*weight.shape, max_norm=old.max_norm, device="meta")
            dense.weight = torch.nn.Parameter(weight, requires_grad=False)
            new = scaled_like(quantized_module(dense, self._chosen[base]), scale_of(old, base))
        _put(model, base, new, getattr(old, "bias", None))

    def read(self, model: Any, base: str, device: torch.device) -> None:
        """Reads the weights of the module `base`, and puts it in its place."""
        layer = self.placing.layers[base]
        waiting = model.get_submodule(base)
        family, settings = family_of(waiting.dtype), self.quantization_config.modules
        multiple = 1 if waiting.style is None else multiple_of(base, waiting, self.placing.layers)
        parts = layer.parts()
        is_plain = not layer.inputs and base not in settings
        if waiting.style and is_plain and isinstance(parts, PackedParts) and family_said(parts.header) == family:
            new = scaled_like(read_part(base, waiting, parts, multiple, device), waiting.scale)
            _put(model, base, new, waiting.bias)
            return
        place, device = device, device if waiting.style is None else torch.device("cpu")
        weights = layer.load(family)
        if waiting.takes is Embedding:
            new = scaled_like(Embedding.from_quantized(weights, device=device, dtype=waiting.dtype), waiting.scale)
        elif base in settings:
            new = linear_with(settings[base], weights, None, device, waiting.dtype)
        else:
            # bitsandbytes rounds x but for outliers, whose columns are found at run time: x as it is is nearer.
            is_rounded = self.quantization_config.activations and not layer.format.startswith("bitsandbytes")
            inputs = layer.inputs if is_rounded else None
            new = linear_of(weights, None, inputs, device, waiting.dtype)
        divided(base, waiting, new, multiple)
        _put(model, base, new.to(place), waiting.bias)

    def _process_model_after_weight_loading(self, model: Any, **kwargs: Any) -> None:
        ours = (_Read, _Quantize)
        model._weight_conversions = [
            found
            for found in getattr(model, "_weight_conversions", None) or []
            if not any(isinstance(op, ours) for op in getattr(found, "operations", ()))
        ]
        share(model, self.placing.tied)
        self._quantise_tied(model)
        for name, module in model.named_modules():
            if isinstance(module, Waiting):
                raise CheckpointError(f"{name}: its weights were not read")
            if isinstance(module, QuantizedModule) and isinstance(bias := getattr(module, "bias", None), torch.Tensor):
                bias.requires_grad_(False)
                cut_bias_of_part(module)
        if self.quantization_config.fuse:
            fuse_projections(model)
        settings = {name: settings_of(module) for name, module in model.named_modules()}
        self.quantization_config.modules = {name: found for name, found in settings.items() if found}

    def _quantise_tied(self, model: Any) -> None:
        """Quantises modules that share their weights with others, whose parameter transformers has tied by now."""
        done: dict[tuple[int, str], QuantizedModule] = {}
        for name, config in self._tied.items():
            module = model.get_submodule(name)
            key = (module.weight.data_ptr(), repr(config))
            for target in [
                target for target, source in model.all_tied_weights_keys.items() if f"{name}.weight" in (target, source)
            ]:
                forget_tie(model, target)
            if key in done:
                _share(model, name, done[key])
                continue
            scale = scale_of(module, name)
            if scale is not None:
                plain = torch.nn.Embedding(*module.weight.shape, device="meta")
                plain.weight = module.weight
                module = plain
            with named_errors(name):
                new = scaled_like(quantized_module(module, config), scale)
            assert isinstance(new, QuantizedModule)
            done[key] = new
            _put(model, name, new, None)

    def get_state_dict_and_metadata(self, model: Any) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
        """Of transformers: what `save_pretrained` writes. Weights that modules share are there once."""
        if any(isinstance(module, QuantizedModule) and module.part_of for module in model.modules()):
            raise LowlpValueError("tp_plan: each rank has parts of the weights; save the model from one process")
        if is_fused(model):
            raise LowlpValueError("fuse: a model with fused projections cannot be saved; load it without fuse=True")
        state: dict[str, torch.Tensor] = model.state_dict()
        first: dict[int, str] = {}
        for name, module in model.named_modules():
            if isinstance(module, QuantizedModule):
                words = module.get_buffer("packed").data_ptr()
                if words in first:
                    for part in [*module._names, "header"]:
                        state.pop(f"{name}.{part}", None)
                first.setdefault(words, name)
        return state, {METHOD: str(self.quantization_config.version)}

    def _dequantize(self, model: Any, dtype: Any = None) -> Any:
        for name, module in list(model.named_modules()):
            if isinstance(module, QuantizedModule):
                weight = module.dequantize().to(dtype or torch.get_default_dtype())
                n, k = weight.shape
                if isinstance(module, ScaledEmbedding):
                    raise LowlpValueError(f"{name}: multiplies by {module.scale:g}, which torch.nn.Embedding does not")
                if isinstance(module, Embedding):
                    dense: torch.nn.Module = torch.nn.Embedding(n, k, device="meta")
                elif module.epilogue:
                    raise LowlpValueError(
                        f"{name}: has the epilogue {module.epilogue}; load the model without fuse=True"
                    )
                else:
                    dense = torch.nn.Linear(k, n, bias=module.bias is not None, device="meta")
                    dense.bias = module.bias
                dense.weight = torch.nn.Parameter(weight, requires_grad=False)
                model.set_submodule(name, dense.eval())
        return model


class _Quantize(ConversionOps):  # type: ignore[misc]
    """Quantises a parameter as soon as it was read."""

    def __init__(self, quantizer: LowlpQuantizer) -> None:
        self.hf_quantizer = quantizer

    def convert(self, input_dict: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Puts the quantised module into the model, so that nothing is left to be set."""
        name, model = kwargs["full_layer_name"], kwargs["model"]
        value = input_dict[name] if name in input_dict else next(iter(input_dict.values()))
        self.hf_quantizer.quantise(model, name.removesuffix(".weight"), value[0] if isinstance(value, list) else value)
        if kwargs.get("missing_keys") is not None:
            kwargs["missing_keys"].discard(name)
        return {}


class _Read(ConversionOps):  # type: ignore[misc]
    """Reads a layer of a quantised checkpoint, when its smallest tensor was read."""

    def __init__(self, quantizer: LowlpQuantizer) -> None:
        self.hf_quantizer = quantizer

    def __deepcopy__(self, memo: object) -> _Read:
        # transformers copies what it does for each layer, and the quantizer holds opened files.
        return self

    def convert(self, input_dict: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Puts the module into the model, so that nothing is left to be set."""
        name, model = kwargs["full_layer_name"], kwargs["model"]
        value = next(iter(input_dict.values()))
        tensor = value[0] if isinstance(value, list) else value
        self.hf_quantizer.read(model, name.removesuffix(".waiting"), tensor.device)
        if kwargs.get("missing_keys") is not None:
            kwargs["missing_keys"].discard(name)
        return {}


def _triggers(placing: Placing, opened: checkpoints.Checkpoint | GgufModel) -> list[str]:
    """The ends of names, after those of modules, of the smallest tensor of each layer."""
    found: dict[str, None] = {}
    for base, layer in placing.layers.items():
        names = [name for name in layer.tensors if placing.renamed[name].startswith(f"{base}.")]
        if not names:
            raise CheckpointError(f"{layer.name} ({layer.format}): its tensors are not named after {base}")
        smallest = min(names, key=opened.tensor_bytes)
        found[placing.renamed[smallest].removeprefix(f"{base}.")] = None
    return list(found)


def share(model: Any, tied: Mapping[str, str]) -> None:
    """Makes modules of the weights of others: `tied` has the other's name by the module's."""
    for name, other in tied.items():
        source = model.get_submodule(other)
        if not isinstance(source, QuantizedModule):
            raise CheckpointError(f"{name}: shares the weights of {other}, which were not read")
        _share(model, name, source)


def _share(model: Any, name: str, source: QuantizedModule) -> None:
    old = model.get_submodule(name)
    takes = old.takes if isinstance(old, Waiting) else Embedding if isinstance(old, torch.nn.Embedding) else Linear
    scale = old.scale if isinstance(old, Waiting) else scale_of(old, name)
    tensors = {part: source.get_buffer(part) for part in source._names}
    found = (
        Embedding.of_tensors(tensors, source._stored_header, source.dtype)
        if takes is Embedding
        else Linear.of_tensors(tensors, source._stored_header, source.dtype)
    )
    share_part(name, getattr(old, "style", None), source, found)
    _put(model, name, scaled_like(found, scale), getattr(old, "bias", None))


def _put(model: Any, base: str, module: torch.nn.Module, bias: torch.Tensor | None) -> None:
    if bias is not None:
        module.bias = bias
    module._is_hf_initialized = True
    model.set_submodule(base, module.eval())
