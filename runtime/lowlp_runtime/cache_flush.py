"""Reading a buffer, so that the L2 cache holds nothing else.

Filling the buffer would evict as much, but leaves lines in the cache that are not in memory yet. Whatever runs next
evicts them and pays for writing them, which takes 6 us of a kernel that reads 100 MB and more (H200).
"""

from __future__ import annotations

import array
import functools
from typing import Any

from lowlp_runtime.driver import call

_THREADS = 512
_BLOCKS = 1024

# Sums words of 16 bytes; the store keeps the loads alive, and is not done for a buffer of zeros.
_PTX = f"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry read_all(.param .u64 first, .param .u64 behind) {{
  .reg .pred more, found;
  .reg .b32 block, thread, a, b, c, d, sum;
  .reg .b64 at, end, begin, step;
  ld.param.u64 begin, [first];
  ld.param.u64 end, [behind];
  cvta.to.global.u64 begin, begin;
  cvta.to.global.u64 end, end;
  mov.u32 block, %ctaid.x;
  mov.u32 thread, %tid.x;
  mad.lo.u32 thread, block, {_THREADS}, thread;
  mul.wide.u32 at, thread, 16;
  add.u64 at, at, begin;
  mov.u32 sum, 0;
  setp.ge.u64 more, at, end;
  @more bra done;
again:
  ld.global.v4.u32 {{a, b, c, d}}, [at];
  or.b32 a, a, b;
  or.b32 c, c, d;
  or.b32 sum, sum, a;
  or.b32 sum, sum, c;
  add.u64 at, at, {_THREADS * _BLOCKS * 16};
  setp.lt.u64 more, at, end;
  @more bra again;
done:
  setp.ne.u32 found, sum, 0;
  @found st.global.u32 [begin], sum;
  ret;
}}
"""


class FlushBuffer:
    """A buffer of zeros in the current context that takes the place of all else in the L2 cache when it is read.

    num_bytes  several times the size of the cache, a multiple of 16
    """

    def __init__(self, num_bytes: int) -> None:
        self._function = _load(int(call("cuCtxGetCurrent")))
        self._pointer: Any = call("cuMemAlloc", num_bytes)
        call("cuMemsetD8", self._pointer, 0, num_bytes)
        begin = int(self._pointer)
        self._values = array.array("Q", [begin, begin + num_bytes])
        first = self._values.buffer_info()[0]
        self._arguments = array.array("Q", [first, first + self._values.itemsize])

    def read(self, stream: object) -> None:
        """Puts one reading of all of it on a stream."""
        grid, block = (_BLOCKS, 1, 1), (_THREADS, 1, 1)
        call("cuLaunchKernel", self._function, *grid, *block, 0, stream, self._arguments.buffer_info()[0], 0)

    def free(self) -> None:
        """Gives the memory back; the buffer is of no use afterwards."""
        call("cuMemFree", self._pointer)


@functools.cache
def _load(context: int) -> Any:
    """The function, in the context."""
    module = call("cuModuleLoadData", _PTX.encode() + b"\0")
    return call("cuModuleGetFunction", module, b"read_all")
