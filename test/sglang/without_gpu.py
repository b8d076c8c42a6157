"""What SGLang imports and this machine has not: stand-ins for packages of GPU code, which no test calls."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

_ABSENT: Final = ("triton", "torchvision", "vllm")


class _Anything(ModuleType):
    """A module with every name: classes for those that begin as classes do, decorators that do nothing for others."""

    __path__: Sequence[str] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = type(name, (), {}) if name[0].isupper() else _Anything(f"{self.__name__}.{name}")
        setattr(self, name, found)
        return found

    def __call__(self, *given: Any, **named: Any) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) and not named else lambda function: function


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in _ABSENT else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Anything(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def install() -> None:
    """Makes SGLang importable. Others are asked first what they have, so that they do not see the stand-ins."""
    import torch._inductor.compile_fx
    import torch._inductor.runtime.triton_heuristics  # noqa: F401
    from transformers.utils import is_torchvision_available

    is_torchvision_available()
    sys.meta_path.append(_Finder())
