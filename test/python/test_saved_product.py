"""`kernel(x, qw)` of a saved kernel of `linear`, on a fake driver and a fake PyTorch, with and without the compiler."""

from __future__ import annotations

import io
import json
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp
import lowlp_runtime
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.operand_list import operands_of_weights
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp_runtime import product_launch
from lowlp_runtime.operand_arrays import host_operands as arrays_of_operands
from lowlp_runtime.stored_weights import StoredWeights

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))
from fake_driver import FakeDriver, fake_driver
from fake_torch import FakeDevice, FakeTensor, FakeTorch, fake_torch
from test_tensor_map import encoded

__all__ = ["encoded", "fake_driver", "fake_torch"]

N, K = 64, 128
GPU = FakeDevice(0)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def torch(fake_torch: FakeTorch, fake_driver: FakeDriver) -> Iterator[FakeTorch]:
    fake_driver.contexts = [100]
    return fake_torch


@pytest.fixture(scope="module")
def qw() -> lowlp.QuantizedTensor:
    weight = np.random.default_rng(0).normal(size=(N, K)).astype(np.float32)
    return lowlp.quantize(weight, "int4", group_size=32)


def compiled(**more: Any) -> Any:
    return lowlp.compile_linear(n=N, k=K, weight="int4", group_size=32, schedule=Schedule(), **more)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "k.lowlp"
    compiled(m=(1, 16)).save(path)
    return path


def tensor(torch: FakeTorch, *shape: int, dtype: Any = None, **more: Any) -> FakeTensor:
    return FakeTensor(shape, dtype or torch.float16, GPU, **more)  # type: ignore[attr-defined]


def test_a_loaded_kernel_multiplies(
    torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor, saved: Path
) -> None:
    fake_driver.slots = 6  # x, weights, scales, y, m, x_stride
    kernel = lowlp.load(saved)
    pair = qw.to_arrays()
    addresses = []
    for weights, call in ((qw, kernel), (qw, lowlp_runtime.load(saved)), (pair, kernel), (pair, kernel)):
        x = tensor(torch, 3, 2, K)
        y = call(x, weights)
        assert (y.shape, y.dtype) == ((3, 2, N), torch.float16)  # type: ignore[attr-defined]
        values = fake_driver.launches[-1]["values"]
        assert (values[0], values[3:]) == (x.data_ptr(), (y.data_ptr(), 6, K))
        addresses.append(values[1:3])
    # The third call of a kind is found by its arguments alone, and refuses others as the first did.
    for rows in (6, 6, 6):
        x = tensor(torch, rows, K)
        y = kernel(x, qw)
        assert fake_driver.launches[-1]["values"] == (x.data_ptr(), *addresses[0], y.data_ptr(), 6, K)
    with pytest.raises(LowlpTypeError, match="bias: kernel 'linear_int4_f16' takes no bias"):
        kernel(x, qw, bias=tensor(torch, N))
    # Uploaded once for each of the two forms in which the weights were given.
    assert addresses[0] == addresses[1] != addresses[2] == addresses[3]
    assert "early" not in fake_driver.launches[0]


def test_what_is_kept_for_the_same_words_is_bounded(torch: FakeTorch, qw: lowlp.QuantizedTensor, saved: Path) -> None:
    kernel, (arrays, header) = lowlp_runtime.load(saved), qw.to_arrays()
    for _ in range(20):
        kernel(tensor(torch, 3, K), ({**arrays, "scales": arrays["scales"].copy()}, header))
    kept = product_launch._kept.of(arrays["packed"])
    assert 0 < len(kept.alive) == len(kept.launches) <= 8 and len(kept.operands) == 2 * len(kept.alive)


def test_rows_that_the_kernel_cannot_read_are_copied(
    torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor, saved: Path
) -> None:
    fake_driver.slots = 6
    kernel = lowlp_runtime.load(saved)
    for strides, address, stride in (((K + 8, 1), 0x7100_0000_0000, K + 8), ((K + 1, 1), 0x7100_0000_0000, K),
                                     ((K, 1), 0x7100_0000_0002, K)):  # fmt: skip
        kernel(tensor(torch, 3, K, strides=strides, address=address), qw)
        values = fake_driver.launches[-1]["values"]
        assert values[5] == stride
        assert (values[0] == address) == (stride > K)
    assert kernel(tensor(torch, 0, K), qw).shape == (0, N)
    assert len(fake_driver.launches) == 3


