"""Perplexity of checkpoints made by the original tools, by these tools and by lowlp: a table of docs/models.md.

    python benchmarks/original_tools.py folder --work /tmp/made --out tools.json --only 'gptq|bitsandbytes'

`folder` has a model of transformers with its tokenizer. Each tool quantises it on the CPU as it does by itself, saves
it, and computes the perplexity of the text of models.py; `lowlp.transformers.from_pretrained` reads the same folder.
Needs what tools/dev/test-checkpoints.sh installs.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Its pool of threads does not start with the one worker that it takes on two processors.
os.environ.setdefault("GPTQMODEL_CPU_WORKERS", "2")

import torch
from model_cases import perplexity
from models import text
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, CompressedTensorsConfig

import lowlp.transformers

GROUP = 64
F32 = {"dtype": torch.float32, "device_map": "cpu"}


def by_gptqmodel(method: str) -> Callable[[Path, Path, torch.Tensor], float]:
    """GPTQ or AWQ of 4 bits, calibrated on 16 pieces of the text's second half."""

    def made(source: Path, folder: Path, ids: torch.Tensor) -> float:
        from gptqmodel import BACKEND, GPTQModel, QuantizeConfig

        if not (folder / "model.safetensors").exists():
            named = {"quant_method": "awq", "format": "gemm"} if method == "awq" else {}
            config = QuantizeConfig(bits=4, group_size=GROUP, **named)
            is_gemma = AutoConfig.from_pretrained(source).model_type.startswith("gemma3")
            whole = text()
            starts = [len(whole) // 2 + i * len(whole) // 32 for i in range(16)]
            # AWQ packs weights of halves alone; float16 is too narrow for what Gemma computes.
            halves = torch.bfloat16 if is_gemma else torch.float16
            kind = halves if method == "awq" else torch.float32
            model = GPTQModel.load(str(source), config, device="cpu", dtype=kind)
            if is_gemma:
                _name_kind_of_layer()
            model.quantize([whole[start : start + 1500] for start in starts], batch_size=1)
            model.save(str(folder))
            AutoTokenizer.from_pretrained(source).save_pretrained(folder)
        backend = BACKEND.AWQ_TORCH if method == "awq" else BACKEND.GPTQ_TORCH
        model = GPTQModel.load(str(folder), device="cpu", dtype=torch.float16, backend=backend).model
        # Its modules compute in halves alone, which Gemma does not survive: the weights that they make, in float32.
        for name, module in list(model.named_modules()):
            if hasattr(module, "dequantize_weight") or hasattr(module, "_dequantize_weight_for_inference"):
                linear = torch.nn.Linear(module.in_features, module.out_features, bias=module.bias is not None)
                linear.weight.data = (
                    module.dequantize_weight()
                    if method == "gptq"
                    else module._dequantize_weight_for_inference(torch.empty(0), dtype=torch.float16)
                ).T.float()
                if module.bias is not None:
                    linear.bias.data = module.bias.float()
                model.set_submodule(name, linear)
        return perplexity(model.float(), ids)

    return made


def _name_kind_of_layer() -> None:
    """gptqmodel's AWQ asks Gemma 3 for the positions of no kind of layer: it gets those of most layers."""
    from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding as Rotary

    exact = Rotary.forward
    Rotary.forward = lambda self, x, ids, layer_type=None: exact(self, x, ids, layer_type or "sliding_attention")


def by_bitsandbytes(source: Path, folder: Path, ids: torch.Tensor) -> float:
    """NF4 with scales that are quantised too."""
    config = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.float32,
    )
    model = AutoModelForCausalLM.from_pretrained(source, quantization_config=config, **F32)
    model.save_pretrained(folder)
    return perplexity(model, ids)


