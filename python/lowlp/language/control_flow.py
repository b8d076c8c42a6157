"""Control flow of rewritten kernels: what runs in Python, and what becomes scf.for, scf.if and scf.while.

`rewriting` turns the loops and branches of a kernel into calls of this module, whose bodies are functions that share
the variables of the kernel. Which way one goes is known when the kernel is traced: a loop over `ll.range` and a
condition that is a scalar are traced, all others are Python's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lowlp._mlir import ir

from .scalars import Scalar, as_index, convert, describe, is_int, known_nonnegative, logical
from .source import Place, here, type_error, value_error
from .tracing import Scope, current_trace, is_tracing
from .variables import Carried, Carry, Merge, Variables, in_new_containers

__all__ = ["Range", "Variables"]

MAX_STAGES = 9
MAX_BLOCKS = 8
"""Of a cluster."""


class Range:
    """The numbers of a traced loop; `for i in ll.range(...)` becomes one loop of the kernel.

    range(stop), range(start, stop), range(start, stop, step): ints or index scalars; the step is positive.

    Variables that the body assigns, and that have a value before, are carried from one iteration to the next and must
    keep their type: scalars, tiles and numbers, also in lists, tuples and dicts. The others, the loop variable
    included, have no value after the loop. `break`, `continue`, `return` and `else` are not allowed. Python's own
    `range` unrolls a loop instead.

    stages    2 to 9: loads of global memory in the body are begun so many iterations less one ahead, through shared
              memory (the pass `lowlp-pipeline` says which); 0 leaves them as they are
    producer  with stages: one more warp begins these loads, where the architecture has tensor copies
    multicast with a producer: the number of blocks of the kernel's clusters, 2 to 8, which make loads that are the same
              in all of them once for all, each block an equal part, where offsets and bounds follow from parameters
              and the number of the cluster, `block // multicast`; 1: every block loads for itself

    Raises KernelTypeError and KernelValueError for other arguments.
    """

    def __init__(self, *bounds: int | Scalar, stages: int = 0, producer: bool = False, multicast: int = 1) -> None:
        if not is_int(stages):
            raise type_error(f"stages: must be an int, found {describe(stages)}")
        if stages != 0 and not 2 <= stages <= MAX_STAGES:
            raise value_error(f"stages: must be 0 or 2 to {MAX_STAGES}, found {stages}")
        if not isinstance(producer, bool):
            raise type_error(f"producer: must be a bool, found {describe(producer)}")
        if producer and not stages:
            raise value_error("producer: needs stages")
        if not is_int(multicast):
            raise type_error(f"multicast: must be an int, found {describe(multicast)}")
        if not 1 <= multicast <= MAX_BLOCKS:
            raise value_error(f"multicast: must be 1 to {MAX_BLOCKS}, found {multicast}")
        if multicast > 1 and not producer:
            raise value_error("multicast: needs a producer")
        self.multicast = int(multicast)
        self.stages = int(stages)
        self.producer = producer
        if not 1 <= len(bounds) <= 3:
            raise type_error(f"ll.range: takes 1 to 3 arguments, found {len(bounds)}")
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        self.start = as_index("start", start)
        self.stop = as_index("stop", stop)
        self.step = as_index("step", step)
        self.is_nonnegative = known_nonnegative(start)
        if not isinstance(step, Scalar) and step < 1:
            raise value_error(f"step: must be positive, found {step}")

    def __iter__(self) -> Iterator[Scalar]:
        raise type_error(
            "ll.range is traced only as `for ... in ll.range(...)`, in a kernel or in a function decorated with "
            "@ll.inline; use Python's range for a loop that is unrolled"
        )


# --- loops ------------------------------------------------------------------------------------------------------------


def for_loop(
    iterable: Iterable[object], body: Callable[[object], None], variables: Variables, targets: Sequence[str]
) -> None:
    """`for targets in iterable: body`."""
    if not isinstance(iterable, Range):
        for item in iterable:
            body(item)
        return
    trace = current_trace("ll.range")
    what = f"loop at line {here().line}"
    carry = Carry(variables, what, targets)
    operands = [iterable.start, iterable.stop, iterable.step, *carry.initial]
    attributes: dict[str, ir.Attribute] = {}
    if iterable.stages:
        producer = ", producer = true" if iterable.producer else ""
        attributes["lowlp.stages"] = ir.Attribute.parse(f"#lowlp.stages<{iterable.stages}{producer}>")
    if iterable.multicast > 1:
        attributes["lowlp.multicast"] = ir.Attribute.parse(f"#lowlp.multicast<{iterable.multicast}>")
    values = [operand.ir_value for operand in operands]
    operation = trace.emit("scf.for", _types(carry.initial), values, attributes, regions=1)
    block = _append_block(operation.regions[0], [trace.type("index"), *_types(carry.initial)], operation.location)
    with trace.opened(Scope(block, what)):
        carry.enter(_wrap(carry.initial, block.arguments[1:]))
        body(Scalar(trace, block.arguments[0], "index", iterable.is_nonnegative))
        trace.emit("scf.yield", operands=[value.ir_value for value in carry.leave()])
    carry.exit(_wrap(carry.initial, operation.results))


def while_loop(test: Callable[[], object], body: Callable[[], None], variables: Variables) -> None:
    """`while test: body`. Iterations are Python's own until the condition is a scalar."""
    while True:
        condition = _try_condition(test)
        if isinstance(condition, Scalar):
            _traced_while(test, body, variables)
            return
        if not condition:
            return
        body()


