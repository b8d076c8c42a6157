"""Modules of `lowlp.torch` on a CPU: against `dequantize` in float64, and as modules of PyTorch."""

from __future__ import annotations

import copy
import gc
import importlib
import json
import pickle
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp

torch: Any = pytest.importorskip("torch")
lt: Any = lowlp.torch
linear_module: Any = importlib.import_module("lowlp.torch.linear")

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.CpuProductWarning")
K = 192


def drawn_codecs(count: int) -> list[dict[str, Any]]:
    """Arguments of `quantize`, of all kinds of codecs, by a seed."""
    random = np.random.default_rng(11)
    tables = [np.sort(random.normal(size=shape), -1).astype(np.float32) for shape in ((8,), (80, 4), (80, 3, 8))]
    bits = [int(b) for b in random.integers(1, 9, 4)]
    every: list[dict[str, Any]] = [
        {"dtype": f"int{bits[0]}", "group_size": 32},
        {"dtype": f"uint{bits[1]}", "group_size": 64, "zero_point": True},
        {"dtype": f"uint{bits[2]}", "group_size": 24, "zero_point": "offset", "scale_dtype": "f32"},
        {"dtype": f"uint{max(bits[3], 2)}", "group_size": None, "zero_point": "float", "scale_dtype": "bf16"},
        {"dtype": "int5", "group_size": "tensor"},
        {"dtype": "f6e3m2", "group_size": 48},
        {"dtype": "bipolar3", "group_size": 64},
        *({"lut": table, "group_size": 64} for table in tables),
        {"dtype": "nf4", "group_size": 64},
        *({"dtype": name} for name in ("mxfp4", "nvfp4", "mxfp8e5m2")),
        {"dtype": lowlp.Codec.parse("uint4 g32 uint8 offsets:uint8 super:f16:g192")},
        {"dtype": lowlp.Codec.parse("int3 g32 int6 super:f16:g96")},
        {"vq": lowlp.vq(vector=4, bits=4), "book_per": (32, 64)},
        {"vq": lowlp.vq(vector=8, bits=5, books=2), "scale_dtype": "f32"},
    ]
    return [every[int(i)] for i in random.permutation(len(every))[:count]]


@pytest.mark.parametrize("options", drawn_codecs(8), ids=lambda options: str(options.get("dtype", "table")))
def test_every_codec_as_its_dequantised_weights(options: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    qw = lowlp.quantize(random.normal(size=(80, K)).astype(np.float32), **options)
    values = torch.from_numpy(qw.dequantize()).double()
    bias = torch.randn(80)
    module = lt.Linear.from_quantized(qw, bias)
    x = torch.randn(2, 3, K)
    wanted = x.double() @ values.T + bias
    assert torch.allclose(module(x).double(), wanted, rtol=1e-5, atol=1e-5 * float(wanted.abs().max()))
    half = module(x.half())
    assert half.dtype == torch.float16 and torch.allclose(half.double(), wanted, rtol=1e-2, atol=0.05)
    ids = torch.from_numpy(random.integers(0, 80, (2, 9)))
    assert torch.equal(lt.Embedding.from_quantized(qw, dtype=torch.float32)(ids), values[ids].float())
    # A module that waits for a state has the same buffers.
    empty = lt.Linear(K, 80, qw.codec, device="meta")
    assert {name: (tuple(t.shape), t.dtype) for name, t in empty.state_dict().items()} == {
        name: (tuple(t.shape), t.dtype) for name, t in module.state_dict().items()
    }
    empty.load_state_dict(module.state_dict(), assign=True)
    assert empty.quantized == qw and torch.equal(empty(x), module(x))


def a_module() -> Any:
    torch.manual_seed(0)
    return lt.Linear.from_linear(torch.nn.Linear(K, 64), "uint4", group_size=64, zero_point=True, scale_dtype="bf16")


def test_copies_pickles_and_files(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    module, x = a_module(), torch.randn(3, K)
    wanted = module(x)
    safetensors.save_file(module.state_dict(), tmp_path / "module.safetensors")
    read = lt.Linear(K, 64, module.codec)
    assert read(x).abs().max() == 0
    read.load_state_dict(safetensors.load_file(tmp_path / "module.safetensors"))
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), read):
        assert torch.equal(other(x), wanted) and other.quantized == module.quantized
    # As files of numpy have them: words in uint32, bf16 as its bits.
    arrays, _ = module.quantized.to_arrays()
    state = {**module.state_dict(), **{name: torch.from_numpy(array.copy()) for name, array in arrays.items()}}
    assert {state["packed"].dtype, state["scales"].dtype} == {torch.uint32, torch.uint16}
    lt.Linear(K, 64, module.codec).load_state_dict(state)


