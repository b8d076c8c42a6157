"""Grid expressions: how many blocks a launch has, as a function of the kernel's integer parameters.

An expression is an integer, `["param", name]`, or `[op, a, b]` with op one of `+ * floordiv ceildiv mod`. It is plain
JSON in a saved kernel and nested tuples in memory, so that it can be hashed, compared, and evaluated with no compiler.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

GridExpression: TypeAlias = "int | tuple[str | GridExpression, ...]"
Grid: TypeAlias = tuple[GridExpression, GridExpression, GridExpression]

OPERATORS = ("+", "*", "floordiv", "ceildiv", "mod")
MAX_DEPTH = 64
# CUDA programming guide, technical specifications per compute capability: blocks of a grid in x, y, z.
MAX_GRID = (2**31 - 1, 65535, 65535)


def freeze(expression: object, depth: int = 0) -> GridExpression:
    """The expression as nested tuples.

    `expression` is an int, or a list or tuple as the module's text says. Raises `LowlpTypeError` where a part is of
    another type, and `LowlpValueError` for an unknown operator, a wrong number of operands, or more than 64 levels.
    """
    if depth > MAX_DEPTH:
        raise LowlpValueError(f"grid: expression is nested deeper than {MAX_DEPTH} levels")
    if isinstance(expression, int) and not isinstance(expression, bool):
        return expression
    if not isinstance(expression, list | tuple):
        raise LowlpTypeError(f"grid: expected an int or a list, got {expression!r}")
    if not expression or not isinstance(expression[0], str):
        raise LowlpValueError(f"grid: expected [operator, ...], got {list(expression)!r}")
    operator, operands = expression[0], expression[1:]
    if operator == "param":
        if len(operands) != 1 or not isinstance(operands[0], str):
            raise LowlpValueError(f"grid: expected ['param', name], got {list(expression)!r}")
        return ("param", operands[0])
    if operator not in OPERATORS:
        raise LowlpValueError(f"grid: operator {operator!r} is unknown; allowed: param, {', '.join(OPERATORS)}")
    if len(operands) != 2:
        raise LowlpValueError(f"grid: operator {operator!r} takes 2 operands, got {len(operands)}")
    return (operator, freeze(operands[0], depth + 1), freeze(operands[1], depth + 1))


def thaw(expression: GridExpression) -> object:
    """The expression as JSON: nested lists, ints and strings."""
    if isinstance(expression, tuple):
        return [part if isinstance(part, str) else thaw(part) for part in expression]
    return expression


def parameters_of(expression: GridExpression) -> Iterator[str]:
    """Names of the parameters that the expression reads, in order, repeats included."""
    if isinstance(expression, tuple):
        if expression[0] == "param":
            yield str(expression[1])
            return
        for part in expression[1:]:
            if not isinstance(part, str):
                yield from parameters_of(part)


def evaluate(expression: GridExpression, values: Mapping[str, int]) -> int:
    """The value of the expression, with Python's unbounded integers.

    `floordiv` and `ceildiv` round towards minus and plus infinity and `mod` is never negative, as in MLIR's affine
    expressions. Raises `LowlpValueError` where a divisor is not positive or a parameter has no value.
    """
    if not isinstance(expression, tuple):
        return expression
    operator = expression[0]
    if operator == "param":
        name = str(expression[1])
        if name not in values:
            raise LowlpValueError(
                f"grid: parameter {name!r} has no value; given: {', '.join(sorted(values)) or 'none'}"
            )
        return values[name]
    left, right = (evaluate(part, values) for part in expression[1:] if not isinstance(part, str))
    if operator == "+":
        return left + right
    if operator == "*":
        return left * right
    if right <= 0:
        raise LowlpValueError(f"grid: divisor of {operator!r} must be positive, got {right}")
    if operator == "floordiv":
        return left // right
    if operator == "ceildiv":
        return -(-left // right)
    return left % right


def evaluate_grid(grid: Grid, values: Mapping[str, int]) -> tuple[int, int, int]:
    """Blocks in x, y and z. Raises `LowlpValueError` where one is negative or above what CUDA allows.

    A zero is allowed and means that there is nothing to launch; the other two are then not held to CUDA's bounds.
    """
    x, y, z = (expression if isinstance(expression, int) else evaluate(expression, values) for expression in grid)
    if 0 < x <= MAX_GRID[0] and 0 < y <= MAX_GRID[1] and 0 < z <= MAX_GRID[2]:
        return x, y, z
    for axis, blocks, bound in zip("xyz", (x, y, z), MAX_GRID, strict=True):
        if blocks < 0 or (blocks > bound and 0 not in (x, y, z)):
            given = ", ".join(f"{name}={value}" for name, value in values.items())
            raise LowlpValueError(
                f"grid: {axis} must be in 0..{bound}, got {blocks} blocks from {given or 'constants'}"
            )
    return x, y, z
