"""Perplexity of a real model by codec: the tables of docs/models.md.

    python benchmarks/models.py model.gguf --out benchmarks/results/models.json        # hours on few cores; resumes
    python benchmarks/models.py model.gguf --out ... --only 'int4|nf4' --only feedback --tokens 512
    python benchmarks/models.py --tables benchmarks/results/models.json                # prints the tables

The weights of all layers, without embedding and head, are quantised anew from what the GGUF file's blocks mean, in
float32. Modules are those of `lowlp.torch`, on the CPU or a GPU. The text is the documentation of Python's topics,
`pydoc_data.topics`, from its beginning; learned scales and calibration see its end. Needs the extra `transformers`.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import platform
import pydoc_data.topics
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from model_cases import CACHES, WINDOW, WINDOWS, cases, of_cache, perplexity, quantised

import lowlp
import lowlp.transformers

CACHE = "keys and values "
"""What names of cases of caches begin with."""


def text() -> str:
    """English that every Python brings along."""
    topics = pydoc_data.topics.topics
    return "\n\n".join(topics[name] for name in sorted(topics))


def dense_of(model: Any) -> Any:
    """The model with ordinary modules, whose weights are what the quantised ones mean."""
    config = model.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    dense = type(model)(config).to(model.dtype).eval()
    state = {name: tensor for name, tensor in model.state_dict().items() if name in dense.state_dict()}
    dense.load_state_dict(state, strict=False)
    for name, module in model.named_modules():
        if isinstance(module, lowlp.torch.QuantizedModule):
            dense.get_submodule(name).weight.data = module.dequantize().to(model.dtype)
    dense.tie_weights()
    return dense


def difference(model: Any, dense: Any, ids: torch.Tensor) -> dict[str, float]:
    """Of teacher-forced logits: the relative error, and of how many tokens the best one differs where the margin of the
    two best is larger than the largest error."""
    with torch.no_grad():
        found, wanted = model(ids).logits.float(), dense(ids).logits.float()
    error = (found - wanted).abs().amax(-1)
    best = wanted.topk(2, dim=-1)
    clear = best.values[..., 0] - best.values[..., 1] > 2 * error
    wrong = (found.argmax(-1) != best.indices[..., 0]) & clear
    return {
        "relative error of logits": float((found - wanted).norm() / wanted.norm()),
        "tokens": int(ids.numel()),
        "clear": int(clear.sum()),
        "clear and wrong": int(wrong.sum()),
    }


class Results:
    """What was measured, written after each."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path = path
        self.fields: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"cases": {}}
        before = self.fields.setdefault("about", about)
        if {**before, "threads": 0} != {**about, "threads": 0}:
            raise SystemExit(f"{path}: is of another model, text or machine: {before}")

    def run(self, name: str, measure: Callable[[], dict[str, Any]]) -> None:
        """Measures and writes, unless that was done."""
        if name in self.fields["cases"]:
            return
        start = time.monotonic()
        found = measure()
        self.fields["cases"][name] = found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.fields, indent=1) + "\n")
        print(f"{name:32} {json.dumps(found)}  {time.monotonic() - start:.0f} s", flush=True)


def tables(fields: dict[str, Any]) -> str:
    """The results as Markdown."""
    about, found = fields["about"], fields["cases"]
    base = found["file"]["perplexity"]
    lines = [
        f"{about['model']}, {about['tokens']} tokens of {about['text']}: perplexity {base:.2f} with the file's weights",
        "",
    ]
    lines += ["| Weights of all layers | Bits a weight | Perplexity | Against the file |", "|---|---|---|---|"]
    for name, result in found.items():
        if "bits" in result:
            ratio = result["perplexity"] / base
            lines.append(f"| {name} | {result['bits']:.2f} | {result['perplexity']:.2f} | {ratio:.3f} |")
    lines += ["", "| Keys and values | Perplexity | Against exact ones |", "|---|---|---|"]
    for name, result in found.items():
        if name.startswith(CACHE):
            kind, number = name.removeprefix(CACHE), result["perplexity"]
            lines.append(f"| {kind} | {number:.2f} | {number / base:.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("model", nargs="?", type=Path, help="a GGUF file")
    parser.add_argument("--out", type=Path, default=Path("models.json"))
    parser.add_argument(
        "--only",
        action="append",
        help="regular expression of cases; given several times, they are measured in this order",
    )
    parser.add_argument("--tokens", type=int, default=2 * WINDOW)
    parser.add_argument(
        "--tokenizer", type=Path, help="a folder with the tokenizer; else the file's, which takes a minute"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tables", type=Path, help="results, to print as tables")
    given = parser.parse_args()
    if given.tables:
        print(tables(json.loads(given.tables.read_text())))
        return
    if given.model is None:
        parser.error("name a GGUF file")
    from transformers import AutoTokenizer

    source = {"gguf_file": given.model.name} if given.tokenizer is None else {}
    tokenizer = AutoTokenizer.from_pretrained(given.tokenizer or given.model.parent, **source)
    # As many characters as are surely enough for the windows.
    ids = torch.tensor(tokenizer(text()[: 8 * given.tokens])["input_ids"][: given.tokens]).view(-1, WINDOW)
    last_tokens = max(WINDOWS.values()) * WINDOW
    last = tokenizer(text()[-8 * last_tokens :], add_special_tokens=False)["input_ids"][-last_tokens:]
    calibration = torch.tensor(last).view(-1, WINDOW).to(given.device)
    packed = lowlp.transformers.from_gguf(given.model, dtype=torch.float32, device_map=given.device)
    about = {
        "model": given.model.name,
        "tokens": ids.numel(),
        "text": f"pydoc_data.topics of Python {platform.python_version()}",
        "sha256 of tokens": hashlib.sha256(ids.numpy().tobytes()).hexdigest()[:16],
        "window": WINDOW,
        "device": torch.cuda.get_device_name() if given.device != "cpu" else "CPU",
        "torch": torch.__version__,
    }
    results = Results(given.out, about)
    ids = ids.to(given.device)
    results.run("packed", lambda: {"perplexity": perplexity(packed, ids)})
    dense = dense_of(packed).to(given.device)
    results.run("file", lambda: {"perplexity": perplexity(dense, ids)})
    results.run("logits", lambda: difference(packed, dense, ids[:1, :128]))

    def in_bfloat16() -> dict[str, Any]:
        return difference(packed.to(torch.bfloat16), copy.deepcopy(dense).to(torch.bfloat16), ids[:1, :128])

    results.run("logits in bf16", in_bfloat16)
    for wanted in given.only or [""]:
        for name, options in cases():
            if re.search(wanted, name):
                results.run(name, lambda options=options: quantised(dense, ids, options, calibration))  # type: ignore[misc]
        for kind in CACHES:
            if re.search(wanted, CACHE + kind):
                results.run(CACHE + kind, lambda kind=kind: of_cache(dense, ids, kind, calibration))  # type: ignore[misc]
    print(tables(results.fields))


if __name__ == "__main__":
    main()
