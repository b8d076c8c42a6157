"""mbarriers: barriers in shared memory that count arrivals and bytes, phase by phase (PTX ISA, "mbarrier")."""

from __future__ import annotations

from lowlp._mlir import ir

from .scalars import Scalar, as_index, describe, is_int
from .source import type_error, value_error
from .tracing import Trace, TracedValue, current_trace

_MAX_MBARRIERS = 1024
_MAX_COUNT = (1 << 20) - 1


class Mbarriers(TracedValue):
    """Several mbarriers in the block's shared memory."""

    __slots__ = ("count",)

    def __init__(self, trace: Trace, value: ir.Value, count: int) -> None:
        super().__init__(trace, value)
        self.count = count

    def describe(self) -> str:
        """What the value is, for messages."""
        return f"{self.count} mbarriers"

    def like(self, value: ir.Value) -> Mbarriers:
        """Another value of the same type, of the innermost region."""
        return Mbarriers(self._trace, value, self.count)


def _count(argument: str, value: object, limit: int) -> int:
    if not is_int(value) or not 1 <= value <= limit:  # type: ignore[operator]
        raise value_error(f"{argument}: must be an int from 1 to {limit}, found {describe(value)}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def as_mbarrier(barriers: object, index: object) -> list[TracedValue]:
    """The mbarriers and the index of one of them. Raises KernelTypeError and KernelValueError for others."""
    if not isinstance(barriers, Mbarriers):
        raise type_error(f"barriers: must be made by ll.alloc_mbarriers, found {describe(barriers)}")
    if is_int(index) and not 0 <= index < barriers.count:  # type: ignore[operator]
        raise value_error(f"index: must be 0 to {barriers.count - 1}, found {index}")
    return [barriers, as_index("index", index)]


def alloc_mbarriers(count: int, *, arrivals: int) -> Mbarriers:
    """Makes `count` mbarriers, for as long as the block runs; the block uses them after the next `synchronize`.

    arrivals  how many arrivals a phase takes, 1 to 2**20 - 1: `mbarrier_arrive` is one of each thread of the block,
              `mbarrier_expect_bytes` a single one

    A phase is complete when these have come and all bytes that were announced; then the next one begins. Stands in the
    body of the kernel, in no loop or branch. Raises KernelValueError for other arguments.
    """
    trace = current_trace("ll.alloc_mbarriers")
    number = _count("count", count, _MAX_MBARRIERS)
    attributes = {"arrivals": _i64(_count("arrivals", arrivals, _MAX_COUNT))}
    made = trace.emit("lowlp.alloc_mbarriers", [trace.type(f"!lowlp.mbarriers<{number}>")], attributes=attributes)
    return Mbarriers(trace, made.results[0], number)


def mbarrier_arrive(barriers: Mbarriers, index: int | Scalar) -> None:
    """Every thread of the block arrives at mbarrier `index`, and does not wait.

    What a thread did before is done for all that wait for the phase. Raises KernelTypeError and KernelValueError for
    other arguments.
    """
    operands = [operand.ir_value for operand in as_mbarrier(barriers, index)]
    current_trace("ll.mbarrier_arrive").emit("lowlp.mbarrier_arrive", [], operands)


def mbarrier_expect_bytes(barriers: Mbarriers, index: int | Scalar, *, num_bytes: int) -> None:
    """The first thread arrives at mbarrier `index` and announces `num_bytes` bytes, 1 to 2**20 - 1.

    The phase is complete only when bulk copies have brought them. Raises KernelTypeError and KernelValueError for other
    arguments.
    """
    operands = [operand.ir_value for operand in as_mbarrier(barriers, index)]
    attributes = {"bytes": _i64(_count("num_bytes", num_bytes, _MAX_COUNT))}
    current_trace("ll.mbarrier_expect_bytes").emit("lowlp.mbarrier_expect_bytes", [], operands, attributes)


def mbarrier_wait(barriers: Mbarriers, index: int | Scalar, *, parity: int | Scalar) -> None:
    """Every thread waits for a phase of mbarrier `index`.

    parity  the number of the phase, counted from 0, of which only the lowest bit counts: the wait is for the current
            phase or, if its number has the other parity, for the one before, which is complete. So a wait with parity
            1 at a new mbarrier returns at once

    What arrived threads did before, and the bytes of bulk copies, are then visible. Raises KernelTypeError and
    KernelValueError for other arguments.
    """
    operands = [*as_mbarrier(barriers, index), as_index("parity", parity)]
    current_trace("ll.mbarrier_wait").emit("lowlp.mbarrier_wait", [], [operand.ir_value for operand in operands])


def fence_async() -> None:
    """Every thread orders its loads and stores of shared memory before later bulk copies (PTX ISA, "Async proxy").

    Between a store and a `copy_bulk_to_global`, or a load or store and a `copy_bulk` or `copy_tensor` over the same
    bytes, lies this fence, beside what orders the threads.
    """
    current_trace("ll.fence_async").emit("lowlp.fence_async")