def test_casts_leave_weights_and_moves_take_them() -> None:
    module = torch.nn.Sequential(a_module(), lt.Embedding.from_embedding(torch.nn.Embedding(9, K), group_size=K))
    before = {name: tensor.clone() for name, tensor in module.state_dict().items() if name != "0.bias"}
    casts: list[Any] = ["half", "double", lambda m: m.to(torch.bfloat16), lambda m: m.type("torch.HalfTensor")]
    for cast in casts:
        cast(module) if callable(cast) else getattr(module, cast)()
        state = module.state_dict()
        assert all(state[name].dtype == t.dtype and torch.equal(state[name], t) for name, t in before.items())
    assert module[0].bias.dtype == torch.float16 and module[1](torch.tensor([3])).dtype == torch.float16
    module.to("meta")
    assert all(tensor.is_meta for tensor in module.state_dict().values())
    with pytest.raises(lowlp.errors.LowlpValueError, match="weights: are on the meta device, which holds no numbers"):
        module[0].quantized  # noqa: B018
    again = module.to_empty(device="cpu")
    # What describes the weights does not come out of memory that nobody has written.
    again.load_state_dict({**before, "0.bias": torch.zeros(64)})
    assert json.loads(bytes(again[0].header.numpy()))["shape"] == [64, K]


def changed_header(state: dict[str, Any], **fields: Any) -> dict[str, Any]:
    text = json.dumps({**json.loads(bytes(state["header"].numpy())), **fields})
    return {**state, "header": torch.tensor(list(text.encode()), dtype=torch.uint8)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: changed_header(state, version=9), "header: version 9 is not known; this lowlp reads 1"),
        (lambda state: changed_header(state, packed_format=4), "packed_format 4 is not known; this lowlp reads 5"),
        (lambda state: changed_header(state, dtype="uint5"), "dtype is 'uint4', and that of the state 'uint5'"),
        (lambda state: {**state, "packed": state["packed"].float()}, "packed: expected elements of torch.int32, got"),
        (lambda state: {name: t for name, t in state.items() if name != "zeros"}, 'Missing key.* "zeros"'),
    ],
)  # fmt: skip
def test_states_that_do_not_fit_are_refused(change: Any, message: str) -> None:
    module = a_module()
    with pytest.raises(RuntimeError, match=message):
        module.load_state_dict(change(module.state_dict()))


def test_activations_that_are_quantised() -> None:
    torch.manual_seed(0)
    linear = torch.nn.Linear(K, 64)
    module = lt.Linear.from_linear(linear, "int4", group_size=64, activation="int8")
    assert module.quantized.family == "s8"
    for x in (torch.randn(2, 3, K), torch.randn(3, K).half()):
        meant = lowlp.quantize_activations(x, "int8").dequantize().double()
        wanted = meant @ module.dequantize().double().T + module.bias
        assert torch.allclose(module(x).double(), wanted, rtol=1e-3, atol=1e-3) and module(x).dtype == x.dtype
        assert not torch.allclose(x.double(), meant)
    # As lowlp.linear has it.
    with torch.no_grad():
        by_linear = lowlp.linear(x, module.quantized, bias=module.bias.data, activation="int8")
    torch.testing.assert_close(module(x), by_linear, rtol=2e-3, atol=2e-3)
    config = lt.Config("int4", group_size=64, activation="int8")
    model = lt.quantize_(torch.nn.Sequential(linear), config, progress=False)
    assert model[0].quantized == module.quantized and "activation=int8" in repr(model)
    with pytest.raises(lowlp.errors.LowlpValueError, match="path: goes with activation, which is not given; got 's8'"):
        lt.Linear.from_linear(linear, "int4", group_size=64, path="s8")
    with pytest.raises(lowlp.errors.LowlpValueError, match="qw: int8 activations take integer and bipolar weights"):
        lt.Linear.from_linear(linear, "nf4", group_size=64, activation="int8")