def test_bias_and_residual_and_blocks_go_by_role(torch: FakeTorch, fake_driver: FakeDriver, encoded: list[Any]) -> None:
    weight = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32)
    qw = lowlp.quantize(weight, "int4", group_size=128, zero_point=True)
    kernel = lowlp.compile_linear(
        n=256, k=256, weight="int4", group_size=128, zeros=qw.codec.zeros or False, bias="f32", residual="bf16",
        schedule=Schedule(8, 2, stages=3, row_tiles=4, slices=2),
    )  # fmt: skip
    names = [operand.name for operand in kernel.description.require_product().operands]
    fake_driver.slots = len(names)
    x, bias = tensor(torch, 5, 256), tensor(torch, 256, dtype=torch.float32)  # type: ignore[attr-defined]
    residual = tensor(torch, 5, 256, dtype=torch.bfloat16, strides=(512, 1))  # type: ignore[attr-defined]
    y = kernel(x, qw, bias=bias, residual=residual)
    got = dict(zip(names, fake_driver.launches[-1]["values"], strict=True))
    given = {"x": x, "bias": bias, "residual": residual, "y": y}
    assert {name: got[name] for name in given} == {name: part.data_ptr() for name, part in given.items()}
    blocks = kernel.description.require_product().launch_numbers(5, 256, 512, 132)["blocks"]
    assert (got["m"], got["x_stride"], got["residual_stride"], got["blocks"]) == (5, 256, 512, blocks)
    with pytest.raises(LowlpTypeError, match=r"bias: kernel 'linear_int4_f16' takes a bias of f32, got None"):
        kernel(x, qw, residual=residual)
    with pytest.raises(LowlpValueError, match=r"residual: must have shape \(5, 256\), got \(4, 256\)"):
        kernel(x, qw, bias=bias, residual=tensor(torch, 4, 256, dtype=torch.bfloat16))  # type: ignore[attr-defined]


