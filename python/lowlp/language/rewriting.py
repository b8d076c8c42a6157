"""Rewrites the loops, branches and conditions of a kernel, so that tracing sees them.

    for k in ll.range(n):          def body(item):
        acc = f(acc, k)                nonlocal acc, k
                             =>        k = item
                                       acc = f(acc, k)
                                   def write(values):
                                       nonlocal acc, k
                                       (acc, k) = values
                                   control.for_loop(ll.range(n), body, control.Variables(..., write), ...)

Bodies become functions that share the variables of the kernel, so that Python's own loops and branches, which take the
same way, keep their meaning. Loops and branches that hold `break`, `continue`, `return` or `else` in a place where no
function can stand stay as they are, after a check that they are Python's. Every node keeps its line and column.
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Iterator, Sequence
from typing import Any

from lowlp.compiler.kernel_cache import Once

from . import control_flow
from .source import KernelValueError, Place

# The name under which rewritten code finds `control_flow`.
CONTROL = "__lowlp__"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_Statement = ast.For | ast.While | ast.If
# By the original code and its file, which code compares without: a kernel is often made again with other constants.
_codes = Once(max_values=256)


def rewrite(function: types.FunctionType) -> types.FunctionType:
    """The function with traced control flow, with the globals and the closure of the original.

    Raises KernelValueError when its source cannot be read or holds what a kernel cannot.
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    # A function within one that is rewritten has it already.
    cells[CONTROL] = types.CellType(control_flow)
    key = (function.__code__, function.__code__.co_filename)
    code = _codes.get(key, functools.partial(_rewritten_code, function, list(cells)))
    result = types.FunctionType(
        code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    result.__kwdefaults__ = function.__kwdefaults__
    result.__qualname__, result.__doc__, result.__module__ = (
        function.__qualname__,
        function.__doc__,
        function.__module__,
    )
    return result


def _rewritten_code(function: types.FunctionType, variables: Sequence[str]) -> types.CodeType:
    """The code of the rewritten function, whose closure is `variables`."""
    node, filename = _parse(function)
    node.decorator_list, node.returns = [], None
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
    Rewriter(filename).rewrite_function(node)
    # The closure's variables become parameters of a function around, whose cells are then the original ones.
    around = ast.parse(f"def around({', '.join(variables)}):\n  pass")
    definition = around.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.body = [node]
    return _code_in(_code_in(compile(around, filename, "exec", dont_inherit=True), "around"), function.__name__)


def _parse(function: types.FunctionType) -> tuple[ast.FunctionDef, str]:
    """The definition, its lines and columns being those of the file."""
    filename = function.__code__.co_filename
    place = Place(filename, function.__code__.co_firstlineno)
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise KernelValueError(f"the source of `{function.__name__}` cannot be read", place) from None
    # An indented definition is parsed within a statement, which keeps its columns.
    is_indented = lines[0][:1].isspace()
    tree = ast.parse(("if True:\n" if is_indented else "") + "".join(lines))
    ast.increment_lineno(tree, first - 1 - is_indented)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            return node, filename
    raise KernelValueError(f"`{function.__name__}` must be defined by `def`", place)


def _code_in(code: types.CodeType, name: str) -> types.CodeType:
    return next(item for item in code.co_consts if isinstance(item, types.CodeType) and item.co_name == name)


# --- what a function assigns ------------------------------------------------------------------------------------------


def _own_nodes(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All nodes in the order of the source, without what is inside of nested functions and classes."""
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def assigned_names(nodes: Sequence[ast.AST], stored_into: bool) -> dict[str, int]:
    """The names that statements assign, with the line of the last assignment, in order of the first.

    stored_into: also `x` of `x[i] = ...`, since lists and dicts are carried by value.
    """
    own = list(_own_nodes(nodes))
    comprehension_targets = {
        id(name) for node in own if isinstance(node, ast.comprehension) for name in ast.walk(node.target)
    }
    names: dict[str, int] = {}
    for node in own:
        if id(node) in comprehension_targets:
            continue
        for name in _names_assigned_by(node, stored_into):
            names[name] = getattr(node, "lineno", 0)
    return names


def _names_assigned_by(node: ast.AST, stored_into: bool) -> list[str]:
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, ast.Subscript):
        root: ast.AST = node
        while isinstance(root, ast.Subscript):
            root = root.value
        stores = stored_into and not isinstance(node.ctx, ast.Load)
        return [root.id] if stores and isinstance(root, ast.Name) else []
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


def _jump(statements: Sequence[ast.stmt]) -> ast.stmt | None:
    """The first statement that leaves a loop body or branch: return, or break and continue of a loop around it."""
    for statement in statements:
        if isinstance(statement, ast.Return | ast.Break | ast.Continue):
            return statement
        if isinstance(statement, _SCOPES):
            continue
        inner: list[ast.stmt] = [node for node in _own_nodes([statement]) if isinstance(node, ast.Return)]
        if not inner and isinstance(statement, _LOOPS):
            found = _jump(statement.orelse)
        elif not inner:
            found = _jump(list(_child_statements(statement)))
        else:
            found = inner[0]
        if found is not None:
            return found
    return None


def _child_statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _child_statements(child)


def _reason(statement: _Statement, variables: set[str]) -> tuple[str, int] | None:
    """Why the statement cannot be traced, and the line of it; None if it can."""
    blocks = [*statement.body, *(statement.orelse if isinstance(statement, ast.If) else [])]
    jump = _jump(blocks)
    if jump is not None:
        return f"`{type(jump).__name__.lower()}`", jump.lineno
    store = _store_elsewhere(blocks, variables)
    if store is not None:
        return f"assigning `{ast.unparse(store)}`, which is no variable of the kernel,", store.lineno
    if not isinstance(statement, ast.If) and statement.orelse:
        return "`else` of a loop", statement.orelse[0].lineno
    if isinstance(statement, ast.While) and _binds(statement.test):
        return "`:=`", statement.test.lineno
    return None


def _store_elsewhere(nodes: Sequence[ast.AST], variables: set[str]) -> ast.expr | None:
    """The first assignment to an attribute, or into what is held outside of the function: nothing would carry it."""
    for node in _own_nodes(nodes):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            root: ast.expr = node
            while isinstance(root, ast.Subscript):
                root = root.value
            if not isinstance(root, ast.Name) or root.id not in variables:
                return node
    return None


def _binds(*nodes: ast.AST) -> bool:
    """True when an expression cannot be moved into a lambda."""
    moved = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return any(isinstance(child, moved) for node in nodes for child in ast.walk(node))


# --- the rewriter -----------------------------------------------------------------------------------------------------


class Rewriter(ast.NodeTransformer):
    """Rewrites one function and those inside of it."""

    def __init__(self, filename: str) -> None:
        self._filename = filename
        self._count = 0
        self._locals: set[str] = set()

    def rewrite_function(self, node: ast.FunctionDef) -> None:
        """Rewrites the function, in place."""
        for child in _own_nodes(node.body):
            if isinstance(child, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Await):
                what = {"YieldFrom": "yield"}.get(type(child).__name__, type(child).__name__.lower())
                raise KernelValueError(f"`{what}` is not allowed in a kernel", Place(self._filename, child.lineno))
        outer = self._locals
        arguments = [arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)]
        assigned = assigned_names(node.body, stored_into=False)
        self._locals = {*arguments, *assigned}
        body = self._block(node.body)
        self._locals = outer
        # Assignments that moved into functions still make variables of this one.
        declared = " = ".join([*assigned, "None"]) if assigned else "pass"
        prelude = ast.parse(f"if 0:\n  {declared}").body
        for child in ast.walk(prelude[0]):
            _at_start_of(node, child)
        node.body = [*prelude, *body]

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            visited = self.visit(statement)
            result += visited if isinstance(visited, list) else [visited]
        return result

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function within the kernel, unless it changes variables of the kernel itself."""
        if not any(isinstance(child, ast.Nonlocal | ast.Global) for child in ast.walk(node)):
            self.rewrite_function(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Classes stay as they are."""
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Coroutines stay as they are."""
        return node

    def visit_For(self, node: ast.For) -> Any:
        """A loop over any iterable."""
        reason = _reason(node, self._locals)
        if reason:
            node.iter = self._guard(node.iter, "python_iterable", reason)
            return self.generic_visit(node)
        names = self._shared(assigned_names([node.target, *node.body], stored_into=True))
        targets = [name for name in assigned_names([node.target], stored_into=False) if name in names]
        body, write = self._fresh("body"), self._fresh("write")
        statements = self._template(
            node,
            f"def {body}({CONTROL}item):\n  {_nonlocal(names)}\n"
            f"def {write}({CONTROL}values):\n  {_nonlocal(names)}\n  {_unpack(names)}\n"
            f"{CONTROL}.for_loop(None, {body}, {_variables(names, write)}, {targets!r})",
        )
        item = ast.Name(f"{CONTROL}item", ast.Load())
        assignment = ast.Assign(targets=[node.target], value=item)
        ast.fix_missing_locations(ast.copy_location(assignment, node.target))
        _body_of(statements[0]).extend([assignment, *self._block(node.body)])
        _call_in(statements[2]).args[0] = self.visit(node.iter)
        return statements

    def visit_While(self, node: ast.While) -> Any:
        """A loop with a condition."""
        reason = _reason(node, self._locals)
        if reason:
            node.test = self._guard(node.test, "python_condition", reason)
            return self.generic_visit(node)
        names = self._shared(assigned_names(node.body, stored_into=True))
        body, write = self._fresh("body"), self._fresh("write")
        statements = self._template(
            node,
            f"def {body}():\n  {_nonlocal(names)}\n"
            f"def {write}({CONTROL}values):\n  {_nonlocal(names)}\n  {_unpack(names)}\n"
            f"{CONTROL}.while_loop(None, {body}, {_variables(names, write)})",
        )
        _body_of(statements[0]).extend(self._block(node.body))
        _call_in(statements[2]).args[0] = self._lambda(self.visit(node.test))
        return statements

    def visit_If(self, node: ast.If) -> Any:
        """A branch."""
        reason = _reason(node, self._locals)
        if reason:
            node.test = self._guard(node.test, "python_condition", reason)
            return self.generic_visit(node)
        names = self._shared(assigned_names([*node.body, *node.orelse], stored_into=True))
        yes, no, write = self._fresh("then"), self._fresh("else"), self._fresh("write")
        statements = self._template(
            node,
            f"def {yes}():\n  {_nonlocal(names)}\ndef {no}():\n  {_nonlocal(names)}\n"
            f"def {write}({CONTROL}values):\n  {_nonlocal(names)}\n  {_unpack(names)}\n"
            f"{CONTROL}.if_else(None, {yes}, {no}, {_variables(names, write)})",
        )
        _body_of(statements[0]).extend(self._block(node.body))
        _body_of(statements[1]).extend(self._block(node.orelse))
        _call_in(statements[3]).args[0] = self.visit(node.test)
        return statements

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """`x: T = value`, without the annotation, which a variable of another function cannot have."""
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        plain = ast.Assign(targets=[node.target], value=node.value) if node.value else ast.Pass()
        return ast.copy_location(plain, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`and` and `or`."""
        self.generic_visit(node)
        if _binds(node):
            return node
        result = node.values[-1]
        for value in reversed(node.values[:-1]):
            result = self._control("and_" if isinstance(node.op, ast.And) else "or_", node, value, self._lambda(result))
        return result

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """`a < b < c` is `a < b and b < c`, if b can be read twice."""
        if len(node.ops) == 1 or not all(isinstance(part, ast.Name | ast.Constant) for part in node.comparators[:-1]):
            return self.generic_visit(node)
        parts: list[ast.expr] = []
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            parts.append(ast.copy_location(ast.Compare(left, [op], [right]), node))
            left = right
        return self.visit_BoolOp(ast.copy_location(ast.BoolOp(ast.And(), parts), node))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """`not`."""
        self.generic_visit(node)
        return self._control("not_", node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """`a if condition else b`."""
        self.generic_visit(node)
        if _binds(node.body, node.orelse):
            return node
        return self._control("if_expression", node, node.test, self._lambda(node.body), self._lambda(node.orelse))

    # Pieces.

    def _shared(self, names: dict[str, int]) -> dict[str, int]:
        return {name: line for name, line in names.items() if name in self._locals}

    def _fresh(self, word: str) -> str:
        self._count += 1
        return f"{CONTROL}{word}_{self._count}"

    def _template(self, node: ast.stmt, text: str) -> list[ast.stmt]:
        """Statements, all of them at the place of the node."""
        tree = ast.parse(text)
        for child in ast.walk(tree):
            _at_start_of(node, child)
        return tree.body

    def _control(self, name: str, node: ast.expr, *arguments: ast.expr) -> ast.expr:
        function = ast.Attribute(ast.Name(CONTROL, ast.Load()), name, ast.Load())
        call = ast.Call(function, list(arguments), [])
        for child in (call, *ast.walk(function)):
            _at_start_of(node, child)
        return ast.fix_missing_locations(call)

    def _lambda(self, value: ast.expr) -> ast.expr:
        arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.fix_missing_locations(ast.copy_location(ast.Lambda(arguments, value), value))

    def _guard(self, value: ast.expr, check: str, reason: tuple[str, int]) -> ast.expr:
        return self._control(check, value, value, *(ast.Constant(part) for part in reason))


def _at_start_of(node: ast.expr | ast.stmt, child: ast.AST) -> None:
    """Places a new node at the start of one of the user's.

    It ends there too: CPython gives calls of methods the line on which the method's name ends.
    """
    if "lineno" in child._attributes:
        ast.copy_location(child, node)
        vars(child).update(end_lineno=node.lineno, end_col_offset=node.col_offset + 1)


def _nonlocal(names: dict[str, int]) -> str:
    return f"nonlocal {', '.join(names)}" if names else "pass"


def _unpack(names: dict[str, int]) -> str:
    return f"({', '.join(names)},) = {CONTROL}values" if names else "pass"


def _variables(names: dict[str, int], write: str) -> str:
    reads = "".join(f"lambda: {name}, " for name in names)
    return f"{CONTROL}.Variables({tuple(names)!r}, {tuple(names.values())!r}, ({reads}), {write})"


def _body_of(statement: ast.stmt) -> list[ast.stmt]:
    assert isinstance(statement, ast.FunctionDef)
    return statement.body


def _call_in(statement: ast.stmt) -> ast.Call:
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return statement.value
