"""The block DSL: kernels for whole thread blocks, written in Python and traced into the block dialect.

    import lowlp
    from lowlp import language as ll

A function decorated with `lowlp.kernel` is a program that every block of a grid runs (Tilus, section 5). It is traced:
run once by Python with values that stand for what the kernel computes. So all of Python may shape the program
(functions, classes, constants of the enclosing function, comprehensions), and what is to happen when the kernel runs is
said with the names below, with operators on scalars and tiles, and with

    for i in ll.range(...)      one loop of the kernel; Python's `range` unrolls
    if, while, and, or, not     traced when the condition is a scalar of the kernel, else Python's own

A tile made from a `shape` in place of a `layout` is held as the instructions around it need it (docs/layouts.md).

Comparisons of tiles give tiles of uint1, which `where` takes; `sum`, `max` and `min` reduce a tile along one dimension.

Scalars are of type index, f32 or bool; see `Scalar`, `Tile`, `GlobalView`, `Range` for what they can do.
Errors are `lowlp.LowlpError`s that carry file and line of the kernel: `KernelValueError`, `KernelTypeError`,
`VerificationError`.
"""

from .bulk_copies import copy_bulk as copy_bulk
from .bulk_copies import copy_bulk_commit as copy_bulk_commit
from .bulk_copies import copy_bulk_to_global as copy_bulk_to_global
from .bulk_copies import copy_bulk_wait as copy_bulk_wait
from .bulk_copies import copy_tensor as copy_tensor
from .codebooks import Codebook as Codebook
from .codebooks import CodebookCache as CodebookCache
from .codebooks import load_codebook as load_codebook
from .codebooks import lookup_vectors as lookup_vectors
from .codebooks import switch_codebook as switch_codebook
from .control import assume as assume
from .control import assume_divisible as assume_divisible
from .control import assume_range as assume_range
from .control import exit_block as exit
from .control import print_tile as print_tile
from .control import print_values as print
from .control_flow import Range as Range
from .control_flow import Range as range
from .dependencies import launch_dependents as launch_dependents
from .dependencies import wait_for_dependencies as wait_for_dependencies
from .elementwise import absolute as abs
from .elementwise import clamp as clamp
from .elementwise import equal as equal
from .elementwise import exp as exp
from .elementwise import exp2 as exp2
from .elementwise import fma as fma
from .elementwise import log2 as log2
from .elementwise import maximum as maximum
from .elementwise import minimum as minimum
from .elementwise import not_equal as not_equal
from .elementwise import rescale as rescale
from .elementwise import rsqrt as rsqrt
from .elementwise import sqrt as sqrt
from .elementwise import tanh as tanh
from .elementwise import where as where
from .encode import encode as encode
from .gather import gather_global as gather_global
from .gather import load_scalar as load_scalar
from .gather import scatter_global as scatter_global
from .instructions import block_indices as block_indices
from .instructions import cast as cast
from .instructions import dot as dot
from .instructions import full as full
from .instructions import load_global as load_global
from .instructions import store_global as store_global
from .instructions import view as view
from .instructions import view_global as view_global
from .integers import count_leading_zeros as count_leading_zeros
from .integers import funnel_shift as funnel_shift
from .integers import popcount as popcount
from .kernel_schedule import KernelSchedule as KernelSchedule
from .kernels import Kernel as Kernel
from .kernels import inline as inline
from .kernels import kernel as kernel
from .kernels import make_kernel as make_kernel
from .lookups import add_lookups as add_lookups
from .lookups import expand_table as expand_table
from .lookups import lookup as lookup
from .lookups import lookup_pairs as lookup_pairs
from .mbarriers import Mbarriers as Mbarriers
from .mbarriers import alloc_mbarriers as alloc_mbarriers
from .mbarriers import fence_async as fence_async
from .mbarriers import mbarrier_arrive as mbarrier_arrive
from .mbarriers import mbarrier_expect_bytes as mbarrier_expect_bytes
from .mbarriers import mbarrier_wait as mbarrier_wait
from .order import alloc_global as alloc_global
from .order import atomic_rmw as atomic_rmw
from .order import exchange_in_cluster as exchange_in_cluster
from .order import semaphore_acquire as semaphore_acquire
from .order import semaphore_release as semaphore_release
from .packed import PackedView as PackedView
from .packed import load_packed as load_packed
from .packed import view_packed as view_packed
from .parameters import Parameter as Parameter
from .parameters import f32 as f32
from .parameters import i32 as i32
from .parameters import i64 as i64
from .parameters import integer as integer
from .parameters import pointer as pointer
from .reductions import broadcast_to as broadcast_to
from .reductions import convert_layout as convert_layout
from .reductions import iota as iota
from .reductions import part as part
from .reductions import reduce_max as max
from .reductions import reduce_min as min
from .reductions import reduce_sum as sum
from .reductions import transpose as transpose
from .scalars import Scalar as Scalar
from .scalars import ceildiv as ceildiv
from .shared import SharedTile as SharedTile
from .shared import alloc_shared as alloc_shared
from .shared import copy_async as copy_async
from .shared import copy_async_commit as copy_async_commit
from .shared import copy_async_wait as copy_async_wait
from .shared import load_shared as load_shared
from .shared import store_shared as store_shared
from .shared import synchronize as synchronize
from .shared import synchronize_warpgroups as synchronize_warpgroups
from .source import KernelError as KernelError
from .source import KernelTypeError as KernelTypeError
from .source import KernelValueError as KernelValueError
from .source import VerificationError as VerificationError
from .tiles import GlobalView as GlobalView
from .tiles import Pointer as Pointer
from .tiles import Tile as Tile
from .warp import ballot as ballot
from .warp import warp_shuffle as warp_shuffle
from .wgmma import Accumulators as Accumulators
from .wgmma import wgmma as wgmma
from .wgmma import wgmma_commit as wgmma_commit
from .wgmma import wgmma_wait as wgmma_wait

