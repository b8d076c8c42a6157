"""The time that deciding the width of an access takes; what is decided is tested in test/Conversion/LowlpToThread."""

import lowlp
from lowlp.compiler import compilation


def test_shared_terms_of_an_offset_are_looked_at_once() -> None:
    """Each sum uses the one before twice, so there are 2**60 paths from the last to the first."""
    sums = "".join(f"%x{i + 1} = arith.addi %x{i}, %x{i} : index\n" for i in range(60))
    kernel = compilation.compile_cpu(f"""
        lowlp.kernel @f(%p: !lowlp.ptr<f16> {{lowlp.align = 16 : i64}}, %m: i32)
            attributes {{grid = affine_map<(m) -> (1)>, num_threads = 32 : i64}} {{
          %x0 = arith.index_cast %m : i32 to index
          {sums}
          %v = lowlp.view_global %p shape [256] : !lowlp.ptr<f16> -> !lowlp.global<256xf16>
          %t = lowlp.load_global %v[%x60] : !lowlp.global<256xf16> -> !lowlp.tile<256xf16, {lowlp.spatial(32).local(8)}>
          lowlp.return
        }}""")
    assert kernel.description.name == "f"
