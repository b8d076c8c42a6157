"""Which code a device is given, and that it is loaded once."""

import dataclasses
import threading

import pytest
from fake_driver import FakeDriver
from saved_kernel import describe

from lowlp_runtime import DeviceError, KernelBinary, LowlpValueError, load_kernel
from lowlp_runtime.module import cubin_runs_on, ptx_runs_on, select_image, split_arch
from lowlp_runtime.ptx_version import cuda_for, cuda_of, newest_ptx, version_of


def test_split_arch() -> None:
    assert split_arch("sm_90a") == (9, 0, "a")
    assert split_arch("sm_103f") == (10, 3, "f")
    with pytest.raises(LowlpValueError, match="arch: expected"):
        split_arch("sm_9x")


@pytest.mark.parametrize(
    ("arch", "capability", "cubin", "ptx"),
    [
        ("sm_90a", (9, 0), True, True),
        ("sm_90a", (10, 0), False, False),
        ("sm_100a", (10, 3), False, False),
        ("sm_100f", (10, 3), True, True),
        ("sm_100f", (12, 0), False, False),
        ("sm_80", (8, 0), True, True),
        ("sm_80", (8, 9), True, True),
        ("sm_86", (8, 0), False, False),
        ("sm_86", (8, 7), False, True),
        ("sm_80", (9, 0), False, True),
    ],
)
def test_what_runs_where(arch: str, capability: tuple[int, int], cubin: bool, ptx: bool) -> None:
    assert cubin_runs_on(arch, capability) is cubin
    assert ptx_runs_on(arch, capability) is ptx


def test_selection_prefers_machine_code_and_the_nearest_architecture() -> None:
    code = KernelBinary(
        describe(), ptx={"sm_80": "", "sm_90": ""}, cubins={"sm_80": b"", "sm_90": b"", "sm_90a": b"", "sm_86": b""}
    )
    assert select_image(code, (9, 0)) == ("cubin", "sm_90a")
    assert select_image(code, (8, 9)) == ("cubin", "sm_86")
    assert select_image(code, (8, 0)) == ("cubin", "sm_80")
    assert select_image(code, (12, 0)) == ("ptx", "sm_90")


def test_nothing_for_the_device() -> None:
    code = KernelBinary(describe(), ptx={"sm_90a": ""}, cubins={"sm_90a": b""})
    with pytest.raises(DeviceError, match=r"nothing for compute capability 8\.0; it holds cubin sm_90a, PTX sm_90a"):
        select_image(code, (8, 0))


def test_loaded_once_by_many_threads(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    fake_driver.contexts = [100]
    threads = [threading.Thread(target=load_kernel, args=(kernel,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal = KernelBinary.from_bytes(kernel.to_bytes())
    assert load_kernel(equal) is load_kernel(kernel, 0)
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 1
    assert load_kernel(kernel, 1).device == 1
    assert load_kernel(kernel).arch == "sm_90a"


def test_unknown_device(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    with pytest.raises(LowlpValueError, match=r"device: must be in 0\.\.1, got 2"):
        load_kernel(kernel, 2)


def test_an_old_driver_compiles_the_ptx_itself(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    fake_driver.version, fake_driver.loads_cubins = 12040, False
    loaded = load_kernel(kernel)
    assert (loaded.image_kind, loaded.arch) == ("ptx", "sm_90a")
    fake_driver.version = 13000
    with pytest.raises(DeviceError, match=r"cubin for sm_90a .* cannot be loaded: CUDA_ERROR_INVALID_IMAGE"):
        load_kernel(kernel, 1)


def test_what_an_old_driver_cannot_compile(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    fake_driver.version, fake_driver.loads_cubins = 12040, False
    newer = kernel.ptx["sm_90a"].replace(".version 8.0", ".version 8.6")
    later = dataclasses.replace(kernel, ptx={"sm_90a": newer})
    with pytest.raises(DeviceError, match=r"is of version 8\.6, .* compiles up to 8\.4: update .* CUDA 12\.7 or newer"):
        load_kernel(later)
    with pytest.raises(DeviceError, match=r"driver is of CUDA 12\.4, .*holds no PTX for this GPU: update the driver"):
        load_kernel(dataclasses.replace(kernel, ptx={}))


def test_versions_of_ptx() -> None:
    assert [newest_ptx(cuda_of(number)) for number in (10020, 11080, 12060, 12070, 13000)] == [
        (0, 0), (7, 8), (8, 5), (8, 6), (9, 0),
    ]  # fmt: skip
    assert (cuda_for((8, 7)), cuda_for((99, 0))) == ((12, 8), None)
    assert (version_of("// a\n.version 8.6\n.target sm_90a"), version_of(".target sm_80")) == ((8, 6), None)