def test_a_loaded_state_counts_at_once() -> None:
    first, second, x = a_module(), a_module(), torch.randn(2, K)
    state = {name: t.clone() for name, t in second.state_dict().items()}
    state["scales"] *= 2
    first(x)
    first.load_state_dict(state)
    assert torch.allclose(first(x) - first.bias, 2 * (second(x) - second.bias), rtol=1e-6)


def test_an_embedding_loaded_from_the_meta_device_moves() -> None:
    stored = lt.Embedding.from_embedding(torch.nn.Embedding(9, K), group_size=K)
    module = lt.Embedding(9, K, stored.codec, device="meta")
    module.load_state_dict(stored.state_dict(), assign=True)
    ids = torch.arange(9)
    assert torch.equal(module.to("cpu").half()(ids), stored(ids).half())


@pytest.mark.parametrize("move", ["share", "replace"])
def test_weights_whose_memory_moves(move: str) -> None:
    """To shared memory, as when a module is sent to another process, or to where `data` is put."""
    module, x = a_module(), torch.randn(2, K)
    before = module(x)
    if move == "share":
        module.share_memory()
    else:
        module.packed.data = module.packed ^ -1
    assert torch.equal(module(x), copy.deepcopy(module)(x)) and torch.equal(module(x), before) == (move == "share")


def test_merged_projections_with_a_width_each() -> None:
    torch.manual_seed(1)
    parts = [torch.nn.Linear(K, rows) for rows in (64, 32, 96)]
    merged = lt.MergedLinear.from_linears(parts, ["int4", "int4", "int6"], group_size=64)
    x = torch.randn(2, K)
    apart = [lt.Linear.from_linear(p, f"int{bits}", group_size=64) for p, bits in zip(parts, (4, 4, 6), strict=True)]
    wanted = torch.cat([part(x) for part in apart], 1)
    assert torch.equal(merged(x), wanted)
    assert [shard.out_features for shard in merged.merge_alike().shards] == [96, 96]
    assert torch.equal(merged(x), wanted) and merged.out_features == 192


def test_mistakes() -> None:
    errors = lowlp.errors
    linear = torch.nn.Linear(K, 64)
    with pytest.raises(errors.LowlpValueError, match=r"group_size: must divide K = 192 .* got 128"):
        lt.Linear.from_linear(linear, "int4")
    with pytest.raises(errors.LowlpValueError, match="codec: its groups of 128 must divide K = 192"):
        lt.Linear(K, 64, "int4 g128 f16")
    with pytest.raises(errors.LowlpValueError, match=r"epilogue: must be None or one of relu, .*, got 'swish'"):
        lt.Linear.from_linear(linear, "int4", group_size=64, epilogue="swish")
    with pytest.raises(errors.LowlpValueError, match=r"x: the last dimension must be K = 192, got shape \(2, 64\)"):
        a_module()(torch.zeros(2, 64))
    with pytest.raises(errors.LowlpTypeError, match=r"x: expected float16, bfloat16 or float32, got torch.float64"):
        a_module()(torch.zeros(2, K).double())
    embedding = lt.Embedding.from_embedding(torch.nn.Embedding(9, K), group_size=K)
    with pytest.raises(errors.LowlpValueError, match=r"ids: must be in 0..8, got 9"):
        embedding(torch.tensor([0, 9]))


def test_a_module_says_what_it_is() -> None:
    assert repr(a_module()) == (
        "Linear(in_features=192, out_features=64, uint4, group=64, scales=bf16, 4.38 bits per weight, 6,720 bytes, "
        "bias=True)"
    )


def test_products_where_pytorch_makes_tensors_of_another_type() -> None:
    """Serving engines make float16 PyTorch's default while they load a model."""
    module = lowlp.torch.Linear.from_linear(torch.nn.Linear(64, 32), "int4", group_size=32)
    x = torch.randn(2, 64)
    wanted = module(x)
    torch.set_default_dtype(torch.float16)
    try:
        assert torch.equal(module(x), wanted)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.fixture
