"""`linear` compiled for sm_80, by `mma.sync` and `cp.async` alone, on whatever GPU there is, from its PTX."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.schedules.device import device_like
from lowlp_runtime import launch

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

ARCH = "sm_80"


def on_gpu(value: Any) -> Any:
    """Arrays as tensors, numbers as they are."""
    return torch.from_numpy(np.ascontiguousarray(value)).cuda() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("m", [1, 16, 40, 200])
@pytest.mark.parametrize("weight", ["int1", "int3", "int4", "f6e3m2", "int8", "nf4"])
def test_products_by_code_for_sm_80(weight: str, m: int) -> None:
    n, k = 1000, 1280
    rng = np.random.default_rng(m)
    matrix = rng.normal(size=(n, k)).astype(np.float32)
    if weight == "nf4":
        qw = lowlp.quantize(matrix, None, lut=lowlp.nf(4), group_size=128)
    else:
        qw = lowlp.quantize(matrix, weight, group_size=128)
    x = rng.standard_normal((m, k)).astype(np.float16)
    spec = spec_for(qw, "f16", "f16", aligned=True)
    schedule = schedule_for(spec, m, device_like(ARCH))
    binary = lowlp.compile(linear_kernel(spec, schedule), ARCH).binary
    # Machine code for sm_80 does not run on later GPUs; its PTX does.
    binary = dataclasses.replace(binary, cubins={})
    assert schedule.stages and "cp.async.c" in binary.ptx[ARCH] and "mma.sync" in binary.ptx[ARCH]
    y = torch.full((m, n), float("nan"), dtype=torch.float16, device="cuda")
    operands = {name: on_gpu(value) for name, value in {"x": x, **host_operands(qw, "f16")}.items()}
    product, size = product_of(spec, schedule), torch.cuda.get_device_properties(0).multi_processor_count
    launch(binary, {**operands, "y": y, **product.by_name(product.launch_numbers(m, k, None, size))})
    torch.cuda.synchronize()
    wanted = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T
    error = np.linalg.norm(y.double().cpu().numpy() - wanted) / np.linalg.norm(wanted)
    assert error < 2e-3