def by_hqq(source: Path, folder: Path, ids: torch.Tensor) -> float:
    """HQQ of 4 bits, groups along K; its modules' own state."""
    from hqq.core.quantize import BaseQuantizeConfig, HQQLinear

    model = AutoModelForCausalLM.from_pretrained(source, **F32).eval()
    model.save_pretrained(folder)
    state = load_file(folder / "model.safetensors")
    for name, module in list(model.model.layers.named_modules()):
        if isinstance(module, torch.nn.Linear):
            config = BaseQuantizeConfig(nbits=4, group_size=GROUP, axis=1)
            layer = HQQLinear(module, config, compute_dtype=torch.float32, device="cpu", del_orig=False)
            model.model.layers.set_submodule(name, layer)
            state.pop(f"model.layers.{name}.weight")
            encoded = layer.state_dict()
            encoded = {end: x for end, x in encoded.items() if end != "bias" or module.bias is not None}
            state |= {f"model.layers.{name}.{end}": x.clone().contiguous() for end, x in encoded.items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    _say(folder, {"quant_method": "hqq"})
    return perplexity(model, ids)


def by_compressed_tensors(scheme: str) -> Callable[[Path, Path, torch.Tensor], float]:
    """Weights of a scheme packed by compressed-tensors, whose transformers loads them: 'W4A16', integers in groups, or
    'NVFP4A16'."""

    def made(source: Path, folder: Path, ids: torch.Tensor) -> float:
        from compressed_tensors.compressors import ModelCompressor
        from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config, preset_name_to_scheme
        from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam

        model = AutoModelForCausalLM.from_pretrained(source, **F32).eval()
        chosen = preset_name_to_scheme(scheme, ["Linear"])
        is_nvfp4 = scheme.startswith("NVFP4")
        if not is_nvfp4:
            chosen.weights.group_size = GROUP
        apply_quantization_config(model, QuantizationConfig(config_groups={"group_0": chosen}, ignore=["lm_head"]))
        for module in model.modules():
            if hasattr(module, "weight_scale"):
                least, most = module.weight.unflatten(1, (-1, chosen.weights.group_size)).detach().aminmax(dim=-1)
                whole = generate_gparam(least.min(), most.max()) if is_nvfp4 else None
                module.weight_scale.data = calculate_qparams(least, most, chosen.weights, whole)[0]
                if whole is not None:
                    module.weight_global_scale.data = whole
        kind = "nvfp4-pack-quantized" if is_nvfp4 else "pack-quantized"
        compressor = ModelCompressor.from_pretrained_model(model, quantization_format=kind)
        compressor.compress_model(model)
        model.save_pretrained(folder)
        compressor.update_config(folder)
        # It makes weights of NVFP4 in bfloat16, which its own modules in float32 do not multiply.
        dense = CompressedTensorsConfig(run_compressed=False)
        loaded = AutoModelForCausalLM.from_pretrained(folder, quantization_config=dense if is_nvfp4 else None, **F32)
        return perplexity(loaded.float().eval(), ids)

    return made


def _say(folder: Path, quantization: dict[str, Any]) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": quantization}))


TOOLS: dict[str, Callable[[Path, Path, torch.Tensor], float]] = {
    "gptq by gptqmodel": by_gptqmodel("gptq"),
    "awq by gptqmodel": by_gptqmodel("awq"),
    "nf4 by bitsandbytes": by_bitsandbytes,
    "4 bits by hqq": by_hqq,
    "int4 by compressed-tensors": by_compressed_tensors("W4A16"),
    "nvfp4 by compressed-tensors": by_compressed_tensors("NVFP4A16"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("model", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="a folder for the checkpoints")
    parser.add_argument("--out", type=Path, default=Path("tools.json"))
    parser.add_argument("--only", default="", help="regular expression of tools")
    parser.add_argument("--tokens", type=int, default=512)
    given = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(given.model)
    ids = torch.tensor(tokenizer(text()[: 8 * given.tokens])["input_ids"][: given.tokens]).view(1, -1)
    models = json.loads(given.out.read_text()) if given.out.exists() else {}
    found = models.setdefault(given.model.name, {})
    for name, tool in TOOLS.items():
        if not re.search(given.only, name) or "lowlp" in found.get(name, {}):
            continue
        folder = given.work / re.sub(r"\W+", "-", name)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            theirs = tool(given.model, folder, ids)
            gc.collect()
            model = lowlp.transformers.from_pretrained(folder, dtype=torch.float32)
            modules = sum(isinstance(module, lowlp.torch.Linear) for module in model.modules())
            ours = perplexity(model, ids)
            found[name] = {"tool": theirs, "lowlp": ours, "difference": ours / theirs - 1, "modules": modules}
        except Exception as error:  # a tool that does not run here; the others go on
            found[name] = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(f"{name:28} {json.dumps(found[name])}", flush=True)
        given.out.write_text(json.dumps(models, indent=1) + "\n")


if __name__ == "__main__":
    main()
