"""Which measured schedules are taken: of which GPU, for which shape and weights, and whose."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpFileNotFoundError, LowlpTypeError, LowlpValueError
from lowlp.kernels.linear import choosing, measured
from lowlp.kernels.linear.candidates import candidates, for_rows
from lowlp.kernels.linear.choosing import kind_of, schedule_for
from lowlp.kernels.linear.estimates import estimated_us
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.ops import linear_on_cpu
from lowlp.tuning import measured as written

SPEC = LinearSpec(n=8192, k=8192, codec="int4 g128 f16", aligned=True)
M = 64
WIDE = [found for found in candidates(SPEC, M) if found.warpgroups and not found.has_tile_each]
"""Tiles that blocks share do for every shape near this one."""
H200, H100 = "NVIDIA H200", "NVIDIA H100 80GB HBM3"


@pytest.fixture(autouse=True)
def nothing_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_added", ())
    monkeypatch.delenv(measured.VARIABLE, raising=False)


@pytest.fixture
def nothing_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_shipped", tuple)


@pytest.fixture
def near_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured for a near shape is taken, whatever the estimate says of it."""
    monkeypatch.setattr(choosing, "_ABOUT", math.inf)


def entry(schedule: Schedule, spec: LinearSpec = SPEC, m: int = M, arch: str = "sm_90a") -> dict[str, Any]:
    fields = {name: value for name, value in dataclasses.asdict(schedule).items() if name != "columns"}
    return {"kind": kind_of(spec), "n": spec.n, "k": spec.k, "m": m, "arch": arch, "schedule": fields}


def write(path: Path, gpu: str, *entries: dict[str, Any]) -> Path:
    """As `lowlp tune` does."""
    path.unlink(missing_ok=True)
    table = written.MeasuredFile(path, gpu)
    for one in entries:
        table.put((one["kind"], one["n"], one["k"], one["m"]), {"arch": one["arch"], "schedule": one["schedule"]})
    return path


def choice(schedule: Schedule, spec: LinearSpec = SPEC, m: int = M) -> Schedule:
    """What is made of a measured schedule."""
    return for_rows(spec, schedule, m)


def shape(n: int, k: int) -> LinearSpec:
    return dataclasses.replace(SPEC, n=n, k=k)


# --- whose file -------------------------------------------------------------------------------------------------------


def test_a_file_of_ones_own_goes_before_the_shipped_one(tmp_path: Path) -> None:
    shipped = schedule_for(SPEC, M)
    first, second = (found for found in (WIDE[0], WIDE[-1]) if choice(found) != shipped)
    lowlp.use_tuned(write(tmp_path / "first.json", H200, entry(first)))
    assert schedule_for(SPEC, M) == schedule_for(SPEC, M, gpu=H200) == choice(first)
    # Later files go first, and one that is named again is read again.
    lowlp.use_tuned(str(write(tmp_path / "second.json", H200, entry(second))))
    assert schedule_for(SPEC, M) == choice(second)
    lowlp.use_tuned(tmp_path / "first.json")
    assert schedule_for(SPEC, M) == choice(first)
    lowlp.use_tuned(write(tmp_path / "first.json", H200, entry(second)))
    assert schedule_for(SPEC, M) == choice(second)
    assert len(measured.added_schedules()) == 2


def test_a_file_leaves_nearer_shapes_of_others_alone(tmp_path: Path) -> None:
    shipped = schedule_for(SPEC, M)
    lowlp.use_tuned(write(tmp_path / "mine.json", H200, entry(WIDE[-1], shape(8192, 4096))))
    assert schedule_for(SPEC, M) == shipped != choice(WIDE[-1])
    assert schedule_for(shape(8192, 4096), M) == choice(WIDE[-1], shape(8192, 4096))


