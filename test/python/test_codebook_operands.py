"""Operands of codebooks as launches take them."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.kernels.linear.operand_list import operands_of_weights
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp_runtime.product_arguments import check_weights
from lowlp_runtime.stored_weights import StoredWeights

ENTRIES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "int8": np.int8,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
}


def weights(entries: str) -> lowlp.QuantizedTensor:
    random = np.random.default_rng(0)
    factors = None if entries in ("f16", "bf16") else np.full((2,), 0.02, np.float32)
    return lowlp.QuantizedTensor(
        random.integers(0, 256, (64, 32, 2), np.uint8),
        codebooks=random.integers(-8, 8, (2, 256, 8)).astype(ENTRIES[entries]),
        scales=np.ones((64, 1), np.float16),
        book_scales=factors,
    )


@pytest.mark.parametrize("entries", ENTRIES)
def test_uploads_keep_bytes(entries: str) -> None:
    """By PyTorch, here to the CPU."""
    pytest.importorskip("torch")
    from lowlp_runtime.operand_tensors import upload

    qw = weights(entries)
    arrays = host_operands(qw, "f16")
    for operand in operands_of_weights(spec_for(qw, "f16", "f16")):
        if operand.is_array:
            wanted = np.ascontiguousarray(arrays[operand.name])
            assert upload(wanted, operand.element, "cpu").numpy().tobytes() == wanted.tobytes(), operand


@pytest.mark.parametrize(("books", "room"), [(1, 0), (2, 1), (3, 2), (4, 2)])
def test_books_leave_room_for_their_sums(books: int, room: int) -> None:
    rng = np.random.default_rng(books)
    entries = rng.standard_normal((books, 4, 8)).astype(np.float16)
    entries[:, 0, 0] = 57344
    codes = rng.integers(0, 4, (64, 8, books)).astype(np.uint8)
    qw = lowlp.QuantizedTensor(codes, codebooks=entries, scales=np.ones((64, 1), np.float16))
    operands = host_operands(qw, "f16")
    held, unscale = operands["codebooks"], operands["codebooks_unscale"]
    assert isinstance(held, np.ndarray) and isinstance(unscale, float)
    assert np.abs(held.astype(np.float64)).max() == 57344 / 2**room
    np.testing.assert_array_equal(held.astype(np.float64).reshape(entries.shape) * unscale, entries)


@pytest.mark.parametrize("m", [1, 200])
def test_compiled_kernels_take_books_of_their_type(m: int) -> None:
    kernel = lowlp.compile_linear(n=64, k=256, weight=lowlp.vq(8, 8, 2), m=(m, m), group_size=None, target="sm_90a")
    product = kernel.description.product
    assert product is not None
    check_weights(kernel.binary, product, StoredWeights.of(weights("f16")))
    with pytest.raises(lowlp.errors.LowlpValueError, match=r"qw: its codebooks are bf16, and kernel .* takes f16"):
        check_weights(kernel.binary, product, StoredWeights.of(weights("bf16")))