__all__ = [
    "Accumulators", "Codebook", "CodebookCache", "GlobalView", "Kernel", "KernelError", "KernelSchedule",
    "KernelTypeError", "KernelValueError", "Mbarriers", "PackedView", "Parameter", "Pointer", "Range", "Scalar",
    "SharedTile", "Tile", "VerificationError", "abs", "add_lookups", "alloc_global", "alloc_mbarriers",
    "alloc_shared", "assume", "assume_divisible", "assume_range", "atomic_rmw", "ballot", "block_indices",
    "broadcast_to", "cast", "ceildiv", "clamp", "convert_layout", "copy_async", "copy_async_commit",
    "copy_async_wait", "copy_bulk", "copy_bulk_commit", "copy_bulk_to_global", "copy_bulk_wait", "copy_tensor",
    "count_leading_zeros", "dot", "encode", "equal", "exchange_in_cluster", "exit", "exp", "exp2", "expand_table",
    "f32", "fence_async", "fma", "full", "funnel_shift", "gather_global", "i32", "i64", "inline", "integer", "iota",
    "kernel", "launch_dependents", "load_codebook", "load_global", "load_packed", "load_scalar", "load_shared",
    "log2", "lookup", "lookup_pairs", "lookup_vectors", "make_kernel", "max", "maximum", "mbarrier_arrive",
    "mbarrier_expect_bytes", "mbarrier_wait", "min", "minimum", "not_equal", "part", "pointer", "popcount", "print",
    "print_tile", "range", "rescale", "rsqrt", "scatter_global", "semaphore_acquire", "semaphore_release", "sqrt",
    "store_global", "store_shared", "sum", "switch_codebook", "synchronize", "synchronize_warpgroups", "tanh",
    "transpose", "view", "view_global", "view_packed", "wait_for_dependencies", "warp_shuffle", "wgmma",
    "wgmma_commit", "wgmma_wait", "where",
]  # fmt: skip
