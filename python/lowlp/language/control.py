"""Promises, output, and the early end of a block."""

from __future__ import annotations

from lowlp._mlir import ir

from .scalars import Scalar, as_index, convert, describe, is_int, is_number, known_nonnegative
from .source import type_error, value_error
from .tiles import Tile, as_tile
from .tracing import current_trace

# --- promises ---------------------------------------------------------------------------------------------------------


def assume(condition: bool | Scalar, message: str = "the kernel assumes otherwise") -> None:
    """Promises that a condition holds; the CPU target checks it and reports the message, a GPU does not.

    Raises KernelTypeError unless the condition is a bool or a bool scalar, and KernelValueError for False.
    """
    trace = current_trace("ll.assume")
    if not isinstance(message, str):
        raise type_error(f"message: must be a str, found {describe(message)}")
    scalar = convert(condition, "bool")
    if scalar is None:
        raise type_error(f"condition: must be a bool or a bool scalar, found {describe(condition)}")
    if not isinstance(condition, Scalar):
        if not condition:
            raise value_error(f"condition: is False: {message}")
        return
    attributes: dict[str, ir.Attribute] = {"message": ir.StringAttr.get(message)}
    trace.emit("lowlp.assume", [], [scalar.ir_value], attributes)


def assume_divisible(value: Scalar, divisor: int) -> Scalar:
    """The same index, of which loads and stores then know a divisor; they may become wider. The CPU target checks it.

    Raises KernelTypeError and KernelValueError unless the divisor is a positive int.
    """
    trace = current_trace("ll.assume_divisible")
    number = as_index("value", value)
    if not is_int(divisor):
        raise type_error(f"divisor: must be an int, found {describe(divisor)}")
    if not 1 <= divisor < 2**63:
        raise value_error(f"divisor: must be positive, and less than 2**63, found {divisor}")
    attributes: dict[str, ir.Attribute] = {"divisor": ir.IntegerAttr.get(trace.type("i64"), int(divisor))}
    operation = trace.emit("lowlp.assume_divisible", [trace.type("index")], [number.ir_value], attributes)
    return Scalar(trace, operation.results[0], "index", nonnegative=known_nonnegative(value))


def assume_range(value: Scalar | int, low: int, high: int) -> Scalar:
    """The same index, which is promised to be at least `low` and less than `high`. The CPU target checks it.

    Where `low` is not negative, `//` and `%` of it become cheaper, most of all below 2^32. Raises KernelTypeError and
    KernelValueError for other bounds than ints in this order.
    """
    number = as_index("value", value)
    if not is_int(low) or not is_int(high):
        raise type_error(f"low, high: must be ints, found {describe(low)} and {describe(high)}")
    if low >= high:
        raise value_error(f"low: must be less than high, found {low} and {high}")
    assume((number >= low) & (number < high), f"the number must be at least {low} and less than {high}")
    result = number.like(number.ir_value)
    result._nonnegative = low >= 0
    result._below = high
    return result


# --- output -----------------------------------------------------------------------------------------------------------


def print_values(*values: object, all_blocks: bool = False) -> None:
    """Writes one line: text, numbers and scalars, with spaces between (Tilus, table 1: Print).

    all_blocks  one thread of every block writes; else one of the first block

    The CPU target writes to standard output; a GPU too, when the host synchronises next. Raises KernelTypeError for
    other values; tiles have `print_tile`.
    """
    trace = current_trace("ll.print")
    parts: list[str] = []
    operands: list[ir.Value] = []
    for value in values:
        if isinstance(value, Scalar):
            parts.append("{}")
            operands.append(value.ir_value)
        elif isinstance(value, str):
            if "{}" in value:
                raise value_error(f"values: text must not hold {{}}, found {value!r}; pass values between texts")
            parts.append(value)
        elif isinstance(value, bool) or is_number(value):
            parts.append(str(value))
        else:
            advice = "; use ll.print_tile" if isinstance(value, Tile) else ""
            raise type_error(f"values: must be texts, numbers and scalars, found {describe(value)}{advice}")
    attributes: dict[str, ir.Attribute] = {"format": ir.StringAttr.get(" ".join(parts))}
    if all_blocks:
        attributes["all_blocks"] = ir.UnitAttr.get()
    trace.emit("lowlp.print", [], operands, attributes)


def print_tile(label: str, tile: Tile, *, all_blocks: bool = False) -> None:
    """Writes a line for each element of a tile: the label, its index and its value, as `sums[3, 1] = 0.5`.

    all_blocks  in every block; else in the first one

    The order of the lines is open. Raises KernelTypeError for other arguments.
    """
    value = as_tile("tile", tile)
    if not isinstance(label, str):
        raise type_error(f"label: must be a str, found {describe(label)}")
    attributes: dict[str, ir.Attribute] = {"label": ir.StringAttr.get(label)}
    if all_blocks:
        attributes["all_blocks"] = ir.UnitAttr.get()
    current_trace("ll.print_tile").emit("lowlp.print_tile", [], [value.ir_value], attributes)


# --- the end ----------------------------------------------------------------------------------------------------------


def exit_block() -> None:
    """Ends the block here, out of all loops and branches (Tilus, table 1: Exit); as a rule in an `if`.

    All threads of the block leave together. What follows in the same branch does not run.
    """
    current_trace("ll.exit").emit("lowlp.exit")
