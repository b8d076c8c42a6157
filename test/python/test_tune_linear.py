"""`lowlp.tune_linear`, and what is made of its measurements for other shapes, rows and widths. By a fake clock."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_tune import on_a_gpu, timed  # noqa: F401

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear import choosing, estimates, measured
from lowlp.kernels.linear.measured import kind_of_planes
from lowlp.kernels.linear.planes import choosing as of_planes
from lowlp.kernels.linear.planes.choosing import choose_planes
from lowlp.kernels.linear.planes.estimates import estimated_us
from lowlp.kernels.linear.planes.fitting import fits
from lowlp.kernels.linear.planes.program import PlanesSpec
from lowlp.kernels.linear.planes.shapes import PlaneSchedule, form_of
from lowlp.kernels.linear.planes.streams import StreamSchedule
from lowlp.kernels.linear.planes.warpgroups import WarpgroupSchedule
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.schedules.device import H200
from lowlp.tuning import search
from lowlp.tuning.measured import MeasuredFile
from lowlp.tuning.problems import PlanesProblem, Problem
from lowlp.tuning.wanted import Weights, problems_of
from lowlp_runtime.errors import DeviceError

GPU = "NVIDIA H200"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(measured, "_shipped", tuple)
    monkeypatch.setattr(measured, "_added", ())
    # What is near is taken, whatever the estimate says of it.
    monkeypatch.setattr(of_planes, "_ABOUT", math.inf)
    of_planes._chosen.cache_clear()
    monkeypatch.delenv(measured.VARIABLE, raising=False)
    yield


def spec_of(p: int, q: int, n: int = 8192, k: int = 8192) -> PlanesSpec:
    return PlanesSpec(n, k, f"uint{p}", f"uint{q}", scale="f16", x_scale=True, out="f16")


def put(path: Path, spec: PlanesSpec, m: int, schedule: PlaneSchedule, us: float) -> None:
    key = kind_of_planes(spec.w_code.bits, spec.x_code.bits), spec.n, spec.k, m
    fields = {"form": form_of(schedule), **dataclasses.asdict(schedule)}
    MeasuredFile(path, GPU).put(key, {"arch": "sm_90a", "schedule": fields, "us": {str(m): us}})


# --- near matches -----------------------------------------------------------------------------------------------------

FEW = StreamSchedule(rows=16, warps=4, row_tiles=1, slices=2, steps=1, stages=3)
MANY = WarpgroupSchedule(columns=64, warpgroups=3, steps=2, stages=2, products_in_flight=4)


def test_what_was_measured_is_taken_for_what_it_was_measured_for(tmp_path: Path) -> None:
    put(tmp_path / "mine.json", spec_of(2, 2), 16, FEW, 12.5)
    lowlp.use_tuned(tmp_path / "mine.json")
    found = choose_planes(spec_of(2, 2), 13)
    assert found.schedule == FEW
    assert (found.reason, found.us) == (f"measured on {GPU}: 12.5 us", 12.5)
    # Codes of the same widths have the same planes.
    signed = PlanesSpec(8192, 8192, "int2", "ternary", scale="bf16", x_scale=True, out="bf16")
    assert choose_planes(signed, 16).schedule == found.schedule
    assert choose_planes(spec_of(2, 2), 16, among=()).reason.endswith(" us: nothing was measured near")


def test_widths_between_take_what_comes_to_the_least_scaled(tmp_path: Path) -> None:
    narrow, wide = dataclasses.replace(MANY, columns=96, warpgroups=2), dataclasses.replace(MANY, columns=32)
    path = tmp_path / "mine.json"
    us = [estimated_us(spec_of(*w), schedule, 1024) for w, schedule in (((2, 2), narrow), ((4, 4), wide))]
    for first, second, wanted in ((1.0, 2.0, narrow), (2.0, 1.0, wide)):
        put(path, spec_of(2, 2), 1024, narrow, first * us[0])
        put(path, spec_of(4, 4), 1024, wide, second * us[1])
        lowlp.use_tuned(path)
        found = choose_planes(spec_of(3, 3), 1024)
        assert isinstance(found.schedule, WarpgroupSchedule) and fits(spec_of(3, 3), found.schedule)
        assert found.schedule.warpgroups == wanted.warpgroups
        # 96 columns of W2A2 would take 240 accumulators.
        assert found.schedule.columns <= wanted.columns
        # An entry that takes what its estimate says is carried over as the estimate says.
        assert found.us == pytest.approx(estimated_us(spec_of(3, 3), found.schedule, 1024))
        assert found.reason.startswith("as near W2A2 8192x8192 M=1024 (" if wanted is narrow else "as near W4A4 ")
        assert ", before W" in found.reason and "far from" not in found.reason


def test_a_time_far_from_the_estimate_is_said_to_be_so(tmp_path: Path) -> None:
    put(tmp_path / "mine.json", spec_of(2, 2), 64, FEW, 4 * estimated_us(spec_of(2, 2), FEW, 64))
    lowlp.use_tuned(tmp_path / "mine.json")
    reason = choose_planes(spec_of(2, 2, n=4096), 64).reason
    assert "; far from the estimate, " in reason and reason.endswith("measure it with lowlp.tune_linear")


def test_a_near_schedule_is_taken_only_if_it_is_about_as_good_by_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_planes, "_ABOUT", 1.05)
    slow = StreamSchedule(rows=1, warps=8, row_tiles=1, slices=1, steps=1, stages=2)
    put(tmp_path / "mine.json", spec_of(2, 2), 64, slow, 300.0)
    lowlp.use_tuned(tmp_path / "mine.json")
    near, here = choose_planes(spec_of(2, 2, n=4096), 64), choose_planes(spec_of(2, 2), 64)
    assert near.reason.startswith("by estimate, ") and ": longer it would take as near W2A2 " in near.reason
    assert near.schedule == choose_planes(spec_of(2, 2, n=4096), 64, among=()).schedule
    assert here.schedule == slow
    # A scaled time that is less than the best estimate is believed, whatever the estimate of that kernel is.
    put(tmp_path / "fast.json", spec_of(2, 2), 64, slow, 6.0)
    lowlp.use_tuned(tmp_path / "fast.json")
    believed = choose_planes(spec_of(2, 2, n=4096), 64)
    assert believed.reason.startswith("as near W2A2 8192x8192 M=64 (6.0 us")


@pytest.mark.parametrize(
    ("spec", "m", "is_near"),
    [
        (spec_of(2, 2, n=16384), 16, True),
        (spec_of(2, 2), 32, True),
        (spec_of(2, 2), 64, False),
        (spec_of(2, 2, k=1024), 16, False),
        (spec_of(3, 2), 16, True),
        (spec_of(8, 2), 16, False),
    ],
)
def test_what_is_near(spec: PlanesSpec, m: int, is_near: bool, tmp_path: Path) -> None:
    put(tmp_path / "mine.json", spec_of(2, 2), 16, FEW, 12.5)
    lowlp.use_tuned(tmp_path / "mine.json")
    found = choose_planes(spec, m)
    assert ("as near W2A2 8192x8192 M=16" in found.reason) == is_near and fits(spec, found.schedule)
    assert is_near or found.reason.endswith(" us: nothing was measured near")


def test_bytes_take_what_weights_of_other_types_took(tmp_path: Path) -> None:
    def spec(weight: str, scale: str = "f16") -> LinearSpec:
        return LinearSpec(8192, 8192, f"{weight} channel {scale}", activation="int8", x_scale="token", aligned=True)

    problem = Problem(spec("int4"), 256)
    own = choosing.schedule_for(spec("int3"), 256, among=())

    def is_another(found: Schedule) -> bool:
        """And about as good by estimate."""
        taken = choosing.for_rows(spec("int3"), found, 256)
        us = [estimates.estimated_us(spec("int3"), one, 256) for one in (taken, own)]
        return taken != own and us[0] <= 1.04 * us[1]

    slow = next(filter(is_another, problem.shortlist(10**6)))
    facts = {"arch": "sm_90a", "schedule": problem.fields(slow), "us": {"256": 31.0}}
    MeasuredFile(tmp_path / "mine.json", GPU).put(problem.key, facts)
    lowlp.use_tuned(tmp_path / "mine.json")
    assert choosing.reason_for(spec("int4"), 256) == f"measured on {GPU} for this shape, M <= 256: 31.0 us"
    reason, taken = choosing.reason_for(spec("int3"), 256), choosing.schedule_for(spec("int3"), 256)
    assert reason.startswith(f"as near int4 g0 int8 scales:f16 8192x8192 M <= 256 on {GPU} (31.0 us, scaled ")
    assert taken == choosing.for_rows(spec("int3"), slow, 256)
    for other in (spec("int4", "bf16"), spec("int3", "f32")):
        assert choosing.reason_for(other, 256).startswith("as near int4 g0 int8 scales:f16 8192x8192 M <= 256")
        assert choosing.schedule_for(other, 256) == choosing.for_rows(other, slow, 256)
    halves = LinearSpec(8192, 8192, "int4 channel f16", aligned=True)
    assert choosing.reason_for(halves, 256).endswith(" us: nothing was measured near")


def test_a_kernel_says_why_its_schedule_was_taken() -> None:
    kernel = lowlp.compile_linear(n=256, k=512, weight="int4", group_size=None, activation="int8", m=(1, 8))
    assert kernel.description.notes["plan"]["chosen"].startswith("by estimate, ")
    assert "    chosen " in kernel.report()


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "planes w9a1"}, "kind: expected 'planes w1a1' to 'w8a8', got 'planes w9a1'"),
        ({"us": {}}, r"us: expected microseconds for 16 rows, got \{\}"),
        ({"schedule": {"form": "tiles"}}, "schedule: form: must be one of streams, warpgroups, got 'tiles'"),
        ({"schedule": {"form": "streams", "columns": 8}}, "schedule: has no field 'columns'; known are rows, warps, "),
        ({"schedule": {"form": "warpgroups", "columns": 9}}, "schedule: columns: must be one of 8, 16, "),
    ],
)
def test_entries_of_planes_are_checked(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    facts = {"arch": "sm_90a", "schedule": {"form": "streams"}, "us": {"16": 3.0}}
    file = MeasuredFile(tmp_path / "mine.json", GPU)
    file.put((change.pop("kind", "planes w1a1"), 4096, 4096, 16), {**facts, **change})
    with pytest.raises(LowlpValueError, match=f"mine.json: entry 1: {says}"):
        lowlp.use_tuned(tmp_path / "mine.json")


# --- the call ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, timed: list[str]) -> list[str]:  # noqa: F811
    """A GPU whose seconds pass with each kernel that is timed."""
    on_a_gpu(monkeypatch)
    facts = {"current_device": 0, "device_name": GPU, "multiprocessors": 132, "why_no_device": "", "device_of": H200}
    for name, fact in facts.items():
        monkeypatch.setattr(search, name, lambda *_, fact=fact: fact)
    monkeypatch.setattr("lowlp.tuning.measuring.monotonic", lambda: float(len(timed)))
    return timed


def test_what_is_tuned_is_used_and_what_is_left_says_what_serves(clock: list[str], tmp_path: Path) -> None:
    out = tmp_path / "mine.json"
    asked: dict[str, Any] = {"weights": ["int2"], "activations": ["int2"], "m": [16, 4], "out": out, "jobs": 1}
    shape = [(256, 512)]
    found = lowlp.tune_linear(shape, **asked, path="planes", candidates=1, budget_s=1.5)
    few, more = found.measured, found.left
    assert list(few) == [("planes w2a2", 256, 512, 4)] and [one.m for one in more] == [16]
    assert f"{GPU}: 1 problems measured, 1 left" in found.report()
    assert "planes w2a2 256x512 M=4: 100.0 us" in found.report()
    spec = spec_of(2, 2, 256, 512)
    assert choose_planes(spec, 4, gpu=GPU).reason == f"measured on {GPU}: 100.0 us"
    count = len(clock)
    again = lowlp.tune_linear(shape, **asked, path="planes", candidates=1)
    assert not again.left and len(clock) > count and len(again.measured) == 2
    assert again.measured[("planes w2a2", 256, 512, 4)] == few[("planes w2a2", 256, 512, 4)]


def test_every_path_that_is_exact_is_tuned() -> None:
    def kinds(codec: str, *activations: str, **options: Any) -> set[tuple[str, int]]:
        problems = problems_of([Weights(256, 512, lowlp.Codec.parse(codec))], activations, **options)
        return {(problem.key[0], problem.m) for problem in problems}

    both = kinds("int2 channel f16", "int4", rows=(16,))
    assert both == {("planes w2a4", 16), ("int2 g0 int8 scales:f16", 16)}
    # Bytes are the same for all integers in them.
    assert kinds("int2 channel f16", "int4", "int8", rows=(16,)) == both | {("planes w2a8", 16)}
    assert kinds("int2 g128 f16", "int4", rows=(16,)) == {("int2 g128 int8 scales:f16", 16)}
    assert kinds("f4e2m1 g32 f16", "f8e4m3", rows=(16,)) == {("f4e2m1 g32 f8e4m3 scales:f16", 16)}
    assert {m for _, m in kinds("int2 channel f16", "int2", path="planes")} == {1, 4, 16, 64, 256, 1024, 4096}
    assert {m for _, m in kinds("int4 g128 f16", "f16")} == {16, 32, 64, 128, 256, 1024}


def test_a_model_says_what_is_tuned() -> None:
    torch = pytest.importorskip("torch")
    from lowlp.torch.linear import Linear

    layers = [Linear(512, 256, "int2 channel f16", activation="int2") for _ in range(2)]
    weights, activations = search._wanted(torch.nn.Sequential(*layers), ("int4",), None)
    assert weights == [Weights(256, 512, lowlp.Codec.parse("int2 channel f16"))] and activations == ["int2"]
    problems = problems_of(weights, activations, (64,))
    assert [type(problem) for problem in problems] == [PlanesProblem, Problem]
    with pytest.raises(LowlpValueError, match="what: has no quantised layer"):
        lowlp.tune_linear(torch.nn.Linear(8, 8))


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(match: str, *what: Any, **options: Any) -> None:
        with pytest.raises((LowlpValueError, LowlpTypeError, DeviceError), match=match):
            lowlp.tune_linear(*what, **options)

    monkeypatch.setattr(search, "why_no_device", lambda: "there is none")
    shapes = [(256, 512)]
    refused(r"what: expected shapes \[\(N, K\), ...\] or a module of PyTorch, got 'int4'", "int4")
    refused(r"what: expected shapes \(N, K\), got \(3,\)", [(3,)])
    refused("m: must be among 1, 4, 16, 32, 64, 128, 256, 1024, 4096, got 17", shapes, m=[17])
    refused("m: no path for int8 has entries for 32 rows", shapes, activations=["int8"], path="planes", m=[32])
    refused("path: must be None or one of planes, s8, fp8, got 'f16'", shapes, path="f16")
    refused("path: 's8' is of quantised activations, got f16", shapes, path="s8")
    refused(
        "weights: planes take one scale for each row",
        shapes,
        weights=["int4 g64 f16"],
        activations=["int4"],
        path="planes",
    )
    refused(
        "weights: int8 activations take integer and bipolar weights", shapes, weights=["f6e3m2"], activations=["int8"]
    )
    refused("budget_s: must be None or a positive number of seconds, got 0", shapes, budget_s=0)
    refused("candidates: must be a whole number of at least 1, got 0", shapes, candidates=0)
    refused("tune_linear needs a GPU: there is none", shapes)
