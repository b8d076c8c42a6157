"""Which assembler is used, and the two that are no program: nvJitLink, and the driver's linker on a fake driver."""

from __future__ import annotations

import pytest
from fake_driver import FakeDriver
from saved_kernel import add_one_ptx

from lowlp_runtime import AssembleError, LowlpValueError, assemble_ptx, linkers
from lowlp_runtime import assemble as assemble_module
from lowlp_runtime.assemble import ASSEMBLERS, assembler_identity, choose_assembler


class Fake:
    def __init__(self, name: str, missing: str = "") -> None:
        self.name, self.missing = name, missing

    def why_missing(self) -> str:
        return self.missing

    def version(self) -> str:
        return "1.0"

    def assemble(self, ptx: str, arch: str, opt_level: int) -> tuple[bytes, str]:
        return f"{self.name} {arch} -O{opt_level}".encode(), ""


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> dict[str, Fake]:
    """Three assemblers that can be used."""
    monkeypatch.delenv("LOWLP_ASSEMBLER", raising=False)
    fakes = {name: Fake(name) for name in ASSEMBLERS}
    monkeypatch.setattr(assemble_module, "_ASSEMBLERS", fakes)
    return fakes


def test_the_first_that_can_be_used_is(there: dict[str, Fake]) -> None:
    assert ASSEMBLERS == ("ptxas", "nvjitlink", "driver")
    for name in ASSEMBLERS:
        assert choose_assembler() == name
        done = assemble_ptx("", "sm_80", 1)
        assert (done.assembler, done.cubin) == (name, f"{name} sm_80 -O1".encode())
        assert assembler_identity() == f"{name} 1.0"
        there[name].missing = f"no {name} here"
    with pytest.raises(AssembleError, match=r"(?s)nothing to assemble PTX with.*no ptxas here.*no driver here"):
        choose_assembler()


def test_one_may_be_forced(there: dict[str, Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    assert assemble_ptx("", "sm_80", assembler="driver").assembler == "driver"
    monkeypatch.setenv("LOWLP_ASSEMBLER", "nvjitlink")
    assert choose_assembler() == "nvjitlink"
    assert choose_assembler("driver") == "driver"
    there["nvjitlink"].missing = "it is elsewhere"
    with pytest.raises(AssembleError, match="nvjitlink was asked for and cannot be used: it is elsewhere"):
        choose_assembler()
    with pytest.raises(LowlpValueError, match="assembler: expected one of ptxas, nvjitlink, driver, got 'nvcc'"):
        choose_assembler("nvcc")
    monkeypatch.setenv("LOWLP_ASSEMBLER", "nvcc")
    with pytest.raises(LowlpValueError, match="LOWLP_ASSEMBLER: expected one of"):
        choose_assembler()


# --- nvJitLink --------------------------------------------------------------------------------------------------------


@pytest.fixture
def nvjitlink() -> linkers.NvJitLink:
    linker = linkers.NvJitLink()
    return linker if not linker.why_missing() else pytest.skip(linker.why_missing())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_nvjitlink_assembles(nvjitlink: linkers.NvJitLink, arch: str) -> None:
    done = assemble_ptx(add_one_ptx(arch), arch, assembler="nvjitlink")
    assert done.cubin.startswith(b"\x7fELF")
    assert (done.assembler, list(done.functions)) == ("nvjitlink", ["add_one"])
    assert 4 <= done.registers <= 32
    assert assembler_identity("nvjitlink").startswith("nvjitlink 1")


def test_nvjitlink_says_what_it_refuses(nvjitlink: linkers.NvJitLink) -> None:
    wrong = add_one_ptx("sm_80").replace("add.u32", "bogus.u32")
    with pytest.raises(AssembleError, match=r"(?s)nvJitLink refused the PTX for sm_80.*line \d+.*bogus"):
        assemble_ptx(wrong, "sm_80", assembler="nvjitlink")
    with pytest.raises(AssembleError, match="nvJitLink refused its options -arch=sm_12 "):
        assemble_ptx(wrong, "sm_12", assembler="nvjitlink")


def test_nvjitlink_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImportError("no such module\nand more")

    monkeypatch.setattr(linkers.NvJitLink, "_module", staticmethod(missing))
    with pytest.raises(AssembleError, match=r"cannot be loaded \(no such module\); .*pip install nvidia-nvjitlink"):
        assemble_ptx("", "sm_80", assembler="nvjitlink")


# --- the driver -------------------------------------------------------------------------------------------------------


def test_driver_assembles(fake_driver: FakeDriver) -> None:
    done = assemble_ptx(add_one_ptx("sm_90a"), "sm_90a", opt_level=3, assembler="driver")
    assert (done.cubin, done.assembler) == (b"\x7fELF fake", "driver")
    assert done.registers == 11
    assert fake_driver.named("cuLinkCreate") == [("cuLinkCreate", "90A", 4, True)]
    assert [call[0] for call in fake_driver.calls] == ["cuLinkCreate", "cuLinkAddData", "cuLinkDestroy"]
    assert fake_driver.calls[1][1].endswith(b"\0")
    assert fake_driver.contexts == []
    assert assembler_identity("driver").startswith("driver 13000")


def test_driver_says_what_it_refuses(fake_driver: FakeDriver) -> None:
    fake_driver.jit_error = b"ptxas error: bogus"
    with pytest.raises(AssembleError, match=r"(?s)the driver refused the PTX for sm_90a.*ptxas error: bogus"):
        assemble_ptx("", "sm_90a", assembler="driver")
    assert fake_driver.named("cuLinkDestroy")
    with pytest.raises(AssembleError, match="know no target sm_75"):
        assemble_ptx("", "sm_75", assembler="driver")


def test_driver_needs_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lowlp_runtime.device.why_no_device", lambda: "there is none")
    with pytest.raises(AssembleError, match="driver was asked for and cannot be used: needs a GPU: there is none"):
        assemble_ptx("", "sm_80", assembler="driver")
