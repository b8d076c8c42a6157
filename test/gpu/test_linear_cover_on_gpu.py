"""The cases of `test_linear_cover.py` on a GPU, by the same forms of kernels: rows of I give `dequantize()` to the bit,
and random products what float64 gives.

A sample; `LOWLP_WHOLE_MATRIX=1 pytest test/gpu/test_linear_cover_on_gpu.py -n 16` goes through all.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from linear_cover import CASES, Case, numbers_of, without_epilogue  # noqa: E402
from linear_matrix import ERROR_LIMITS, TYPES  # noqa: E402

from lowlp.compiler.architectures import current_arch  # noqa: E402
from lowlp.kernels.linear.spec import LinearSpec  # noqa: E402
from lowlp.ops.linear_kernels import gpu_kernel  # noqa: E402
from lowlp.ops.linear_launch import device_operands  # noqa: E402
from lowlp_runtime import launch  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning"),
    pytest.mark.skipif(current_arch() != "sm_90a", reason="forms are drawn for sm_90a"),
]

MOST_F16 = 65504
ARCH, DEVICE = current_arch(), torch.device("cuda")
TORCH_TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


@pytest.mark.sampled(150)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_identity_and_random_products(case: Case) -> None:
    qw = case.weights()
    form, spec, schedule = case.kernel(qw)

    def run(spec: LinearSpec, given: dict[str, Any]) -> Any:
        kernel = gpu_kernel(replace(spec, dependent_launch=schedule.stages > 0), schedule, ARCH)
        operands = device_operands(qw, spec.activation, DEVICE, spec.epilogue, schedule)
        y = torch.full((case.m, spec.columns_of_y), float("nan"), device=DEVICE, dtype=TORCH_TYPES[spec.out])
        tensors = {name: as_tensor(part) for name, part in given.items()}
        launch(kernel.binary, {**operands, **tensors, "y": y, **numbers_of(spec, schedule, case)})
        return y.cpu()

    plain, x = without_epilogue(spec), case.identity()
    y = run(plain, {"x": x, **case.zeros(plain)})
    wanted = as_tensor(case.shown(qw, x, plain)).cpu()
    assert torch.equal(y, wanted), f"{form} {schedule}"

    given = case.random_operands(qw)
    error = case.error(run(spec, given).float().numpy(), qw, **given)
    assert error <= ERROR_LIMITS[case.config.activation], f"{form} {schedule}"


def as_tensor(part: Any) -> Any:
    """On the GPU, of the same type."""
    kind = next(kind for kind in TYPES if part.dtype == TYPES[kind])
    return torch.from_numpy(part.astype(np.float32)).to(DEVICE, TORCH_TYPES[kind])


@pytest.mark.parametrize("case", CASES[::25], ids=str)
def test_what_linear_chooses(case: Case) -> None:
    # With few rows, and with as many as the activation type must hold weights for.
    k = 384
    qw = case.config.weights(136, k, seed=case.number)
    identity = torch.eye(k, device=DEVICE, dtype=TORCH_TYPES[case.config.activation])
    exact = qw.dequantize()
    calls = [(slice(16), case.config.activation), (slice(40, 80), "f32")]
    if case.config.activation == "bf16" or np.abs(exact).max() < MOST_F16:
        calls.append((slice(k), case.config.activation))
    for rows, out in calls:
        y = lowlp.linear(identity[rows], qw, out_dtype=out)
        wanted = torch.from_numpy(np.ascontiguousarray(exact[:, rows].T)).to(TORCH_TYPES[out])
        assert torch.equal(y.cpu(), wanted), (rows, out)
        assert torch.equal(lowlp.linear(identity[rows], qw, out_dtype=out), y)