def _try_condition(test: Callable[[], object]) -> object:
    """The condition before the loop; what a scalar one leaves in the IR is of no use, and removed."""
    if not is_tracing():
        return test()
    trace = current_trace("while")
    mark = trace.mark()
    condition = test()
    if isinstance(condition, Scalar):
        trace.erase_since(mark)
    return condition


def _traced_while(test: Callable[[], object], body: Callable[[], None], variables: Variables) -> None:
    trace = current_trace("while")
    what = f"loop at line {here().line}"
    carry = Carry(variables, what)
    types = _types(carry.initial)
    operation = trace.emit("scf.while", types, [value.ir_value for value in carry.initial], regions=2)
    before, after = (_append_block(region, types, operation.location) for region in operation.regions)
    with trace.opened(Scope(before, what)):
        arguments = _wrap(carry.initial, before.arguments)
        carry.enter(arguments)
        condition = _condition(test())
        values = [condition, *arguments]
        trace.emit("scf.condition", operands=[value.ir_value for value in values])
    with trace.opened(Scope(after, what)):
        carry.enter(_wrap(carry.initial, after.arguments))
        body()
        trace.emit("scf.yield", operands=[value.ir_value for value in carry.leave()])
    carry.exit(_wrap(carry.initial, operation.results))


# --- branches ---------------------------------------------------------------------------------------------------------


def if_else(condition: object, yes: Callable[[], None], no: Callable[[], None], variables: Variables) -> None:
    """`if condition: yes` with `else: no`."""
    if not isinstance(condition, Scalar):
        (yes if condition else no)()
        return
    before = variables.get()

    def branch(run: Callable[[], None]) -> Callable[[], tuple[object, ...]]:
        def traced() -> tuple[object, ...]:
            variables.write(in_new_containers(before))
            run()
            return variables.get()

        return traced

    variables.write(_traced_branches(condition, branch(yes), branch(no), variables))


def if_expression(condition: object, yes: Callable[[], object], no: Callable[[], object]) -> object:
    """`yes if condition else no`."""
    if not isinstance(condition, Scalar):
        return yes() if condition else no()
    result = Variables(("(the expression)",), (here().line,), (), lambda _: None)
    return _traced_branches(condition, lambda: (yes(),), lambda: (no(),), result)[0]


def _traced_branches(
    condition: Scalar,
    yes: Callable[[], tuple[object, ...]],
    no: Callable[[], tuple[object, ...]],
    variables: Variables,
) -> tuple[object, ...]:
    """An scf.if, and the values of the variables after it.

    The types of its results are known when both branches are traced, so that these are traced in an op without results
    and then moved to one that has them.
    """
    trace = current_trace("if")
    what = f"if at line {here().line}"
    operands = [_condition(condition).ir_value]
    draft = trace.emit("scf.if", [], operands, regions=2)
    scopes = [Scope(_append_block(region, [], draft.location), what) for region in draft.regions]
    ends = []
    for scope, run in zip(scopes, (yes, no), strict=True):
        with trace.opened(scope):
            ends.append(run())
    merge = Merge(variables, what)
    for index, pair in enumerate(zip(*ends, strict=True)):
        merge.add(index, pair)
    types: list[ir.Type] = []
    for number, scope in enumerate(scopes):
        with trace.opened(scope):
            values = merge.results_of(number)
            types = _types(values)
            trace.emit("scf.yield", operands=[value.ir_value for value in values])
    operation = trace.emit("scf.if", types, operands, regions=2)
    for scope, region in zip(scopes, operation.regions, strict=True):
        scope.block.append_to(region)
    draft.erase()
    return merge.rebuild(_wrap(merge.models, operation.results))


# --- conditions -------------------------------------------------------------------------------------------------------


def _condition(value: object) -> Scalar:
    condition = convert(value, "bool")
    if condition is None:
        raise type_error(f"a condition must be a comparison or a bool, found {describe(value)}")
    return condition


def not_(value: Any) -> Any:
    """`not value`."""
    return logical("^", _condition(value), True) if isinstance(value, Scalar) else not value


def and_(first: Any, second: Callable[[], Any]) -> Any:
    """`first and second`; both are computed when the first is a scalar."""
    return logical("&", _condition(first), _condition(second())) if isinstance(first, Scalar) else first and second()


def or_(first: Any, second: Callable[[], Any]) -> Any:
    """`first or second`; both are computed when the first is a scalar."""
    return logical("|", _condition(first), _condition(second())) if isinstance(first, Scalar) else first or second()


def python_iterable(iterable: Any, what: str, line: int) -> Any:
    """The iterable of a loop that has to stay Python's because of `what` in a line of it."""
    if isinstance(iterable, Range):
        raise value_error(f"{what} is not allowed in a loop over ll.range", Place(here().filename, line))
    return iterable


def python_condition(condition: Any, what: str, line: int) -> Any:
    """The condition of an if or while that has to stay Python's because of `what` in a line of it."""
    if isinstance(condition, Scalar):
        raise value_error(
            f"{what} is not allowed under a condition that is known only when the kernel runs",
            Place(here().filename, line),
        )
    return condition


# --- blocks -----------------------------------------------------------------------------------------------------------


def _types(values: Sequence[Carried]) -> list[ir.Type]:
    return [value.ir_value.type for value in values]


def _append_block(region: ir.Region, types: Sequence[ir.Type], location: ir.Location) -> ir.Block:
    return region.blocks.append(*types, arg_locs=[location] * len(types))


def _wrap(models: Sequence[Carried], values: Iterable[ir.Value]) -> list[Carried]:
    """Values of the innermost region, each of the type of its model."""
    return [model.like(value) for model, value in zip(models, values, strict=True)]
