"""examples/flash_decoding.py over shapes: groups, widths, and sequences that end within a part or before it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import lowlp

PATH = Path(__file__).resolve().parents[2] / "examples" / "flash_decoding.py"


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("flash_decoding", PATH)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load_example()


def attend(
    sizes: tuple[int, int, int], capacity: int, d: int, splits: int, lengths: list[int] | None = None, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The result of the two kernels, and that in float64."""
    q, k, v, made = example.make_inputs(*sizes, capacity, d)
    held = made if lengths is None else np.array(lengths, np.int32)
    partials = example.make_partials(*sizes, d, splits)
    o = np.full(q.shape, np.nan, np.float16)
    example.make_attention(*sizes, capacity, d, splits)(q, k, v, held, *partials, seed=seed)
    example.make_combine(*sizes, d, splits)(*partials, o, seed=seed)
    return o, example.reference(q, k, v, held)


@pytest.mark.parametrize(
    ("sizes", "capacity", "d", "splits"),
    [
        ((1, 1, 1), 1, 32, 1),
        ((2, 2, 4), 100, 64, 3),
        ((1, 2, 16), 64, 128, 2),
        ((3, 1, 7), 33, 32, 5),
        ((1, 1, 8), 130, 256, 1),
    ],
)
def test_agrees_with_float64(sizes: tuple[int, int, int], capacity: int, d: int, splits: int) -> None:
    o, wanted = attend(sizes, capacity, d, splits)
    np.testing.assert_allclose(o, wanted, atol=4e-3, rtol=2e-3)


def test_sequences_of_any_length_in_one_batch() -> None:
    """Of one key, of a whole part, one more than that, and all: parts past the end count for nothing."""
    o, wanted = attend((4, 1, 2), 96, 32, 3, lengths=[1, 32, 33, 96])
    np.testing.assert_allclose(o, wanted, atol=4e-3, rtol=2e-3)


def test_all_candidates_agree() -> None:
    sizes, capacity, d, splits = (1, 1, 3), 70, 32, 1
    q, k, v, lengths = example.make_inputs(*sizes, capacity, d)
    wanted = example.reference(q, k, v, lengths)
    for candidate in example.make_attention(*sizes, capacity, d, splits).candidates:
        partials, o = example.make_partials(*sizes, d, splits), np.full(q.shape, np.nan, np.float16)
        candidate.kernel(q, k, v, lengths, *partials)
        example.make_combine(*sizes, d, splits)(*partials, o)
        np.testing.assert_allclose(o, wanted, atol=4e-3, rtol=2e-3, err_msg=str(candidate))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_ptxas_takes_both_kernels(arch: str) -> None:
    for kernel in (example.make_attention(1, 2, 8, 512, 128, 4).kernel_for(), example.make_combine(1, 2, 8, 128, 4)):
        assert lowlp.compile(kernel, arch).cubin


def test_result_is_the_same_for_every_order_of_threads() -> None:
    first, _ = attend((2, 1, 4), 70, 32, 3)
    for seed in (1, 2):
        np.testing.assert_array_equal(attend((2, 1, 4), 70, 32, 3, seed=seed)[0], first)
