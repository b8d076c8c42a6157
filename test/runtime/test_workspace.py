"""Workspaces: where their parts lie, who shares them, and when they grow."""

from __future__ import annotations

import json

import pytest
from fake_driver import FakeDriver
from saved_kernel import describe

from lowlp_runtime import KernelBinary, KernelDescription, LowlpTypeError, LowlpValueError, WorkspacePart, launch

FAR = 0x7F0000000000
N = ("param", "n")
PARTS = (
    WorkspacePart("sums", ("*", N, 4)),
    WorkspacePart("locks", ("*", ("ceildiv", N, 128), 4), zeroed=True),
    WorkspacePart("rest", 100),
    WorkspacePart("flags", 300, zeroed=True),
)


def with_workspace(kernel: KernelBinary, *parts: WorkspacePart) -> KernelBinary:
    return KernelBinary(describe(workspace=parts), cubins=kernel.cubins)


@pytest.fixture
def gpu(fake_driver: FakeDriver) -> FakeDriver:
    fake_driver.reads_workspace = True
    return fake_driver


def pointers(gpu: FakeDriver) -> list[int]:
    return [entry["workspace"] for entry in gpu.launches]


def test_layout() -> None:
    layout = describe(workspace=PARTS).lay_out_workspace({"n": 1000})
    assert (layout.zeroed_bytes, layout.scratch_bytes) == (256 + 512, 4096 + 256)
    assert [(placed.part.name, placed.offset_bytes, placed.size_bytes) for placed in layout.parts] == [
        ("sums", 0, 4000),
        ("locks", -256, 32),
        ("rest", 4096, 100),
        ("flags", -768, 300),
    ]


def test_saved_kernels_carry_it(kernel: KernelBinary) -> None:
    description = describe(workspace=list(PARTS))
    assert KernelDescription.from_json(json.loads(json.dumps(description.to_json()))) == description
    saved = with_workspace(kernel, *PARTS)
    assert KernelBinary.from_bytes(saved.to_bytes()).description.workspace == PARTS
    assert saved.content_hash != with_workspace(kernel).content_hash


def test_files_from_before_have_none() -> None:
    data = describe().to_json()
    del data["workspace"]
    assert KernelDescription.from_json(data).workspace == ()


def test_refuses_wrong_parts() -> None:
    with pytest.raises(LowlpValueError, match="workspace: 'm' is no integer parameter; integer parameters: n"):
        describe(workspace=(WorkspacePart("x", ("param", "m")),))
    with pytest.raises(LowlpTypeError, match="workspace: expected a sequence of WorkspacePart"):
        describe(workspace=[{"name": "x"}])
    with pytest.raises(LowlpTypeError, match="zeroed a bool"):
        WorkspacePart("x", 4, zeroed=1)  # type: ignore[arg-type]
    with pytest.raises(LowlpTypeError, match="workspace: expected a list, got str"):
        KernelDescription.from_json({**describe().to_json(), "workspace": "x"})
    with pytest.raises(LowlpValueError, match="workspace: x has -4 bytes for n=-1"):
        describe(workspace=(WorkspacePart("x", ("*", N, 4)),)).lay_out_workspace({"n": -1})


def test_the_pointer_lies_between_what_is_zero_and_the_rest(kernel: KernelBinary, gpu: FakeDriver) -> None:
    launch(with_workspace(kernel, *PARTS), [FAR, 1000], stream=5)
    (begin,) = {call[1] for call in gpu.named("cuMemsetD8Async")}
    assert pointers(gpu) == [begin + 768]
    assert gpu.named("cuMemAllocAsync") == [("cuMemAllocAsync", 768 + 4352, 5)]
    assert gpu.named("cuMemsetD8Async") == [("cuMemsetD8Async", begin, 0, 768, 5)]
    assert (gpu.launches[0]["out"], gpu.launches[0]["n"]) == (FAR, 1000)


