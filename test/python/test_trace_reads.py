"""Launches use an earlier trace of a kernel while nothing that it read has changed."""

from __future__ import annotations

import enum
import functools
import itertools
import os
import random
import re
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.language.kernels import Kernel

ROWS = lowlp.local(2, 1).spatial(8, 4).local(1, 2)
STEP = 1.0
SCHEDULE = ll.KernelSchedule()
COUNTER, BIG = itertools.count(), np.ones(1 << 14)
module = types.ModuleType("settings_of_a_test")
module.inner = types.SimpleNamespace(step=1.0)  # type: ignore[attr-defined]


def of_global() -> float:
    return STEP


def with_default(step: float = 1.0) -> float:
    return step


def with_attribute() -> float:
    return float(with_attribute.__dict__.get("step", 1.0))


class Plain:
    scale = 1.0

    def __init__(self, step: float) -> None:
        self.step = step

    @property
    def scaled(self) -> float:
        return self.step * self.scale


class Slotted:
    __slots__ = ("step",)

    def __init__(self) -> None:
        self.step = 1.0


@dataclass
class Options:
    steps: list[float] = field(default_factory=lambda: [1.0])
    schedule: ll.KernelSchedule = SCHEDULE


class Tiles(NamedTuple):
    steps: dict[str, float]
    schedule: ll.KernelSchedule = ll.KernelSchedule()


class Mode(enum.Enum):
    SLOW = 1.0
    FAST = 2.0


