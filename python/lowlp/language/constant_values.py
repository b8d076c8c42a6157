"""What tracing may take to be constant, and what it cannot compare: the limits of `trace_reads`."""

from __future__ import annotations

import dis
import enum
import functools
import types
import typing
from collections import OrderedDict, namedtuple
from typing import Final

import numpy as np

from lowlp.layouts.register_layout import Layout
from lowlp.layouts.shared_layout import SharedLayout
from lowlp.numeric.codec import Codec, Table
from lowlp.numeric.dtypes import DType

PLAIN: Final = frozenset((int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented), range))
EQUAL: Final = frozenset((int, bool, str, bytes))
"""Of these, equal values are the same value; 0.0 and -0.0 are not."""
IMMUTABLE: Final = (
    *(DType, Layout, SharedLayout, Codec, Table),
    *(np.dtype, np.generic, np.ufunc),
    *(types.GenericAlias, types.UnionType),
)
LIVE: Final = (list, dict, set, OrderedDict)
"""Containers that are compared by what they hold."""
OF_ATTRIBUTES: Final = (
    types.MemberDescriptorType,
    types.DynamicClassAttribute,
    type(vars(namedtuple("_Pair", "first"))["first"]),
)
"""Ways from a class to a value that the instance has."""
BASES: Final = frozenset(
    (object, int, float, str, bytes, tuple, list, dict, types.SimpleNamespace, typing.Generic, typing.Protocol)
) | {kind for kind in vars(enum).values() if isinstance(kind, enum.EnumType)}
"""Classes whose instances hold nothing but their value and their attributes."""

_CONSTANT_MODULES: Final = (
    *("lowlp", "lowlp_runtime", "builtins", "math", "cmath", "operator", "itertools", "functools", "collections"),
    *("dataclasses", "enum", "typing", "abc", "types", "bisect", "struct", "fractions", "numbers", "string"),
)
_READ_ELSEWHERE: Final = (
    *("open", "input", "globals", "locals", "vars", "eval", "exec", "compile", "__import__", "getattr", "setattr"),
    *("delattr", "dir", "id", "hash"),
)
_FILES_OF_NUMPY: Final = (
    *("load", "loadtxt", "genfromtxt", "fromfile", "fromregex", "memmap", "open_memmap", "DataSource"),
)
_OF_CLASSES: Final = (
    *("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__annotate__"),
    *("__annotate_func__", "__annotations_cache__", "__static_attributes__", "__firstlineno__", "__slots__"),
    *("__dataclass_fields__", "__dataclass_params__", "__abstractmethods__", "_abc_impl", "__parameters__"),
    "__orig_bases__",
)
_OF_C: Final = (types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType)


def is_constant_module(name: str | None) -> bool:
    """Whether what a module of this name defines is never changed."""
    return (name or "").partition(".")[0] in _CONSTANT_MODULES


def is_of_numpy(module: str | None) -> bool:
    """Whether it is a part of numpy, whose functions are constant but for those of `reads_files`."""
    return (module or "").partition(".")[0] == "numpy"


def reads_files(name: str) -> bool:
    """Whether a function of numpy of this name reads files."""
    return name in _FILES_OF_NUMPY


def reads_elsewhere(name: str) -> bool:
    """Whether the results of a builtin follow from more than the names in the code that calls it."""
    return name in _READ_ELSEWHERE


def is_constant_class(kind: type) -> bool:
    """Whether nobody changes the class; its instances may change."""
    return is_constant_module(kind.__module__) or issubclass(kind, np.generic)


def is_frozen(kind: type) -> bool:
    """Whether it is a frozen dataclass, which does not change but for what its fields hold."""
    parameters = vars(kind).get("__dataclass_params__")
    return parameters is not None and bool(parameters.frozen)


def is_opaque(kind: type) -> bool:
    """Whether it is written in another language, so that its instances may hold anything."""
    return any(isinstance(value, _OF_C) and name not in _OF_CLASSES for name, value in vars(kind).items())


def is_of_class(name: str) -> bool:
    """Whether an attribute of this name is what a class says about itself."""
    return name in _OF_CLASSES


def is_generated(value: object) -> bool:
    """Whether it is a method that `dataclass` has written."""
    return isinstance(value, types.FunctionType) and value.__code__.co_filename == "<string>"


@functools.lru_cache(maxsize=1024)
def names_of(code: types.CodeType) -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
    """All names in the code and what is nested in it, those of them that are read as globals, and what it imports."""
    names, of_globals, imports = set(code.co_names), set(), []
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            of_globals.add(str(instruction.argval))
        elif instruction.opname == "IMPORT_NAME":
            imports.append(str(instruction.argval))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = names_of(constant)
            names |= inner[0]
            of_globals |= inner[1]
            imports += inner[2]
    return frozenset(names), frozenset(of_globals), tuple(imports)