def calls_on_gpu(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The calls of `linear_on_gpu`, where tensors of the host say that they are on a GPU; y are the exact products."""
    calls: list[tuple[Any, ...]] = []

    def compute(x: Any, qw: Any, bias: Any, epilogue: str, *rest: Any) -> Any:
        calls.append((x, qw, bias, epilogue, *rest))
        return x @ torch.from_numpy(qw.dequantize()).T.to(x.dtype)

    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda tensor: True))
    monkeypatch.setattr(torch.Tensor, "get_device", lambda tensor: getattr(tensor, "on", 0))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(linear_module, "linear_on_gpu", compute)
    return calls


def replaced(change: str, module: Any, other: Any) -> Any:
    """A module that has the weights of `other` in the place of its own."""
    if change == "load":
        module.load_state_dict(other.state_dict())
    elif change == "load through another module":
        lt.Linear.of_tensors(module._buffers, module._stored_header, torch.float16).load_state_dict(other.state_dict())
    elif change == "assign":
        module.load_state_dict(other.state_dict(), assign=True)
    elif change == "buffers":
        for name in module._names:
            setattr(module, name, getattr(other, name).clone())
    elif change == "memory":
        for name in module._names:
            getattr(module, name).data = getattr(other, name).clone()
    elif change == "scales alone":
        module.scales = other.scales.clone()
        module.packed.copy_(other.packed)
    elif change == "copy":
        module = copy.deepcopy(module)
        module.load_state_dict(other.state_dict())
    else:
        module = pickle.loads(pickle.dumps(module))
        module._set_weights(dict(other._buffers), other._stored_header)
    return module


@pytest.mark.parametrize(
    "change",
    ["load", "load through another module", "assign", "buffers", "memory", "scales alone", "copy", "pickle"],
)
def test_a_direct_call_has_the_weights_of_now(change: str, calls_on_gpu: list[Any]) -> None:
    """The way from a module to a kernel looks weights up once, and must not keep those that were there."""
    first, other = (
        lt.Linear.from_quantized(lowlp.quantize(torch.randn(16, K), "int4", group_size=64)) for _ in range(2)
    )
    x = torch.randn(3, K).half()
    wanted = other(x)
    before = first(x)
    assert torch.equal(first(x), before) and not torch.equal(before, wanted)
    assert calls_on_gpu[-1][1] is calls_on_gpu[-2][1]
    changed = replaced(change, first, other)
    assert torch.equal(changed(x), wanted) and torch.equal(changed(x), wanted)
    assert calls_on_gpu[-1][1] is calls_on_gpu[-2][1] is not calls_on_gpu[-3][1]


def test_modules_that_share_words_have_their_own_scales(calls_on_gpu: list[Any]) -> None:
    first = lt.Linear.from_quantized(lowlp.quantize(torch.randn(16, K), "int4", group_size=64))
    buffers = {**first._buffers, "scales": first.scales * 2}
    other = lt.Linear.of_tensors(buffers, first._stored_header, torch.float16)
    x = torch.randn(3, K).half()
    y = first(x)
    for _ in range(3):
        assert torch.equal(other(x), 2 * y) and torch.equal(first(x), y)


def test_what_a_direct_call_hands_over(calls_on_gpu: list[Any]) -> None:
    """Also what decides the kernel, and the checks of every call."""
    qw = lowlp.quantize(torch.randn(16, K), "int4", group_size=64)
    module = lt.Linear.from_quantized(qw, torch.ones(16), epilogue="silu_mul", batch_invariant=32)
    x = torch.randn(2, 3, K).bfloat16()
    module.sums = "auto"
    module(x)
    given, _, bias, epilogue, residual, out, stream, invariance = calls_on_gpu.pop()
    assert given is x and bias is module.bias
    assert (epilogue, residual, out, stream, invariance) == ("silu_mul", None, "f32", None, 32)
    x.on = 1
    with pytest.raises(lowlp.LowlpError, match=r"x: is on cpu, and the weights are on cpu; move one of them"):
        module(x)
    x.on = 0
    # What an operator has to see does not go by the direct way.
    for context in (torch.autocast("cpu", torch.bfloat16), torch.enable_grad()):
        with context, pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_by_operator", lambda x: "operator")
            assert module(x.clone().requires_grad_()) == "operator"
    assert not calls_on_gpu


def test_weights_that_a_module_had_are_freed(calls_on_gpu: list[Any]) -> None:
    first, other = (
        lt.Linear.from_quantized(lowlp.quantize(torch.randn(16, K), "int4", group_size=64)) for _ in range(2)
    )
    first(torch.randn(3, K).half())
    calls_on_gpu.clear()
    words = weakref.ref(first.packed)
    for name in first._names:
        setattr(first, name, getattr(other, name))
    gc.collect()
    assert words() is None
