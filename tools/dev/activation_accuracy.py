"""Prints the table of docs/activations.md: what quantised activations cost in the product y = x w^T.

python tools/dev/activation_accuracy.py
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lowlp
from lowlp.cli import demo_weights

TOKENS, CHANNELS, OUTPUTS = 256, 2048, 256
KINDS: dict[str, dict[str, Any]] = {
    "int8": {},
    "f8e4m3": {},
    "f8e5m2": {},
    "int6": {},
    "int5": {},
    "int4, groups of 128": {"group_size": 128},
    "int4": {},
    "uint4, zero points": {"symmetric": False},
    "int3": {},
    "int2": {},
    "bipolar1": {},
}
Case = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32] | None]


def embeddings() -> NDArray[np.float32]:
    """The activations of `tools/dev/which_codec.py`."""
    spec = importlib.util.spec_from_file_location("which_codec", Path(__file__).with_name("which_codec.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    found: NDArray[np.float32] = module.activations().astype(np.float32)
    return found


def with_outlier_channels() -> Case:
    """Gaussian, but for 8 channels of 2048 that are 20 to 100 times as large in every token, as LLM.int8()
    (arXiv 2208.07339, section 4) and SmoothQuant (arXiv 2211.10438, section 3) find them in models from 6.7B on; and
    how SmoothQuant would divide them, with its alpha of 0.5."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((TOKENS, CHANNELS), np.float32)
    x[:, rng.choice(CHANNELS, 8, replace=False)] *= np.linspace(20, 100, 8, dtype=np.float32)
    w = rng.standard_normal((OUTPUTS, CHANNELS), np.float32) * np.float32(0.02)
    smooth = np.sqrt(np.abs(x).max(0) / np.abs(w).max(0))
    return x, w, smooth


def gated() -> Case:
    """silu(gate) * up of Gaussians, with one huge number in every fourth token, as inputs of down_proj have them
    (Massive Activations, arXiv 2402.17762)."""
    rng = np.random.default_rng(6)
    gate, up = rng.standard_normal((2, TOKENS, CHANNELS), np.float32) * np.float32(1.5)
    x = gate / (1 + np.exp(-gate)) * up
    x[::4, 77] = 300
    return x, rng.standard_normal((OUTPUTS, CHANNELS), np.float32) * np.float32(0.02), None


def error(case: Case, dtype: str, arguments: dict[str, Any], change: str) -> float:
    """The relative error of y for one way of quantising x; weights stay as they are."""
    x, w, smooth = case
    if change == "hadamard":
        arguments, w = arguments | {"hadamard": x.shape[1]}, lowlp.hadamard(w)
    if change == "smooth":
        assert smooth is not None
        arguments, w = arguments | {"smooth": smooth}, w * smooth
    quantised = lowlp.quantize_activations(x, dtype, **arguments).dequantize().astype(np.float64)
    y = case[0].astype(np.float64) @ case[1].T.astype(np.float64)
    return float(np.linalg.norm(quantised @ w.T.astype(np.float64) - y) / np.linalg.norm(y))


def table(kinds: list[str] | None = None) -> list[str]:
    """The lines of the table, or those of some kinds."""
    w, _ = demo_weights.load_demo_weight()
    real, outliers, products = (embeddings(), w, None), with_outlier_channels(), gated()
    lines = [
        "| type | MiniLM | rotated | outlier channels | smoothed | rotated | gated | rotated |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    columns = [(real, ""), (real, "hadamard"), (outliers, ""), (outliers, "smooth"), (outliers, "hadamard")]
    columns += [(products, ""), (products, "hadamard")]
    for name in kinds or list(KINDS):
        dtype = name.partition(",")[0]
        numbers = [f"{error(case, dtype, KINDS[name], change):.3f}" for case, change in columns]
        lines.append(f"| {name} | {' | '.join(numbers)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
