"""A small kernel that the tests of this folder share: it adds 1 to n integers."""

import pytest

from lowlp_runtime import KernelBinary, KernelDescription, Parameter

ADD_ONE_PTX = """
.version {version}
.target {arch}
.address_size 64
.visible .entry add_one(.param .u64 out, .param .u32 n)
{{
  .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<3>;
  ld.param.u64 %d0, [out];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r1, %r2, %r3, %r1;
  setp.ge.u32 %p, %r1, %r0;
  @%p bra done;
  mul.wide.u32 %d1, %r1, 4;
  add.u64 %d0, %d0, %d1;
  ld.global.u32 %r4, [%d0];
  add.u32 %r4, %r4, 1;
  st.global.u32 [%d0], %r4;
done:
  ret;
}}
"""


def add_one_ptx(arch: str) -> str:
    return ADD_ONE_PTX.format(arch=arch, version="8.0" if arch.startswith("sm_9") else "7.8")


def describe(**changes: object) -> KernelDescription:
    fields: dict[str, object] = {
        "name": "add_one",
        "parameters": (Parameter("out", "pointer", "i32", 16, writable=True), Parameter("n", "i32")),
        "grid": (("ceildiv", ("param", "n"), 128), 1, 1),
        "block": (128, 1, 1),
        "shared_bytes": 0,
        "compiler_version": "0.1.0",
        "notes": {"plan": {"bits": 6, "steps": ["lop3", "prmt"]}},
    }
    return KernelDescription(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.fixture
def kernel() -> KernelBinary:
    ptx = {"sm_80": add_one_ptx("sm_80"), "sm_90a": add_one_ptx("sm_90a")}
    return KernelBinary(describe(), ptx=ptx, cubins={"sm_90a": bytes(range(256)) * 5}, ir={"block": "module {}\n"})