def with_header(qw: lowlp.QuantizedTensor, **fields: Any) -> tuple[dict[str, Any], str]:
    arrays, header = qw.to_arrays()
    return arrays, json.dumps({**json.loads(header), **fields})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": [N, 2 * K]}, r"its shape is \[64, 256\], and kernel 'linear_int4_f16' takes \[64, 128\]"),
        ({"dtype": "int3"}, "its codes is int3, and kernel 'linear_int4_f16' takes int4"),
        ({"group": 64}, "its group size is 64, and kernel 'linear_int4_f16' takes 32"),
        ({"family": "bf16"}, r"its family is bf16, and kernel .* takes f16; use qw.pack_for\('f16'\)"),
        ({"packed_format": 99}, "its packed format is 99, and kernel"),
        ({"scales": "f32"}, "its scales are f32, and kernel 'linear_int4_f16' takes f16"),
        ({"zeros": "uint8"}, "its header names the arrays packed, scales, zeros, and it has packed, scales"),
        ({"version": 99}, "its header has version 99; expected 1"),
        ({"kind": "another"}, "its header must be an object whose kind is 'lowlp.QuantizedTensor'"),
    ],
)
def test_weights_that_do_not_fit(
    torch: FakeTorch, qw: lowlp.QuantizedTensor, saved: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(LowlpValueError, match=f"^qw: {message}"):
        lowlp.load(saved)(tensor(torch, 3, K), with_header(qw, **change))


def test_arguments_that_do_not_fit(torch: FakeTorch, qw: lowlp.QuantizedTensor, saved: Path) -> None:
    kernel, x = lowlp.load(saved), tensor(torch, 3, K)
    with pytest.raises(LowlpValueError, match="x: kernel 'linear_int4_f16' is for 1 to 16 rows, got 17"):
        kernel(tensor(torch, 17, K), qw)
    with pytest.raises(LowlpValueError, match=r"x: the last dimension must be K = 128 of .*, got shape \(3, 64\)"):
        kernel(tensor(torch, 3, 64), qw)
    with pytest.raises(
        LowlpTypeError, match=r"x: kernel 'linear_int4_f16' takes activations of f16, got torch\.bfloat16"
    ):
        kernel(tensor(torch, 3, K, dtype=torch.bfloat16), qw)  # type: ignore[attr-defined]
    with pytest.raises(LowlpTypeError, match="bias: kernel 'linear_int4_f16' takes no bias, got FakeTensor"):
        kernel(x, qw, bias=tensor(torch, N))
    with pytest.raises(LowlpTypeError, match=r"qw: expected quantised weights, or the pair .*, got ndarray"):
        kernel(x, qw.codes)
    with pytest.raises(LowlpTypeError, match="missing: qw; not expected: scales"):
        kernel(x, scales=qw.scales)
    with pytest.raises(LowlpTypeError, match=r"x: kernel .* is code for sm_90a and takes PyTorch tensors on a CUDA"):
        kernel(np.zeros((3, K), np.float16), qw)


KINDS: dict[str, dict[str, Any]] = {
    "zeros": {"dtype": "uint4", "zero_point": True},
    "bf16 scales": {"dtype": "int3", "scale_dtype": "bf16"},
    "e8m0": {"dtype": "f4e2m1", "scale_dtype": "e8m0"},
    "e4m3": {"dtype": "f4e2m1", "scale_dtype": "e4m3"},
    "table": {"lut": lowlp.nf(4)},
}


@pytest.mark.parametrize("activation", ["f16", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_operands_made_of_stored_arrays_are_those_of_linear(kind: str, activation: str) -> None:
    weight = np.random.default_rng(0).normal(size=(N, K)).astype(np.float32)
    qw = lowlp.quantize(weight, group_size=64, activation=activation, **KINDS[kind])
    stored = StoredWeights.of(qw.to_arrays())
    operands = operands_of_weights(spec_for(qw, activation, activation))
    made = arrays_of_operands(operands, {name: stored.read(name) for name in stored.arrays})
    wanted = host_operands(qw, activation)
    assert list(made) == list(wanted)
    for name, found in made.items():
        assert np.asarray(found).tobytes() == np.asarray(wanted[name]).tobytes(), name


def test_loading_needs_no_compiler(saved: Path, qw: lowlp.QuantizedTensor, tmp_path: Path) -> None:
    """Without the package lowlp, where a launch fails for want of a GPU alone."""
    arrays, header = qw.to_arrays()
    np.savez(tmp_path / "weights.npz", **arrays)
    (tmp_path / "header.json").write_text(header)
    script = f"""
import sys
sys.modules["lowlp"] = None
sys.path.insert(0, {str(ROOT / "runtime")!r})
import numpy as np, lowlp_runtime
kernel = lowlp_runtime.load({str(saved)!r})
weights = dict(np.load({str(tmp_path / "weights.npz")!r})), open({str(tmp_path / "header.json")!r}).read()
print(kernel, [operand.role for operand in kernel.description.product.of_source("weights")])
from lowlp_runtime.stored_weights import StoredWeights
from lowlp_runtime.operand_arrays import host_operands
stored = StoredWeights.of(weights)
made = host_operands(kernel.description.product.operands, {{name: stored.read(name) for name in stored.arrays}})
print({{name: array.shape for name, array in made.items()}}, "ml_dtypes" in sys.modules)
try:
    kernel(np.zeros((1, {K}), np.float16), weights)
except lowlp_runtime.LowlpError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    first, second, third = done.stdout.splitlines()
    assert first == "<lowlp kernel linear_int4_f16 for sm_90a> ['packed', 'scales']"
    assert second == f"{{'weights': {arrays['packed'].shape}, 'scales': (4, 64)}} False"
    assert third.startswith("x: kernel 'linear_int4_f16' is code for sm_90a and takes PyTorch tensors on a CUDA device")


SOURCE = """
import lowlp
from lowlp import language as ll

@lowlp.kernel(grid=(1,), num_threads=32)
def k(y: ll.pointer("f32"), n: ll.i32):
    part = ll.alloc_global("f32", (32,))
    tile = ll.full(1.0, "f32", layout=lowlp.spatial(32))
    ll.store_global(tile, part, offsets=[0])
    ll.store_global(tile, ll.view_global(y, shape=[n]), offsets=[0])
"""


def test_a_saved_kernel_does_not_tell_where_its_source_lies(tmp_path: Path) -> None:
    found = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "kernels.py"
        path.write_text(SOURCE)
        binary = lowlp.compile(runpy.run_path(str(path))["k"], cache=False).binary
        found.append(binary.content_hash)
        with zipfile.ZipFile(io.BytesIO(binary.to_bytes())) as archive:
            assert not [entry for entry in archive.namelist() if str(tmp_path).encode() in archive.read(entry)]
    assert found[0] == found[1]
