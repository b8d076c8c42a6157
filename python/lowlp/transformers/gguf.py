"""`lowlp.transformers.from_gguf`: a GGUF file as a model of transformers, with its blocks' codes kept packed.

transformers knows how tensors of GGUF are called in its models, and what llama.cpp did to them on the way: rows of q
and k in another order, norms with 1 added. That is asked of it for each tensor by itself. What moves rows moves blocks
here; what changes numbers may do so where they are not quantised.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map

from lowlp import checkpoints
from lowlp.checkpoints import Layer
from lowlp.checkpoints.gguf import with_rows
from lowlp.checkpoints.own import METHOD
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray
from lowlp_runtime.errors import LowlpValueError

FILE: Final = "gguf_file"
"""In the `source` of a `LowlpConfig`: the path."""
_SIGN: Final = "lowlp_layer"
"""Of a quantised layer transformers gets this tensor, without elements, and is told by it to read the layer."""
_ROPE_FACTORS: Final = "rope_freqs.weight"


class GgufModel:
    """A GGUF file with the names, and orders of rows, that a model of transformers has.

    arrays  names of tensors that are not quantised
    layers  quantised weights by name
    """

    def __init__(self, path: Path, model: Any) -> None:
        opened = checkpoints.open(path)
        if opened.format != "gguf":
            raise CheckpointError(f"{path}: expected a GGUF file, got a checkpoint of {opened.format or 'floats'}")
        self.path = path
        self._opened = opened
        config = model.config.get_text_config()
        architecture = str(opened.settings.get("general.architecture", ""))
        self._processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=config.to_dict())
        names = get_gguf_hf_weights_map(model, self._processor)
        self._tensors: dict[str, str] = {}
        for name in opened.arrays:
            if name != _ROPE_FACTORS:
                self._tensors[names.get(name, name)] = name
        self.arrays = tuple(self._tensors)
        self.layers: dict[str, Layer] = {}
        self._stored: dict[str, int] = {}
        for name, layer in opened.layers.items():
            new = names.get(name, name)
            self._stored[new] = opened.stored_bytes(name)
            sign = f"{new.removesuffix('.weight')}.{_SIGN}"
            self.layers[new] = replace(self._in_order(layer), name=new, tensors=(sign,))

    def stored_bytes(self, name: str) -> int:
        """Bytes in the file of a layer."""
        return self._stored[name]

    def tensor_bytes(self, tensor: str) -> int:
        """Bytes of what stands for a layer."""
        return 0

    def state(self) -> dict[str, torch.Tensor]:
        """What transformers loads: arrays as the model has them, and a sign for each layer."""
        state = {}
        for new, name in self._tensors.items():
            array = np.asarray(self._opened[name])
            if array.dtype.name == "bfloat16":
                array = array.astype(np.float32)
            state[new] = torch.from_numpy(np.array(self._processed(array, name)))
        return state | {layer.tensors[0]: torch.empty(0) for layer in self.layers.values()}

    @property
    def rope_factors(self) -> torch.Tensor | None:
        """By which the frequencies of positions are divided, [head_dim / 2]; None: by nothing."""
        if _ROPE_FACTORS not in self._opened.arrays:
            return None
        return torch.from_numpy(np.array(self._opened[_ROPE_FACTORS], np.float32))

    def _in_order(self, layer: Layer) -> Layer:
        """The layer with its rows in the model's order."""
        if len(layer.shape) != 2:
            return layer
        numbers = np.arange(layer.shape[0], dtype=np.float64)[:, None]
        found = self._processed(numbers, layer.name)
        if found.shape != numbers.shape or not np.array_equal(np.sort(found, axis=0), numbers):
            raise CheckpointError(
                f"{layer.name} ({layer.format}): transformers changes its numbers on loading, and blocks stay as they "
                "are"
            )
        return layer if np.array_equal(found, numbers) else with_rows(layer, found[:, 0].astype(np.int64))

    def _processed(self, array: AnyArray, name: str) -> AnyArray:
        found: AnyArray = self._processor.process(
            weights=array, name=name, tensor_key_mapping={}, parsed_parameters={"tensors": {}}
        ).weights
        return found


def from_gguf(path: str | os.PathLike[str], *, model_class: Any = AutoModelForCausalLM, **kwargs: Any) -> Any:
    """The model of a GGUF file, or of the first of several, with weights in the codecs of its blocks.

        model = lowlp.transformers.from_gguf("model-Q4_K_M.gguf", dtype=torch.bfloat16, device_map="cuda")
        tokenizer = AutoTokenizer.from_pretrained("folder", gguf_file="model-Q4_K_M.gguf")

    model_class  whose `from_pretrained` is called
    kwargs       for that: dtype (of what is not quantised, and of activations; bfloat16 where it is not given),
                 device_map, config in place of the one that transformers finds in the file; and for `LowlpConfig`:
                 fuse, strict

    A head without a tensor of its own shares the embedding's weights. Raises `CheckpointError` for files that cannot be
    read and for tensors that are missing or left over, `LowlpValueError` for architectures that transformers does not
    know.
    """
    place = Path(path)
    opened = checkpoints.open(place)
    if place.is_dir():
        raise LowlpValueError(f"path: expected a GGUF file, got the folder {place}")
    if opened.format != "gguf":
        raise CheckpointError(f"{place}: is no GGUF file; lowlp.transformers.from_pretrained reads other formats")
    options = {name: kwargs.pop(name) for name in ("fuse", "strict") if name in kwargs}
    config = kwargs.pop("config", None)
    if config is None:
        try:
            config = AutoConfig.from_pretrained(place.parent, gguf_file=place.name)
        except (ValueError, KeyError, NotImplementedError) as error:
            name = opened.settings.get("general.architecture")
            raise LowlpValueError(f"path: transformers cannot read the architecture {name!r:.40}: {error}") from error
    with torch.device("meta"):
        skeleton = model_class.from_config(config)
    found = GgufModel(place, skeleton)
    config.quantization_config = {"quant_method": METHOD, "source": {FILE: os.fspath(place)}, **options}
    kwargs.setdefault("dtype", torch.bfloat16)
    model = type(skeleton).from_pretrained(None, config=config, state_dict=found.state(), **kwargs)
    if found.rope_factors is not None:
        _divide_frequencies(model, found.rope_factors)
    return model


def _divide_frequencies(model: Any, factors: torch.Tensor) -> None:
    """What config.json says as `rope_scaling` of the type llama3 is a tensor in GGUF."""
    done = False
    for module in model.modules():
        for name in ("inv_freq", "original_inv_freq"):
            held = getattr(module, name, None)
            if isinstance(held, torch.Tensor) and held.shape == factors.shape:
                setattr(module, name, held / factors.to(held.device))
                done = True
    if not done:
        raise CheckpointError(
            f"{_ROPE_FACTORS}: the model has no frequencies of {tuple(factors.shape)} to divide by it"
        )
