"""Groups that are no whole units, on the GPU, by the kernels that `linear` chooses: rows of I give `dequantize()`.

Rounded once. A sample of all combinations, the same in each run; with LOWLP_WHOLE_MATRIX=1 all of them."""

import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from linear_matrix import Config  # noqa: E402
from test_small_groups import ALL, K  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")

MOST_F16 = 65504
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
CONFIGS = list(dict.fromkeys(case.config for case in ALL))
SAMPLE = CONFIGS if os.environ.get("LOWLP_WHOLE_MATRIX") else random.Random(40).sample(CONFIGS, 200)


@pytest.mark.parametrize("config", SAMPLE, ids=str)
def test_rows_of_the_identity(config: Config) -> None:
    index = CONFIGS.index(config)
    # With 136 rows of weights tensor copies bring scales, with 70 they do not.
    qw = config.weights(136 if index % 4 else 70, K, seed=index)
    identity = torch.eye(K, device="cuda", dtype=TYPES[config.activation])
    exact = qw.dequantize()
    # Few rows, as exact as results of f32 are promised to be; many, for which the activation type must hold weights.
    calls = [(slice(16), config.activation), (slice(40, 80), "f32")]
    if config.activation == "bf16" or np.abs(exact).max() < MOST_F16:
        calls.append((slice(K), config.activation))
    for rows, out in calls:
        y = lowlp.linear(identity[rows], qw, out_dtype=out)
        wanted = torch.from_numpy(np.ascontiguousarray(exact[:, rows].T)).to(TYPES[out])
        assert torch.equal(y.cpu(), wanted), (rows, out)
        again = lowlp.linear(identity[rows], qw, out_dtype=out)
        assert torch.equal(again, y)
