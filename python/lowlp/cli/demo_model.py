"""`lowlp demo --model PATH`: a real model, quantised or read quantised, that writes text."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowlp_runtime.errors import LowlpFileNotFoundError, LowlpValueError

from . import output
from .device import Device, choose_device

if TYPE_CHECKING:
    from .demo import Progress

STEPS = 4
PROMPT = "The capital of France is"
_ROWS_OF_A_STEP = 1


class _Clock:
    """A streamer of transformers that prints text as it comes, and notes when each token came."""

    def __init__(self, tokenizer: Any) -> None:
        from transformers import TextStreamer

        self._printed = TextStreamer(tokenizer, skip_special_tokens=True)
        self.times: list[float] = []

    def put(self, value: Any) -> None:
        """Takes the prompt, and then token after token."""
        self.times.append(time.perf_counter())
        self._printed.put(value)

    def end(self) -> None:
        """Prints what is left."""
        self._printed.end()


def run_model(options: argparse.Namespace, progress: Progress) -> int:
    """Loads the model, generates text, and prints what it takes. Raises `LowlpError` for what cannot be loaded."""
    path = Path(options.model)
    if not path.exists():
        raise LowlpFileNotFoundError(2, "no such file or folder", options.model)
    # The error of the first says what to install.
    from lowlp import transformers as _  # noqa: F401
    from lowlp.torch import warm_up

    device = choose_device(options.device)
    with progress.step("reading the tokenizer"):
        tokenizer = _tokenizer(path)
    with progress.step("loading the model"):
        model = _model(path, options, device)
    inputs = tokenizer(options.prompt, return_tensors="pt").to(model.device)
    prompt = inputs["input_ids"].shape[-1]
    with progress.step("compiling kernels" if device.is_cuda else "looking for kernels, of which a CPU needs none"):
        if device.is_cuda:
            warm_up(model, rows=[_ROWS_OF_A_STEP, prompt], progress=False)
    clock = _Clock(tokenizer)
    with progress.step(f"generating {options.tokens} tokens on {'the CPU' if not device.is_cuda else device.label}"):
        start = time.perf_counter()
        print()
        made = model.generate(**inputs, max_new_tokens=options.tokens, do_sample=False, streamer=clock)
    count = made.shape[-1] - prompt
    print("\n" + output.aligned([*_facts(model), *_times(clock.times, start, count)]))
    return 0


def _tokenizer(path: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        if path.is_dir():
            return AutoTokenizer.from_pretrained(path)
        return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    except (OSError, ValueError, ImportError) as error:
        raise LowlpValueError(f"--model: no tokenizer in {path}: {error}") from error


def _model(path: Path, options: argparse.Namespace, device: Device) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from lowlp.transformers import LowlpConfig, from_gguf, from_pretrained

    # A CPU multiplies in float32 anyway.
    common = {"dtype": torch.bfloat16 if device.is_cuda else torch.float32}
    if device.is_cuda:
        common["device_map"] = "cuda"
    if path.is_file():
        return from_gguf(path, **common)
    try:
        config = AutoConfig.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise LowlpValueError(f"--model: no model in {path}: {error}") from error
    if getattr(config, "quantization_config", None) is not None:
        return from_pretrained(path, **common)
    group = None if options.group_size == -1 else options.group_size
    given = LowlpConfig(options.dtype, group_size=group, zero_point=options.zero_point)
    return AutoModelForCausalLM.from_pretrained(path, quantization_config=given, **common)


def _facts(model: Any) -> list[tuple[str, str]]:
    from lowlp.torch import QuantizedModule

    modules = [module for module in model.modules() if isinstance(module, QuantizedModule)]
    # Weights that modules share count once.
    nbytes = {module.get_buffer("packed").data_ptr(): module.weight_bytes for module in modules}
    codecs = sorted({str(module.codec) for module in modules})
    return [
        ("model", f"{type(model).__name__}, {len(modules)} quantised modules"),
        ("codecs", ", ".join(codecs)),
        ("their weights", f"{output.count(sum(nbytes.values()))} bytes"),
    ]


def _times(times: list[float], start: float, count: int) -> list[tuple[str, str]]:
    """The first is that of the prompt, the second of the first token."""
    found = [("tokens", str(count))]
    if len(times) > 1:
        found.append(("to the first token", f"{times[1] - start:.2f} s"))
    if len(times) > 2:
        found.append(("tokens per second", f"{(len(times) - 2) / (times[-1] - times[1]):.1f} after it"))
    return found