def test_launches_of_a_stream_share_it_and_streams_do_not(kernel: KernelBinary, gpu: FakeDriver) -> None:
    small = with_workspace(kernel, WorkspacePart("sums", 64))
    for stream in (5, 5, 6, 0, 5):
        launch(with_workspace(kernel, *PARTS) if stream == 0 else small, [FAR, 1000], stream=stream)
    first, second, other, default, third = pointers(gpu)
    assert first == second == third
    assert len({first, other, default}) == 3
    assert not gpu.named("cuMemFreeAsync")
    launch(small, [(1 << 40) + FAR, 1], stream=5)  # another device
    assert pointers(gpu)[-1] not in {first, other, default}


def test_a_stream_with_the_handle_of_an_old_one_is_another(kernel: KernelBinary, gpu: FakeDriver) -> None:
    small = with_workspace(kernel, WorkspacePart("sums", 64))
    launch(small, [FAR, 1], stream=5)
    gpu.stream_ids[5] = 77
    launch(small, [FAR, 1], stream=5)
    assert pointers(gpu)[0] != pointers(gpu)[1]


def test_both_handles_of_the_default_stream_mean_one_stream(kernel: KernelBinary, gpu: FakeDriver) -> None:
    small = with_workspace(kernel, WorkspacePart("sums", 64))
    for stream in (0, 1, None):
        launch(small, [FAR, 1000], stream=stream)
    assert len(set(pointers(gpu))) == 1


def test_it_grows_in_the_order_of_the_stream_and_never_shrinks(kernel: KernelBinary, gpu: FakeDriver) -> None:
    scratch = with_workspace(kernel, WorkspacePart("sums", ("*", N, 4)))
    zeroed = with_workspace(kernel, WorkspacePart("locks", 300, zeroed=True))
    launch(scratch, [FAR, 1000], stream=5)
    launch(scratch, [FAR, 10], stream=5)
    launch(zeroed, [FAR, 1], stream=5)
    launch(scratch, [FAR, 1000], stream=5)
    before, again, grown, last = pointers(gpu)
    assert before == again
    assert grown == last != before
    assert gpu.named("cuMemAllocAsync") == [("cuMemAllocAsync", 4096, 5), ("cuMemAllocAsync", 512 + 4096, 5)]
    assert gpu.named("cuMemFreeAsync") == [("cuMemFreeAsync", before, 5)]
    assert gpu.named("cuMemsetD8Async") == [("cuMemsetD8Async", grown - 512, 0, 512, 5)]


def test_a_captured_graph_owns_its_own(kernel: KernelBinary, gpu: FakeDriver) -> None:
    saved = with_workspace(kernel, *PARTS)
    launch(saved, [FAR, 100], stream=5)
    gpu.captures[5] = 1
    launch(saved, [FAR, 100], stream=5)
    launch(saved, [FAR, 100], stream=5)
    launch(saved, [FAR, 5000], stream=5)  # grows: what was captured keeps the old one
    gpu.captures[5] = 2
    launch(saved, [FAR, 100], stream=5)
    del gpu.captures[5]
    launch(saved, [FAR, 100], stream=5)
    outside, first, second, grown, other, back = pointers(gpu)
    assert first == second
    assert outside == back
    assert len({outside, first, grown, other}) == 4
    # Nothing of it is put on the stream, where it would become a part of the graph.
    assert [call[2] for call in gpu.named("cuMemAllocAsync")] == [5]
    assert not gpu.named("cuMemFreeAsync")
    assert [call[4] for call in gpu.named("cuMemsetD8Async")] == [5, "side stream", "side stream", "side stream"]
    assert len(gpu.named("cuStreamSynchronize")) == len(gpu.named("cuMemAlloc")) == 3
    assert [call[1] for call in gpu.named("cuThreadExchangeStreamCaptureMode")] == [2, 0] * 3


def test_kernels_without_one_ask_for_none(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    launch(kernel, [FAR, 1000], stream=5)
    assert not fake_driver.named("cuMemAllocAsync")
