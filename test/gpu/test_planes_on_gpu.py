"""Products of planes on the GPU: exact, by both kernels and every kind of codes; repeatable, and in graphs.

A seeded sample of pairs of widths and kinds; all of them with LOWLP_WHOLE_MATRIX=1, and with
LOWLP_WHOLE_MATRIX=covering as many as cover all pairs of widths and of kinds."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from covering import drawn  # noqa: E402
from plane_products import Operands, kernel_of, wrapped  # noqa: E402
from test_planes import ALL, rounded  # noqa: E402

from lowlp.compiler.architectures import current_arch  # noqa: E402
from lowlp.compiler.targets import target  # noqa: E402
from lowlp.kernels.linear.planes.program import PlanesSpec  # noqa: E402
from lowlp.kernels.linear.planes.shapes import choose_schedule  # noqa: E402

SAMPLE = drawn(ALL, 24, 60)


def launched(spec: PlanesSpec, operands: Operands, m: int, bias: Any = None) -> Any:
    """y on the GPU, by the schedule that is chosen for m rows."""
    found = target(current_arch())
    has_warpgroups = bool(found.instructions["wgmma.mma_async.m64nNk256 b1 and.popc"])
    schedule = choose_schedule(spec, m, has_warpgroups=has_warpgroups, shared_limit=found.max_shared_bytes_per_block)
    kernel = lowlp.compile(kernel_of(spec, schedule), current_arch())
    arguments = {name: torch.from_numpy(np.array(part)).cuda() for name, part in operands.arguments(spec, bias).items()}
    out = {"int32": torch.int32, "f16": torch.float16, "f32": torch.float32}[spec.out]
    y = torch.full((m, spec.n), -77, dtype=out, device="cuda")
    kernel(**arguments, y=y, m=m)
    torch.cuda.synchronize()
    return y.cpu().numpy()


@pytest.mark.parametrize(("weight", "activation"), SAMPLE)
def test_sums_are_exact(weight: str, activation: str) -> None:
    rng = np.random.default_rng(len(weight) * 100 + len(activation))
    spec = PlanesSpec(1000, 1160, weight, activation)
    for m, fills in ((1, ("random", "random")), (17, ("most", "alternating")), (300, ("random", "random"))):
        operands = Operands.make(rng, spec, m, fills)
        np.testing.assert_array_equal(launched(spec, operands, m), wrapped(operands.acc))


def test_long_rows_wrap_on_the_way() -> None:
    spec = PlanesSpec(64, 66304, "int8", "int8")
    operands = Operands.make(np.random.default_rng(4), spec, 3, ("most", "most"))
    np.testing.assert_array_equal(launched(spec, operands, 3), operands.acc)


@pytest.mark.parametrize("m", [1, 16, 64, 256, 1024])
def test_results_are_numpys_to_the_bit_and_the_same_every_time(m: int) -> None:
    rng = np.random.default_rng(3)
    spec = PlanesSpec(4096, 4096, "int2", "uint2", x_zeros=True, scale="f16", x_scale=True, bias="f32", out="f16")
    operands, bias = Operands.make(rng, spec, m), rng.normal(size=4096).astype(np.float32)
    found = [launched(spec, operands, m, bias) for _ in range(3)]
    np.testing.assert_array_equal(found[0], rounded(operands.acc, spec, operands, bias).astype(np.float16))
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()


@pytest.mark.filterwarnings("ignore::lowlp.errors.RepackWarning")
@pytest.mark.parametrize("m", [1, 5, 64, 300])
def test_linear_gives_the_same_by_planes_and_by_bytes(m: int) -> None:
    rng = np.random.default_rng(9)
    spec = PlanesSpec(520, 1000, "uint2", "bipolar2", zeros=True, scale="f16", out="f32")
    operands = Operands.make(rng, spec, m)
    codes, scales = (torch.from_numpy(np.array(part)).cuda() for part in (operands.x.codes, operands.x.scales))
    xq = lowlp.QuantizedActivations(codes, dtype="bipolar2", scales=scales)
    bias = torch.randn(520, device="cuda", dtype=torch.bfloat16)
    residual = torch.randn(m, 520, device="cuda")
    parts = {"bias": bias, "residual": residual, "epilogue": "relu", "out_dtype": "f32"}
    by_planes, by_bytes = (lowlp.linear(xq, operands.weights, path=path, **parts) for path in ("planes", "s8"))
    assert torch.equal(by_planes, by_bytes)
    sums = lowlp.linear(xq, operands.weights, out_dtype="s32")
    np.testing.assert_array_equal(sums.cpu().numpy(), operands.acc)


def test_a_graph_replays_products_of_planes() -> None:
    spec = PlanesSpec(512, 512, "int2", "int2", scale="f16", out="f16")
    operands = Operands.make(np.random.default_rng(10), spec, 16)
    codes, scales = (torch.from_numpy(np.array(part)).cuda() for part in (operands.x.codes, operands.x.scales))
    xq = lowlp.QuantizedActivations(codes, dtype="int2", scales=scales)
    wanted = lowlp.linear(xq, operands.weights, path="planes")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = lowlp.linear(xq, operands.weights, path="planes")
    y.zero_()
    graph.replay()
    assert torch.equal(y, wanted)