def kernel_of(read: Callable[[], float]) -> Kernel:
    """A kernel whose program has one number in it, which `read` gives while it is traced."""

    @lowlp.kernel(grid=(1,), num_threads=32)
    def fill(y: ll.pointer("f32")) -> None:
        ll.store_global(ll.full(read(), "f32", layout=ROWS), ll.view_global(y, shape=[16, 8]), offsets=[0, 0])

    return fill


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of kernels that were traced."""
    found: list[str] = []
    trace = Kernel.module
    monkeypatch.setattr(Kernel, "module", lambda kernel: found.append(kernel.name) or trace(kernel))  # type: ignore[func-returns-value]
    return found


def changes(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Callable[[], Any], Callable[[], object]]]:
    """What a kernel reads, and how that is changed to 2."""
    step, mode = 1.0, Mode.SLOW
    steps, table, by_name, plain, slotted = [1.0], np.ones(4), {"a": [1.0]}, Plain(1.0), Slotted()
    options, tiles, partial = Options(), Tiles({"a": 1.0}), functools.partial(with_default, step=1.0)
    changed_code = types.FunctionType(of_global.__code__, globals(), "changed_code")

    def rebind() -> None:
        nonlocal step, mode
        step, mode = 2.0, Mode.FAST

    def second() -> float:
        return 2.0

    return {
        "a variable of the enclosing function": (lambda: step, rebind),
        "an enum": (lambda: mode.value, rebind),
        "a global of a function": (of_global, lambda: monkeypatch.setitem(globals(), "STEP", 2.0)),
        "a name that was a builtin": (
            lambda: float(max(1, 0)),
            lambda: monkeypatch.setitem(globals(), "max", lambda *_: 2),
        ),
        "a list": (lambda: steps[0], lambda: steps.__setitem__(0, 2.0)),
        "a list in a dict": (lambda: by_name["a"][-1], lambda: by_name["a"].append(2.0)),
        "an array": (lambda: float(table[1]), lambda: table.fill(2)),
        "an attribute": (lambda: plain.step, lambda: setattr(plain, "step", 2.0)),
        "an attribute of a class": (lambda: plain.scaled, lambda: monkeypatch.setattr(Plain, "scale", 2.0)),
        "a method": (lambda: plain.scaled, lambda: monkeypatch.setattr(Plain, "scaled", property(lambda _: 2.0))),
        "a slot": (lambda: slotted.step, lambda: setattr(slotted, "step", 2.0)),
        "a dataclass": (lambda: options.steps[0], lambda: options.steps.insert(0, 2.0)),
        "a new dataclass": (lambda: Options().steps[0] * step, rebind),
        "a dict in a tuple": (lambda: tiles.steps["a"], lambda: tiles.steps.update(a=2.0)),
        "a partial function": (lambda: partial(), lambda: partial.keywords.update(step=2.0)),
        "a default": (
            lambda: with_default(),
            lambda: monkeypatch.setattr(with_default, "__defaults__", (2.0,)),
        ),
        "code": (lambda: changed_code(), lambda: setattr(changed_code, "__code__", second.__code__)),
        "an attribute of a function": (lambda: with_attribute(), lambda: vars(with_attribute).update(step=2.0)),
        "an attribute of a module": (lambda: module.inner.step, lambda: setattr(module, "inner", Plain(2.0))),
        "a function within": (lambda: (lambda: sum(s for s in steps))(), lambda: steps.append(1.0)),
    }


NAMES = list(changes(pytest.MonkeyPatch()))


@pytest.mark.parametrize("name", NAMES)
def test_a_change_is_seen(name: str, traces: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    read, change = changes(monkeypatch)[name]
    kernel = kernel_of(read)
    before = kernel.trace_key()
    assert kernel.trace_key() == before and len(traces) == 1, kernel.retraced_because
    change()
    after = kernel.trace_key()
    assert after != before and len(traces) == 2
    assert after == kernel.trace_key() == kernel_of(lambda: 2.0).trace_key()
    assert len(traces) == 3 and not kernel.retraced_because


def test_earlier_states_are_kept(traces: list[str]) -> None:
    steps = [1.0]
    kernel = kernel_of(lambda: steps[0])
    keys = []
    for step in (1.0, 2.0, 1.0, 2.0):
        steps[0] = step
        keys.append(kernel.trace_key())
    assert keys[:2] == keys[2:] and keys[0] != keys[1]
    assert len(traces) == 2


def test_zeros_differ_in_their_sign(traces: list[str]) -> None:
    steps = [0.0]
    kernel = kernel_of(lambda: steps[0])
    before = kernel.trace_key()
    steps[0] = -0.0
    assert kernel.trace_key() != before


@pytest.mark.parametrize(
    ("read", "because"),
    [
        (lambda: float(os.environ.get("LOWLP_TEST", 1)), r"^os\.environ, a os\._Environ$"),
        (lambda: random.random(), r"^random\.random, a random\.Random$"),
        (lambda: np.random.default_rng(0).random(), r"^np\.random\.[a-z_]+, a "),
        (lambda: float(len(dir(module)) > 0), r"^dir\(\) in <lambda>$"),
        (lambda: getattr(module, "in" + "ner").step, r"^getattr\(\) in <lambda>$"),
        (lambda: next(COUNTER), r"^COUNTER, a itertools\.count$"),
        (lambda: BIG[0], r"^BIG, a numpy\.ndarray$"),
    ],
)
def test_what_cannot_be_watched_is_traced_each_time(read: Callable[[], float], because: str, traces: list[str]) -> None:
    kernel = kernel_of(read)
    assert not kernel.retraced_because
    kernel.trace_key(), kernel.trace_key()
    assert len(traces) == 2
    assert re.search(because, kernel.retraced_because), kernel.retraced_because


def test_what_tracing_changes_is_traced_again(traces: list[str]) -> None:
    counted: list[float] = []

    def read() -> float:
        counted.append(1.0)
        return len(counted)

    kernel = kernel_of(read)
    assert kernel.trace_key() != kernel.trace_key()
    assert len(counted) == 2


def test_launches_use_the_trace(traces: list[str]) -> None:
    y = np.empty((16, 8), np.float32)
    steps = [3.0]
    kernel = kernel_of(lambda: steps[0])
    kernel(y)
    assert traces == ["fill", "fill"]  # for its key, and to be compiled
    kernel(y), kernel(y)
    assert len(traces) == 2 and (y == 3).all()
    steps[0] = 4.0
    kernel(y)
    assert (y == 4).all()
