"""`lowlp.torch.Experts` on the CPU, against a loop over tokens in float64."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpError

torch = pytest.importorskip("torch")
import lowlp.torch  # noqa: E402

E, H, INNER, TOP = 6, 64, 32, 2
RANDOM = np.random.default_rng(68)


def weights(n: int, k: int) -> lowlp.QuantizedTensor:
    return lowlp.quantize(RANDOM.normal(size=(E, n, k)).astype(np.float32) / 8, "int6", group_size=32)


@pytest.mark.parametrize("activation", ["silu_mul", "gpt_oss"])
def test_tokens_meet_their_experts(activation: str) -> None:
    gate_up, down = weights(2 * INNER, H), weights(H, INNER)
    biases = [torch.from_numpy(RANDOM.normal(size=shape)).float() for shape in ((E, 2 * INNER), (E, H))]
    module = lowlp.torch.Experts(
        gate_up, down, activation=activation, gate_up_bias=biases[0], down_bias=biases[1], dtype=torch.float32
    )
    x = torch.randn(3, 5, H)
    ids = torch.from_numpy(RANDOM.integers(-1, E + 1, size=(3, 5, TOP)))
    mixed = torch.rand(3, 5, TOP)
    wanted = torch.zeros(3, 5, H, dtype=torch.float64)
    for at in np.ndindex(3, 5, TOP):
        e = int(ids[at])
        if not 0 <= e < E:
            continue
        y = torch.from_numpy(gate_up[e].dequantize()).double() @ x[at[:2]].double() + biases[0][e].double()
        gate, up = y[:INNER], y[INNER:]
        if activation == "silu_mul":
            y = gate * torch.sigmoid(gate) * up
        else:
            gate, up = gate.clamp(max=7), up.clamp(-7, 7)
            y = (up + 1) * gate * torch.sigmoid(1.702 * gate)
        y = torch.from_numpy(down[e].dequantize()).double() @ y + biases[1][e].double()
        wanted[at[:2]] += mixed[at].double() * y
    for form in (module, copy.deepcopy(module)):
        result = form(x, ids, mixed)
        assert (result.double() - wanted).norm() < 1e-5 * wanted.norm()


def test_rows_of_gate_and_up_by_turns() -> None:
    shape = (E, 2 * INNER, H)
    codes, zeros = (RANDOM.integers(0, 16, size=(*shape[:2], k)).astype(np.uint8) for k in (H, 2))
    scales, scale2 = RANDOM.random((*shape[:2], 2)).astype(np.float16), RANDOM.random(shape[:2]).astype(np.float32)
    order = np.argsort(np.arange(2 * INNER) % 2, kind="stable")
    made = []
    for rows in (slice(None), order):
        parts = {"zeros": zeros[:, rows], "scales": scales[:, rows], "scale2": scale2[:, rows]}
        made.append(lowlp.QuantizedTensor(codes[:, rows], dtype="uint4", group_size=32, **parts))
    bias = torch.from_numpy(RANDOM.normal(size=shape[:2]))
    module = lowlp.torch.Experts(made[0], weights(H, INNER), activation="gpt_oss", gate_up_bias=bias, interleaved=True)
    assert module.gate_up.quantized == made[1]
    assert torch.equal(module.gate_up.bias, bias[:, order])
    with pytest.raises(LowlpError, match=r"^gate_up: rows by turns need an even N, got \[6, 3, 64\]"):
        lowlp.torch.Experts(weights(3, H), made[0], interleaved=True)


def test_states_casts_and_text() -> None:
    module = lowlp.torch.Experts(weights(2 * INNER, H), weights(H, INNER))
    other = lowlp.torch.Experts(weights(2 * INNER, H), weights(H, INNER)).half()
    other.load_state_dict(module.state_dict())
    assert other.down.quantized == module.down.quantized
    assert "experts=6, in_features=32, out_features=64, int6" in repr(module)
    lowlp.torch.warm_up(module, 4, progress=False)
    x = torch.randn(4, H, dtype=torch.bfloat16)
    given: tuple[Any, ...] = (x, torch.zeros(4, TOP, dtype=torch.int64), torch.ones(4, TOP))
    assert module(*given).dtype == torch.bfloat16


def test_a_compiled_module_is_one_graph() -> None:
    module = lowlp.torch.Experts(weights(2 * INNER, H), weights(H, INNER), gate_up_bias=torch.randn(E, 2 * INNER))
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend="eager")
    for rows in (4, 7):
        x, ids = torch.randn(rows, H), torch.from_numpy(RANDOM.integers(-1, E + 1, size=(rows, TOP)))
        with torch.no_grad():
            assert torch.equal(compiled(x, ids, torch.ones(rows, TOP)), module(x, ids, torch.ones(rows, TOP)))
    part = module.gate_up
    offsets = torch.tensor([0, 1, 1, 3, 3, 4, 5], dtype=torch.int32)
    given = (torch.randn(5, H), part._tensors(), offsets, part.bias, part._stored_header, "silu_mul")
    some = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.lowlp.grouped_linear.default, given, test_utils=some)
    with pytest.raises(LowlpError, match=r"^x: requires a gradient, and products of experts have none"):
        part(torch.randn(5, H, requires_grad=True), offsets)


def test_mistakes_are_named() -> None:
    gate_up, down = weights(2 * INNER, H), weights(H, INNER)
    with pytest.raises(
        LowlpError, match=r"^down: must have shape \[E, H, I\] = \[6, 64, 32\] for .* got \[6, 64, 64\]"
    ):
        lowlp.torch.Experts(gate_up, gate_up)
    with pytest.raises(LowlpError, match=r"^activation: must be one of silu_mul, gpt_oss, got 'relu'"):
        lowlp.torch.Experts(gate_up, down, activation="relu")
    with pytest.raises(LowlpError, match=r"^qw: expected weights of experts \[E, N, K\], got \[64, 64\]"):
        lowlp.torch.GroupedLinear.from_quantized(gate_up[0])
    with pytest.raises(LowlpError, match=r"^bias: must have shape \(6, 64\), got \(64,\)"):
        lowlp.torch.GroupedLinear.from_quantized(gate_up, torch.zeros(64))
    module = lowlp.torch.Experts(gate_up, down)
    with pytest.raises(LowlpError, match=r"^experts, weights: must have shape \[..., top k\] for x \[2, 64\], got"):
        module(torch.zeros(2, H), torch.zeros(3, TOP, dtype=torch.int64), torch.zeros(3, TOP))
    with pytest.raises(LowlpError, match=r"^experts: expected int32 or int64, got torch.float32"):
        module(torch.zeros(2, H), torch.zeros(2, TOP), torch.zeros(2, TOP))
