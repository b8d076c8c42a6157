"""What tracing a kernel reads beside its parameters, so that a launch can tell whether an earlier trace still holds.

A kernel's function reads its closure and its globals, and by them constants, other functions, modules and objects. A
`Reads` goes through all that the code can reach by its names, and keeps it: values by identity, what is changed in
place by its contents. While nothing of that has changed, tracing again would make the same program.

    TILE = 16                          kept: the global `TILE`, the cell `n`, the function `rows` with its code and the
    def make(n):                       global `STEP` that it reads
        @lowlp.kernel(...)
        def k(x): ... TILE * n ... rows(2)

Some things have no contents to compare: files, the environment, generators of random numbers, tensors of other
libraries, names that are made by a program (`getattr`). `unwatched` then names one, and the kernel is traced for each
launch. Functions of lowlp, of numpy and of a few modules of the standard library are taken to be constant.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from .constant_values import (
    BASES,
    EQUAL,
    IMMUTABLE,
    LIVE,
    OF_ATTRIBUTES,
    PLAIN,
    is_constant_class,
    is_constant_module,
    is_frozen,
    is_generated,
    is_of_class,
    is_of_numpy,
    is_opaque,
    names_of,
    reads_elsewhere,
    reads_files,
)

_ABSENT: Final = object()
_MAX_WATCHED: Final = 4000
_MAX_ARRAY_BYTES: Final = 1 << 16


class Reads:
    """What a function of a kernel reads.

    unwatched  what it may read that cannot be compared, with the way to it; '' where there is none
    """

    def __init__(self, function: types.FunctionType) -> None:
        self.unwatched = ""
        self._items: list[tuple[Mapping[str, Any], str, object]] = []
        self._cells: list[tuple[types.CellType, object]] = []
        self._functions: list[tuple[types.FunctionType, types.CodeType, object, object]] = []
        self._slots: list[tuple[object, str, object]] = []
        self._contents: list[tuple[Any, tuple[object, ...]]] = []
        self._arrays: list[tuple[np.ndarray[Any, Any], np.dtype[Any], tuple[int, ...], bytes]] = []
        # Also keeps all of it alive, so that an identity is not given to another object.
        self._seen: dict[int, object] = {}
        self._names: set[str] = set()
        self._modules: list[tuple[types.ModuleType, str]] = []
        self._waiting: list[tuple[object, str]] = []
        self._see_function(function, function.__name__)
        self._see_all()

    def unchanged(self) -> bool:
        """Whether all that was read is still there."""
        for function, code, defaults, named in self._functions:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return False
            if function.__kwdefaults__ is not named:
                return False
        return (
            _same((mapping.get(name, _ABSENT), value) for mapping, name, value in self._items)
            and _same((_in_cell(cell), value) for cell, value in self._cells)
            and _same((getattr(owner, name, _ABSENT), value) for owner, name, value in self._slots)
            and all(_same_contents(held, kept) for held, kept in self._contents)
            and all(
                array.dtype == kind and array.shape == shape and array.tobytes() == data
                for array, kind, shape, data in self._arrays
            )
        )

    # Seeing. What is found waits in a list, so that deep structures need no deep stack.

    def _see_all(self) -> None:
        looked_up: set[tuple[int, str]] = set()
        while not self.unwatched:
            while self._waiting and not self.unwatched:
                self._see(*self._waiting.pop())
                if len(self._seen) + len(self._items) > _MAX_WATCHED:
                    self.unwatched = f"more than {_MAX_WATCHED} values"
            # A module may be handed on, so that any function may read its attributes.
            pairs = [(module, way, name) for module, way in self._modules for name in sorted(self._names)]
            pairs = [pair for pair in pairs if (id(pair[0]), pair[2]) not in looked_up]
            if not pairs:
                return
            for module, way, name in pairs:
                looked_up.add((id(module), name))
                self._item(vars(module), name, f"{way}.{name}")

    def _item(self, mapping: Mapping[str, Any], name: str, way: str) -> None:
        value = mapping.get(name, _ABSENT)
        self._items.append((mapping, name, value))
        if value is not _ABSENT:
            self._waiting.append((value, way))

    def _refuse(self, value: object, way: str) -> None:
        kind = type(value)
        owner = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        self.unwatched = self.unwatched or f"{way}, a {owner}{kind.__qualname__}"

    def _see(self, value: object, way: str) -> None:
        kind = type(value)
        if kind in PLAIN or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, IMMUTABLE) or kind.__module__ == "typing":
            return
        if isinstance(value, types.FunctionType):
            self._see_function(value, way)
        elif isinstance(value, types.ModuleType):
            if not is_constant_module(value.__name__):
                self._modules.append((value, way))
        elif isinstance(value, type):
            self._see_class(value, way)
        elif kind is np.ndarray:
            self._see_array(value, way)
        elif not self._see_wrapped(value, way):
            self._see_object(value, way)

    def _see_function(self, function: types.FunctionType, way: str) -> None:
        name = str(function.__globals__.get("__name__"))
        is_constant = is_constant_module(name) or is_of_numpy(name)
        if is_constant and self._seen:
            if is_of_numpy(name) and reads_files(function.__name__):
                self._refuse(function, way)
            return
        code = function.__code__
        self._seen[id(function)] = function
        self._functions.append((function, code, function.__defaults__, function.__kwdefaults__))
        self._waiting += [(value, way) for value in function.__defaults__ or ()]
        self._waiting += [(held, way) for held in (function.__kwdefaults__, vars(function)) if held is not None]
        for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            value = _in_cell(cell)
            self._cells.append((cell, value))
            if value is not _ABSENT:
                self._waiting.append((value, variable))
        names, of_globals, imports = names_of(code)
        self._names |= names
        for found in sorted(of_globals):
            self._item(function.__globals__, found, found)
            if found not in function.__globals__ and reads_elsewhere(found):
                self.unwatched = self.unwatched or f"{found}() in {function.__name__}"
        if imports:
            self.unwatched = self.unwatched or f"import of {imports[0]} in {function.__name__}"

    def _see_wrapped(self, value: object, way: str) -> bool:
        """Whether it is something around other values, which are then seen."""
        if isinstance(value, types.MethodType):
            inner: Iterable[object] = (value.__func__, value.__self__)
        elif isinstance(value, types.BuiltinFunctionType):
            owner = value.__self__
            if isinstance(owner, types.ModuleType | None):
                module = value.__module__ or "numpy"
                is_numpy = is_of_numpy(module) and not reads_files(value.__name__)
                if not (is_numpy or is_constant_module(module)):
                    self._refuse(value, way)
                return True
            inner = (owner,)
        elif isinstance(value, functools.partial):
            inner = (value.func, value.args, value.keywords)
        elif isinstance(value, staticmethod | classmethod):
            inner = (value.__func__,)
        elif isinstance(value, property):
            inner = (value.fget,)
        elif isinstance(value, functools.cached_property):
            inner = (value.func,)
        elif isinstance(value, functools._lru_cache_wrapper):
            inner = (value.__wrapped__,)
        elif is_of_numpy(type(value).__module__) and hasattr(value, "_implementation"):
            return not reads_files(getattr(value, "__name__", ""))
        else:
            return False
        self._waiting += [(part, way) for part in inner]
        return True

    def _see_array(self, array: Any, way: str) -> None:
        if array.nbytes > _MAX_ARRAY_BYTES or array.dtype.hasobject:
            self._refuse(array, way)
            return
        self._arrays.append((array, array.dtype, array.shape, array.tobytes()))

    def _see_object(self, value: Any, way: str) -> None:
        kind = type(value)
        if kind in LIVE or isinstance(value, LIVE):
            kept = _contents(value)
            self._contents.append((value, kept))
            self._waiting += [(part, f"{way}[...]") for part in kept]
        elif isinstance(value, tuple | frozenset):
            self._waiting += [(part, f"{way}[...]") for part in value]
        if kind in (*LIVE, tuple, frozenset):
            return
        for base in kind.__mro__:
            if base not in BASES and (is_opaque(base) or (is_constant_class(base) and not is_frozen(base))):
                self._refuse(value, way)
                return
        self._see(kind, way)
        for base in kind.__mro__:
            for name, descriptor in vars(base).items() if base not in BASES else ():
                if isinstance(descriptor, types.MemberDescriptorType):
                    held = getattr(value, name, _ABSENT)
                    self._slots.append((value, name, held))
                    self._waiting.append((held, f"{way}.{name}"))
        if hasattr(value, "__dict__"):
            state = vars(value)
            self._seen[id(state)] = state
            kept = _contents(state)
            self._contents.append((state, kept))
            self._waiting += [(part, f"{way}.{name}") for name, part in state.items()]

    def _see_class(self, kind: type, way: str) -> None:
        if type(kind) not in (type, enum.EnumType):
            self._waiting.append((type(kind), way))
        for base in kind.__mro__:
            if base in BASES or is_constant_class(base):
                continue
            if is_opaque(base):
                self._refuse(base, way)
                return
            held = vars(base)
            self._contents.append((held, _contents(held)))
            fields = held.get("__dataclass_fields__", {})
            for field in fields.values():
                self._waiting += [
                    (part, way) for part in (field.default, field.default_factory) if part is not dataclasses.MISSING
                ]
            for name, value in held.items():
                if is_of_class(name):
                    continue
                if isinstance(value, OF_ATTRIBUTES) or (fields and is_generated(value)):
                    continue
                self._waiting.append((value, f"{way}.{name}"))


def _in_cell(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _ABSENT


def _same(pairs: Iterable[tuple[object, object]]) -> bool:
    """Whether what is there now is what was there, of each pair."""
    return all(a is b or (type(a) is type(b) and type(b) in EQUAL and a == b) for a, b in pairs)


def _contents(held: Any) -> tuple[object, ...]:
    """What a container has, in its order."""
    return (*held.keys(), *held.values()) if isinstance(held, dict | types.MappingProxyType) else tuple(held)


def _same_contents(held: Any, kept: tuple[object, ...]) -> bool:
    found = _contents(held)
    return len(found) == len(kept) and _same(zip(found, kept, strict=True))
