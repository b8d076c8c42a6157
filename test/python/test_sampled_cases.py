"""The marker `sampled` leaves out cases, and no value of a parameter while others come twice."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from sampled_cases import sample_of


@dataclass(frozen=True)
class Point:
    x: int
    y: int


def cases(**values: Any) -> list[Any]:
    crossed = itertools.product(*values.values())
    return [SimpleNamespace(callspec=SimpleNamespace(params=dict(zip(values, each, strict=True)))) for each in crossed]


def test_each_value_comes_before_any_comes_again() -> None:
    every = cases(rows=[1, 2, 3, 4], point=[Point(x, y) for x in range(2) for y in range(2)])
    found = [case.callspec.params for case in sample_of(every, 4, "a test")]
    assert {params["rows"] for params in found} == {1, 2, 3, 4}
    assert len({params["point"] for params in found}) == 4
    assert len(sample_of(every, 100, "a test")) == len(every)


def test_a_sample_is_the_same_in_each_run_and_another_for_another_test() -> None:
    every = cases(number=range(100))
    assert sample_of(every, 5, "one") == sample_of(every, 5, "one") != sample_of(every, 5, "two")
