"""`lowlp.tune_linear` on the GPU: entries with times, schedules that are taken, results as before."""

from pathlib import Path

import numpy as np
import pytest

import lowlp
from lowlp.kernels.linear import measured
from lowlp.kernels.linear.planes.choosing import choose_planes
from lowlp.kernels.linear.planes.program import PlanesSpec
from lowlp_runtime import device_name

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

N, K, M = 512, 1024, 16


def test_what_is_tuned_is_taken_and_changes_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_added", ())
    rng = np.random.default_rng(8)
    codes = rng.integers(-2, 2, (N, K)).astype(np.int8)
    qw = lowlp.QuantizedTensor(codes.view(np.uint8) & 3, dtype="int2", scales=np.ones((N, 1), np.float16))
    x = torch.from_numpy(rng.integers(-2, 2, (M, K)).astype(np.int8)).cuda()
    xq = lowlp.QuantizedActivations(x, dtype="int2", scales=torch.ones(M, 1, device="cuda"))
    wanted = x.cpu().numpy().astype(np.int64) @ codes.T.astype(np.int64)
    found = lowlp.tune_linear(
        [(N, K)], weights=["int2"], activations=["int2"], m=[M], candidates=3, out=tmp_path / "mine.json"
    )
    assert not found.left and len(found.measured) == 2
    assert all(0.5 < us < 1000 for entry in found.measured.values() for us in entry["us"].values())
    spec = PlanesSpec(N, K, "int2", "int2", scale="f16", x_scale=True, out="f16")
    assert choose_planes(spec, M, gpu=device_name()).reason.startswith("measured on ")
    for path in ("planes", "s8"):
        y = lowlp.linear(xq, qw, out_dtype="s32", path=path)
        np.testing.assert_array_equal(y.cpu().numpy(), wanted)
