"""PTX becomes a cubin with ptxas; no GPU is needed."""

from pathlib import Path

import pytest
from saved_kernel import add_one_ptx

from lowlp_runtime import AssembleError, LowlpTypeError, LowlpValueError, assemble_ptx
from lowlp_runtime import assemble as assemble_module
from lowlp_runtime.assemble import FunctionResources, parse_resources


@pytest.fixture
def ptxas() -> None:
    try:
        assemble_module.find_ptxas()
    except AssembleError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.usefixtures("ptxas")
def test_assemble(arch: str) -> None:
    done = assemble_ptx(add_one_ptx(arch), arch)
    assert done.cubin.startswith(b"\x7fELF")
    assert done.arch == arch
    assert list(done.functions) == ["add_one"]
    assert 4 <= done.registers <= 32
    assert (done.spill_bytes, done.shared_bytes) == (0, 0)
    assert "Compiling entry function 'add_one'" in done.log


@pytest.mark.usefixtures("ptxas")
def test_static_shared_memory_is_reported() -> None:
    ptx = add_one_ptx("sm_80").replace(".reg .pred %p;", ".shared .align 4 .b8 tile[1024]; .reg .pred %p;")
    ptx = ptx.replace("st.global.u32 [%d0], %r4;", "st.shared.u32 [tile], %r4; ld.shared.u32 %r4, [tile];")
    assert assemble_ptx(ptx, "sm_80").shared_bytes == 1024


@pytest.mark.usefixtures("ptxas")
def test_optimisation_level_reaches_ptxas() -> None:
    assert (
        assemble_ptx(add_one_ptx("sm_80"), "sm_80", opt_level=0).cubin
        != assemble_ptx(add_one_ptx("sm_80"), "sm_80", opt_level=3).cubin
    )


@pytest.mark.usefixtures("ptxas")
def test_error_carries_the_text_of_ptxas() -> None:
    with pytest.raises(AssembleError, match=r"(?s)refused the PTX for sm_80.*kernel\.ptx, line \d+.*bogus"):
        assemble_ptx(add_one_ptx("sm_80").replace("add.u32", "bogus.u32"), "sm_80")


def test_arguments_are_checked() -> None:
    with pytest.raises(LowlpValueError, match="arch: expected a name such as"):
        assemble_ptx("", "compute_80")
    with pytest.raises(LowlpValueError, match=r"opt_level: must be in 0\.\.3, got 4"):
        assemble_ptx("", "sm_80", opt_level=4)
    with pytest.raises(LowlpTypeError, match="ptx: expected str, got bytes"):
        assemble_ptx(b"", "sm_80")  # type: ignore[arg-type]


def test_missing_ptxas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble_module, "_candidates", lambda: iter(()))
    assemble_module.find_ptxas.cache_clear()
    try:
        with pytest.raises(AssembleError, match="pip install nvidia-cuda-nvcc"):
            assemble_ptx("", "sm_80", assembler="ptxas")
    finally:
        assemble_module.find_ptxas.cache_clear()


def test_parse_resources_of_several_entries() -> None:
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90a'
ptxas info    : Function properties for a
    48 bytes stack frame, 24 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 48 bytes cumulative stack size, 49152 bytes smem
ptxas info    : Compile time = 3.896 ms
ptxas info    : Compiling entry function 'b' for 'sm_90a'
ptxas info    : Function properties for b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 364 bytes cmem[0]
"""
    assert parse_resources(log) == {
        "a": FunctionResources(255, 48, 24, 20, 49152),
        "b": FunctionResources(8, 0, 0, 0, 0),
    }


@pytest.mark.usefixtures("ptxas")
def test_no_room_for_temporary_files_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(AssembleError, match=r"the temporary files of ptxas cannot be written: .*missing"):
        assemble_ptx(add_one_ptx("sm_80"), "sm_80", assembler="ptxas")
