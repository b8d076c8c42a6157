"""Layouts of shared memory in Python."""

from __future__ import annotations

import pickle

import pytest

import lowlp
from lowlp.layouts.shared_layout import SharedLayout, shared_layout
from lowlp_runtime.errors import LowlpError, LowlpTypeError, LowlpValueError

STAGES = lowlp.local(3, 1, 1).swizzle(lowlp.local(16, 32), dim=1).local(1, 8)


def test_swizzles_as_the_paper_says() -> None:
    assert STAGES.shape == (3, 16, 256)
    for stage, row, column in ((0, 0, 0), (1, 5, 19), (2, 15, 255)):
        address = (16 * stage + row) * 256 + 8 * (column // 8 ^ row) + column % 8
        assert STAGES.address_of(stage, row, column) == address
        assert STAGES(address) == (stage, row, column)


def test_text_makes_the_same_layout() -> None:
    assert str(STAGES) == "local(3, 1, 1).swizzle(local(16, 32), dim=1).local(1, 8)"
    for layout in (STAGES, lowlp.swizzle(lowlp.local(4, 8), dim=0, log_step=1).column_local(2, 2)):
        assert shared_layout(str(layout)) == layout == pickle.loads(pickle.dumps(layout))
        assert hash(shared_layout(str(layout))) == hash(layout)
        assert str(layout) in repr(layout)
    assert shared_layout(lowlp.local(4, 8)) != lowlp.swizzle(lowlp.local(4, 8), dim=1)


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: lowlp.swizzle(lowlp.local(4, 6), dim=1), LowlpValueError, "must be a power of two; found 6"),
    (lambda: lowlp.swizzle(lowlp.local(4, 4), dim=2), LowlpValueError, "dim of a swizzle must be 0 or 1; found 2"),
    (lambda: lowlp.swizzle(lowlp.local(4, 4), dim=1.5), LowlpTypeError, "dim must be an integer"),
    (lambda: lowlp.swizzle("local(4, 4)", dim=1), LowlpTypeError, "factor must be a Layout; found str"),
    (lambda: shared_layout(4), LowlpTypeError, "layout must be a str, a Layout or a SharedLayout; found int"),
    (lambda: STAGES(3 * 16 * 256), LowlpValueError, "there is no address 12288; allowed are 0 to 12287"),
    (lambda: STAGES.address_of(3, 0, 0), LowlpValueError, "3"),
    (SharedLayout, LowlpTypeError, "a SharedLayout is made by"),
])  # fmt: skip
def test_wrong_arguments_are_refused(make, error: type[LowlpError], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_is_immutable() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        STAGES.shape = (1,)