def test_the_variable_names_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_file, in_folder, added = WIDE[0], WIDE[-1], WIDE[len(WIDE) // 2]
    file = write(tmp_path / "file.json", H200, entry(in_file))
    folder = tmp_path / "folder"
    for name, schedule in (("a", in_folder), ("b", in_file)):
        write(folder / f"{name}.json", H200, entry(schedule))
    (folder / "notes.txt").write_text("no schedules")
    for paths, wanted in (
        ([file], in_file),
        ([folder], in_folder),
        ([file, folder], in_file),
        ([folder, file], in_folder),
    ):
        # Empty parts name nothing.
        monkeypatch.setenv("LOWLP_TUNED", os.pathsep.join(["", *map(str, paths), ""]))
        assert schedule_for(SPEC, M) == choice(wanted)
    lowlp.use_tuned(write(tmp_path / "added.json", H200, entry(added)))
    assert schedule_for(SPEC, M) == choice(added)


def test_what_is_compiled_and_run_follows_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU target and ahead of time; and kernels of before are not given again."""
    spec = shape(256, 512)
    before = schedule_for(spec, 16)
    shared = [found for found in candidates(spec, 16) if found.share_tiles and choice(found, spec, 16) != before]
    first, second = shared[0], shared[-1]
    run: list[Schedule] = []
    kernel_of = linear_on_cpu.cpu_kernel
    monkeypatch.setattr(
        linear_on_cpu, "cpu_kernel", lambda spec, schedule: run.append(schedule) or kernel_of(spec, schedule)
    )
    qw = lowlp.quantize(np.random.default_rng(0).standard_normal((256, 512)).astype(np.float32), "int4", group_size=128)
    x = np.ones((16, 512), np.float16)

    def compiled(**options: Any) -> object:
        kernel = lowlp.compile_linear(n=256, k=512, weight="int4", m=(1, 16), **options)
        return kernel.description.notes["schedule"]

    notes, y = compiled(), lowlp.linear(x, qw)
    lowlp.use_tuned(write(tmp_path / "first.json", H200, entry(first, spec, 16)))
    of_first = compiled()
    assert compiled(gpu=H200) == of_first != notes
    lowlp.use_tuned(write(tmp_path / "second.json", H100, entry(second, spec, 16)))
    of_second = compiled()
    assert compiled(gpu=H100) == of_second and compiled(gpu=H200) == of_first != of_second != notes
    again = lowlp.linear(x, qw)
    assert run == [before, choice(second, spec, 16)]
    np.testing.assert_allclose(again.astype(np.float32), y.astype(np.float32), rtol=2e-3, atol=1e-2)
    with pytest.raises(LowlpTypeError, match="gpu: expected None or the name of a GPU, got 3"):
        compiled(gpu=3)
    with pytest.raises(LowlpValueError, match=f"gpu: expected a GPU that .*, {H100} or {H200}, got 'H2000'"):
        compiled(gpu="H2000")


# --- which entry ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("nothing_shipped", "near_is_enough")
def test_what_was_measured_on_the_gpu_in_use_goes_first(tmp_path: Path) -> None:
    here, there = WIDE[0], WIDE[-1]
    lowlp.use_tuned(write(tmp_path / "here.json", H200, entry(here, shape(8192, 4096))))
    lowlp.use_tuned(write(tmp_path / "there.json", H100, entry(there)))
    # Even where another GPU has a nearer shape; without a GPU all of the architecture count alike.
    assert schedule_for(SPEC, M, gpu=H200) == choice(here)
    assert schedule_for(SPEC, M, gpu=H100) == schedule_for(SPEC, M) == choice(there)
    # Of a GPU that nothing was measured on, what others of the architecture took.
    assert schedule_for(SPEC, M, gpu="NVIDIA GH200 480GB") == choice(there)
    # Where the GPU in use has nothing near, too.
    far = shape(8192 * 4, 8192)
    assert schedule_for(far, M, gpu=H200) == choice(there, far)


def test_own_entries_of_another_gpu_do_not_push_shipped_ones_of_this_aside(tmp_path: Path) -> None:
    shipped = schedule_for(SPEC, M, gpu=H200)
    lowlp.use_tuned(write(tmp_path / "there.json", H100, entry(WIDE[-1])))
    assert schedule_for(SPEC, M, gpu=H200) == shipped
    assert schedule_for(SPEC, M) == schedule_for(SPEC, M, gpu=H100) == choice(WIDE[-1]) != shipped


def not_estimated(spec: LinearSpec) -> Schedule:
    """A schedule that is not the best by estimate."""
    estimated = schedule_for(spec, M)
    return next(found for found in WIDE if choice(found, spec) != estimated)


@pytest.mark.usefixtures("nothing_shipped", "near_is_enough")
@pytest.mark.parametrize(
    ("n", "k", "near"),
    [
        (8192, 8192, True),
        (16384, 4096, True),
        (8192 * 4, 11520, True),  # 2 + 0.49 factors of two away
        (8192 * 4, 11648, False),  # 2 + 0.51
        (8192 // 4, 11520, True),
        (8192 // 4, 11648, False),
        (8192 * 8, 8192, False),
        (8192, 1024, False),
    ],
)
def test_a_near_shape_takes_what_was_measured_and_a_far_one_the_estimate(
    n: int, k: int, near: bool, tmp_path: Path
) -> None:
    spec = shape(n, k)
    estimated, measured = schedule_for(spec, M), not_estimated(spec)
    lowlp.use_tuned(write(tmp_path / "mine.json", H200, entry(measured)))
    assert schedule_for(spec, M) == (choice(measured, spec) if near else estimated)
    assert choice(measured, spec) != estimated


@pytest.mark.usefixtures("nothing_shipped")
def test_a_near_shape_takes_only_what_is_about_as_good_by_estimate(tmp_path: Path) -> None:
    near = shape(8192, 7168)
    estimated = schedule_for(near, M)
    by_cost = sorted(WIDE, key=lambda found: estimated_us(near, choice(found, near), M))
    lowlp.use_tuned(write(tmp_path / "slow.json", H200, entry(by_cost[-1])))
    assert schedule_for(near, M) == estimated != choice(by_cost[-1], near)
    # Where it was measured it is taken.
    assert schedule_for(SPEC, M) == choice(by_cost[-1])


@pytest.mark.usefixtures("nothing_shipped", "near_is_enough")
def test_of_near_shapes_the_nearest_is_taken(tmp_path: Path) -> None:
    near, far = WIDE[0], WIDE[-1]
    lowlp.use_tuned(write(tmp_path / "mine.json", H200, entry(far, shape(16384, 8192)), entry(near, shape(8192, 5120))))
    assert schedule_for(SPEC, M) == choice(near)
    assert schedule_for(shape(12288, 5120), M) == choice(near, shape(12288, 5120))
    assert schedule_for(shape(16384, 6400), M) == choice(far, shape(16384, 6400))


@pytest.mark.usefixtures("nothing_shipped")
@pytest.mark.parametrize(
    "change",
    [
        {"codec": "uint4 g128 f16"},
        {"codec": "int3 g128 f16"},
        {"codec": "uint4 g128 f16 zeros:uint8"},
        {"codec": "lut4:f32:tensor g128 f16"},
        {"codec": "int4 g64 f16"},
        {"codec": "int4 channel f16"},
        {"activation": "bf16", "out": "bf16"},
    ],
    ids=str,
)
def test_kinds_of_weights_are_not_mixed(change: dict[str, Any], tmp_path: Path) -> None:
    measured = not_estimated(SPEC)
    other = dataclasses.replace(SPEC, **change)
    estimated = schedule_for(other, M)
    lowlp.use_tuned(write(tmp_path / "mine.json", H200, entry(measured)))
    assert schedule_for(SPEC, M) == choice(measured)
    assert schedule_for(other, M, gpu=H200) == estimated
    # What is not of the kind: the type of the result, and what follows the accumulators.
    alike = dataclasses.replace(SPEC, out="f32", bias="f16")
    assert kind_of(alike) == kind_of(SPEC) != kind_of(other)


@pytest.mark.usefixtures("nothing_shipped")
def test_types_of_scales_have_entries_of_their_own(tmp_path: Path) -> None:
    """And take those of plain scales where they have none, if the schedule fits."""
    spec = dataclasses.replace(SPEC, codec=Codec.parse("int4 g32 f32"))
    on_weights = next(found for found in candidates(spec, M) if found.scales_on == "weights")
    lowlp.use_tuned(
        write(tmp_path / "plain.json", H200, entry(on_weights, dataclasses.replace(SPEC, codec="int4 g32 f16")))
    )
    assert schedule_for(spec, M) != choice(on_weights, spec)
    lowlp.use_tuned(write(tmp_path / "own.json", H200, entry(on_weights, spec)))
    assert schedule_for(spec, M) == choice(on_weights, spec)
    few = next(found for found in candidates(spec, 16) if choice(found, spec, 16) != schedule_for(spec, 16))
    lowlp.use_tuned(write(tmp_path / "few.json", H200, entry(few, dataclasses.replace(SPEC, codec="int4 g32 f16"), 16)))
    assert schedule_for(spec, 16) == choice(few, spec, 16)


@pytest.mark.usefixtures("nothing_shipped")
def test_classes_of_m_and_architectures_are_not_mixed(tmp_path: Path) -> None:
    measured = not_estimated(SPEC)
    path = tmp_path / "mine.json"
    for other in (entry(measured, m=32), entry(measured, m=128), entry(measured, arch="sm_100a")):
        estimated = schedule_for(SPEC, M)
        lowlp.use_tuned(write(path, H200, other))
        assert schedule_for(SPEC, M) == estimated != choice(measured)
    lowlp.use_tuned(write(path, H200, entry(measured)))
    assert schedule_for(SPEC, M - 1) == schedule_for(SPEC, M) == choice(measured)


# --- what is refused --------------------------------------------------------------------------------------------------


def changed(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data.update(fields)


def changed_entry(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["entries"][1].update(fields)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (changed(format=2), ": format: expected 1, got 2"),
        (lambda data: data.pop("gpu"), ": gpu: missing"),
        (changed(gpu=3), ": gpu: expected a text, got 3"),
        (changed(entries={}), ": entries: expected a list, got {}"),
        (lambda data: data["entries"].append(7), ": entry 3: expected an object, got 7"),
        (lambda data: data["entries"][1].pop("kind"), ": entry 2: kind: missing"),
        (changed_entry(n="8192"), ": entry 2: n: expected a whole number, got '8192'"),
        (changed_entry(k=True), ": entry 2: k: expected a whole number, got True"),
        (changed_entry(m=0), ": entry 2: m: must be at least 1, got 0"),
        (changed_entry(arch="sm_91"), ": entry 2: arch: unknown architecture 'sm_91'; known are sm_80, "),
        (changed_entry(schedule=[]), ": entry 2: schedule: expected an object, got []"),
        (changed_entry(schedule={"warp": 4}), ": entry 2: schedule: has no field 'warp'; known are columns, warps, "),
        (changed_entry(schedule={"warps": 17}), ": entry 2: schedule: warps: must be one of 1, 2, "),
    ],
)
def test_another_file_is_refused_by_file_entry_and_key(
    spoil: Callable[[dict[str, Any]], object], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = tmp_path / "a.json", tmp_path / "b.json"
    data = json.loads(write(good, H200, entry(WIDE[0]), entry(WIDE[0], m=32)).read_text())
    spoil(data)
    bad.write_text(json.dumps(data))
    for path in (bad, tmp_path):
        with pytest.raises(LowlpValueError) as error:
            lowlp.use_tuned(path)
        assert str(error.value).startswith(f"{bad}{says}")
    assert measured.added_schedules() == ()
    monkeypatch.setenv("LOWLP_TUNED", str(bad))
    for _ in range(2):
        with pytest.raises(LowlpValueError) as error:
            schedule_for(SPEC, M)
        assert str(error.value).startswith(f"LOWLP_TUNED: {bad}{says}")


def test_what_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "none.json"
    with pytest.raises(LowlpFileNotFoundError, match=r"No such file or directory: .*none\.json"):
        lowlp.use_tuned(path)
    with pytest.raises(
        LowlpValueError,
        match=r"path: expected a file of measured schedules or a folder of such files, \*\.json, and .* has none",
    ):
        lowlp.use_tuned(tmp_path)
    with pytest.raises(LowlpTypeError, match=r"path: expected a str or an os.PathLike, got int"):
        lowlp.use_tuned(3)  # type: ignore[arg-type]
    for text in ("[]", "no JSON", "\x80"):
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(LowlpValueError, match=r"none\.json: no measured schedules: "):
            lowlp.use_tuned(path)
    monkeypatch.setenv("LOWLP_TUNED", str(tmp_path / "other.json"))
    with pytest.raises(LowlpValueError, match=r"LOWLP_TUNED: .*other\.json: No such file or directory"):
        lowlp.compile_linear(n=256, k=512, weight="int4")


def test_shipped_files_name_their_gpus_and_the_largest_goes_first() -> None:
    of_h200, of_h100 = measured.measured_schedules()
    plain = [one for one in of_h200.entries if not one.kind.startswith("books ")]
    assert {one.gpu for one in of_h200.entries} == {H200} and len(plain) == 577
    assert {one.gpu for one in of_h100.entries} == {H100} and len(of_h100.entries) == 340


def test_each_gpu_takes_what_was_measured_on_it() -> None:
    shipped = measured.measured_schedules()
    for gpu, first in ((H200, H200), (H100, H100), ("", H200)):
        near = measured.nearest(shipped, "int4 g128 f16", 8192, 8192, 16, "sm_90a", gpu)
        assert near[0].gpu == first and {one.gpu for one in near} == {H100, H200}
