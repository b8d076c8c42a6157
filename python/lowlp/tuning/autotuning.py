"""`lowlp.autotune`: a kernel of the user's with constants that are chosen by measurement."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from lowlp.compiler.architectures import arch_of
from lowlp.compiler.compilation import compile as compile_for
from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp.compiler.launching import in_order, is_host_array
from lowlp.errors import LowlpError, LowlpTypeError, LowlpValueError, ProductWarning, SpillWarning
from lowlp.language.kernels import Kernel
from lowlp_runtime.device import current_device, device_name

from .autotuned_file import Found, identity_of, keep, kept
from .timing_candidates import can_measure, times_of

_MAX_WORKERS: Final = 16
Estimate = Callable[..., float]


@dataclass(frozen=True)
class Candidate:
    """A choice of constants, and the kernel that the function makes of it.

    constants  by name
    kernel     None where `problem` says why there is none
    """

    constants: Mapping[str, Any]
    kernel: Kernel | None
    problem: str = ""

    def __str__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.constants.items())


class AutotunedKernel:
    """A kernel for each choice of constants, of which a launch takes the fastest; made by a function under `autotune`.

    It is called as the kernels are. On a GPU the first call with new values of `key` compiles all candidates in
    parallel, and times them with cold caches on copies of the arrays; what was fastest is kept on disk by the GPU's
    name, so that later processes neither measure nor compile the others. A call within a graph capture measures
    nothing: it takes what an earlier call has found, or what is estimated. numpy arrays run on the CPU target, where
    nothing is measured either. May be called from several threads.
    """

    def __init__(self, name: str, candidates: Sequence[Candidate], key: tuple[str, ...], estimate: Estimate | None):
        """`estimate` takes the constants of a candidate and the kernel's numbers."""
        self.name, self.candidates, self.key = name, tuple(candidates), key
        self._estimate = estimate
        self._lock = threading.Lock()
        self._found: dict[tuple[object, ...], Found] = {}
        self._compiled: dict[tuple[int, str], CompiledKernel] = {}

    def __call__(self, *arguments: object, **named: Any) -> Any:
        """Launches the fastest kernel; arguments and options as for any kernel (`lowlp.kernel`)."""
        names = {parameter.name for parameter in self._any_kernel.parameters}
        values = in_order(self._any_kernel, arguments, {name: named[name] for name in named if name in names})
        options = {name: value for name, value in named.items() if name not in names}
        number = self._choose(values, options.get("stream"))
        kernel = self.candidates[number].kernel
        assert kernel is not None, "what is chosen is a kernel"
        if any(is_host_array(value) for value in values):
            return kernel(*values, **options)
        # The candidates are what they were when this was made, so nothing is traced again.
        return self._compiled_for(number, arch_of(current_device()))(*values, **options)

    def best(self, *arguments: object, **named: object) -> Candidate:
        """The candidate that a launch with these arguments takes; measures where that was not done yet."""
        return self.candidates[self._choose(in_order(self._any_kernel, arguments, named), None)]

    def kernel_for(self, **numbers: int) -> Kernel:
        """The kernel that is taken for numbers of the kernel, by name, where nothing can be measured."""
        kernel = self.candidates[self._estimated(numbers)].kernel
        assert kernel is not None, "what is chosen is a kernel"
        return kernel

    def report(self) -> str:
        """What was found in this process, for each of the values that `key` had: each candidate's microseconds, or
        why it has none."""
        lines = [f"{self.name}: {len(self.candidates)} candidates"]
        for where, found in self._found.items():
            values = ", ".join(f"{name} = {value}" for name, value in zip(self.key, where[1:], strict=True))
            lines.append(f"{where[0]}{', ' if values else ''}{values}: {found.by}")
            for number, candidate in enumerate(self.candidates):
                us = found.us[number] if number < len(found.us) else None
                problem = found.problems[number] if number < len(found.problems) else candidate.problem
                text = f"{us:8.2f} us" if us is not None else problem or "not measured"
                lines.append(f"  {'*' if number == found.best else ' '} {text}  {candidate}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<lowlp autotuned kernel {self.name} of {len(self.candidates)} candidates>"

    @property
    def _any_kernel(self) -> Kernel:
        return next(one.kernel for one in self.candidates if one.kernel is not None)

    def _choose(self, values: Sequence[object], stream: object) -> int:
        """The number of the candidate."""
        by_name = {parameter.name: value for parameter, value in zip(self._any_kernel.parameters, values, strict=True)}
        numbers = tuple(_number(self.name, name, by_name[name]) for name in self.key)
        if any(is_host_array(value) for value in values):
            return self._estimated(by_name)
        ordinal = current_device()
        where = (_name(ordinal), *numbers)
        with self._lock:
            found = self._found.get(where)
            if found is None:
                found = self._find(where, by_name, ordinal, stream)
                if found is None:
                    return self._estimated(by_name)
                self._found[where] = found
            return found.best

    def _find(
        self, where: tuple[object, ...], by_name: Mapping[str, object], ordinal: int, stream: object
    ) -> Found | None:
        """What another process found, or what is measured now; None where nothing can be measured."""
        keys = [one.kernel.trace_key() if one.kernel else "" for one in self.candidates]
        identity = identity_of(keys, where)
        found = kept(identity, len(self.candidates))
        if found is None and can_measure():
            kernels, problems = self._compile_all(arch_of(ordinal))
            us = times_of(kernels, by_name, self._constant_names(), stream, [str(one) for one in self.candidates])
            if all(time is None for time in us):
                raise LowlpValueError(f"{self.name}: no candidate compiles: {'; '.join(dict.fromkeys(problems))}")
            best = min((time, number) for number, time in enumerate(us) if time is not None)[1]
            found = Found(best, tuple(us), tuple(problems), "measured")
            keep(identity, found, self.name, where)
        return found

    def _compiled_for(self, number: int, arch: str) -> CompiledKernel:
        """A candidate's machine code, compiled once."""
        if (found := self._compiled.get((number, arch))) is None:
            kernel = self.candidates[number].kernel
            assert kernel is not None, "what is compiled is a kernel"
            found = self._compiled[number, arch] = compile_for(kernel, arch)
        return found

    def _compile_all(self, arch: str) -> tuple[list[CompiledKernel | None], list[str]]:
        """All candidates' machine code, and why there is none."""

        def one(number: int) -> tuple[CompiledKernel | None, str]:
            if self.candidates[number].kernel is None:
                return None, self.candidates[number].problem
            try:
                return self._compiled_for(number, arch), ""
            except LowlpError as error:
                return None, str(error).splitlines()[0]

        with warnings.catch_warnings(), ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_WORKERS)) as pool:
            # A candidate that spills or waits shows it in its time.
            warnings.simplefilter("ignore", SpillWarning)
            warnings.simplefilter("ignore", ProductWarning)
            found = list(pool.map(one, range(len(self.candidates))))
        return [kernel for kernel, _ in found], [problem for _, problem in found]

    def _constant_names(self) -> frozenset[str]:
        return frozenset(parameter.name for parameter in self._any_kernel.parameters if parameter.constant)

    def _estimated(self, by_name: Mapping[str, object]) -> int:
        """The candidate of the least estimate, the first among equals; the first of all where there is no estimate."""
        able = [number for number, one in enumerate(self.candidates) if one.kernel is not None]
        if self._estimate is None:
            return able[0]
        scalars = {name: value for name, value in by_name.items() if isinstance(value, int | float)}
        return min(able, key=lambda number: self._estimated_us(number, scalars))

    def _estimated_us(self, number: int, scalars: Mapping[str, object]) -> float:
        assert self._estimate is not None
        us = self._estimate(**self.candidates[number].constants, **scalars)
        if isinstance(us, bool) or not isinstance(us, int | float) or math.isnan(us):
            raise LowlpTypeError(f"estimate: must return a number, got {us!r:.40} for {self.candidates[number]}")
        return float(us)


def autotune(
    candidates: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]],
    *,
    key: Sequence[str] = (),
    estimate: Estimate | None = None,
) -> Callable[[Callable[..., Kernel]], Callable[..., AutotunedKernel]]:
    """Chooses constants of a kernel by measurement. It decorates a function that returns a kernel (`lowlp.kernel`) for
    constants that it takes as keyword arguments, such as extents of tiles, stages, warps or an `ll.KernelSchedule`.

    candidates  values by name, of which all combinations are tried; or choices, each with the same names. Good ones
                first: the first is taken where nothing can be measured and there is no estimate
    key         integer parameters of the kernel on which the choice may depend, as ("m",); they count by the next power
                of two
    estimate    microseconds, or anything that grows with them, from a candidate's constants, the function's other
                arguments and the kernel's numbers, all given by name; used where nothing can be measured

    The function's other arguments are given when it is called, and are the same for all candidates. One for which it
    raises a `LowlpError`, or whose kernel does not compile, is left out, and `report()` says why. All candidates must
    compute the same: where floats that they write differ by more than 2 %, a launch raises `LowlpValueError`.

        @lowlp.autotune({"rows": [32, 64, 128], "stages": [2, 3, 4]}, key=("m",))
        def make_product(n, k, *, rows, stages):
            @lowlp.kernel(grid=lambda m: (ll.ceildiv(m, rows), n // 64), num_threads=128)
            def product(...): ...
            return product

        product = make_product(4096, 4096)
        product(w, x, y, m)  # measures once for this GPU and about so many rows; fast from then on
        print(product.report())

    Measured are medians of times from event to event with a cold L2, on copies of all arrays but those of
    `constant=True` pointers. Results are kept in the folder of the kernel cache (`LOWLP_CACHE_DIR`), by the candidates'
    programs, the compiler, the GPU's name and `key`. Raises `LowlpTypeError` and `LowlpValueError` for arguments.
    """
    choices = _choices(candidates)
    names = tuple(key)
    if isinstance(key, str) or not all(isinstance(name, str) for name in names):
        raise LowlpTypeError(f"key: expected names of parameters, as ('m',), got {key!r:.60}")
    if estimate is not None and not callable(estimate):
        raise LowlpTypeError(f"estimate: expected a function or None, got {estimate!r:.60}")

    def decorate(make: Callable[..., Kernel]) -> Callable[..., AutotunedKernel]:
        accepted = inspect.signature(make).parameters
        takes_all = any(one.kind is one.VAR_KEYWORD for one in accepted.values())
        for name in choices[0]:
            if name not in accepted and not takes_all:
                raise LowlpValueError(f"candidates: {name!r} is no parameter of {make.__name__}")

        @functools.wraps(make)
        def made(*arguments: Any, **named: Any) -> AutotunedKernel:
            given = sorted(set(named) & set(choices[0]))
            if given:
                raise LowlpTypeError(f"{make.__name__}: {given[0]!r} is chosen among candidates, and cannot be given")
            found = [_candidate(functools.partial(make, *arguments, **named), choice) for choice in choices]
            _check(make.__name__, found, names)
            bound = inspect.signature(make).bind_partial(*arguments, **named).arguments
            return AutotunedKernel(
                make.__name__, found, names, functools.partial(estimate, **bound) if estimate else None
            )

        return made

    return decorate


@functools.cache
def _name(ordinal: int) -> str:
    return device_name(ordinal)


def _choices(candidates: object) -> list[dict[str, Any]]:
    """Each choice of constants by name."""
    if isinstance(candidates, Mapping):
        for name, values in candidates.items():
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise LowlpTypeError(f"candidates[{name!r}]: expected a list of values, got {values!r:.60}")
        found = [dict(zip(candidates, values, strict=True)) for values in itertools.product(*candidates.values())]
    elif isinstance(candidates, Iterable):
        found = []
        for one in candidates:
            if not isinstance(one, Mapping):
                raise LowlpTypeError(f"candidates: expected a mapping from names to values, got {one!r:.60}")
            found.append(dict(one))
    else:
        raise LowlpTypeError(f"candidates: expected a mapping, or a list of mappings, got {candidates!r:.60}")
    if not found or not found[0]:
        raise LowlpValueError("candidates: there must be at least one, with at least one constant")
    for one in found:
        if one.keys() != found[0].keys():
            raise LowlpValueError(f"candidates: {sorted(one)} and {sorted(found[0])} are not the same constants")
    return found


def _candidate(make: Callable[..., Kernel], constants: dict[str, Any]) -> Candidate:
    try:
        kernel = make(**constants)
        if not isinstance(kernel, Kernel):
            raise LowlpTypeError(f"the function under autotune must return a lowlp.kernel, got {kernel!r:.60}")
        kernel.module()
    except LowlpTypeError:
        raise
    except LowlpError as error:
        return Candidate(constants, None, str(error).splitlines()[0])
    return Candidate(constants, kernel)


def _check(name: str, candidates: Sequence[Candidate], key: tuple[str, ...]) -> None:
    kernels = [one.kernel for one in candidates if one.kernel is not None]
    if not kernels:
        reasons = "; ".join(dict.fromkeys(one.problem for one in candidates))
        raise LowlpValueError(f"{name}: no candidate is a kernel: {reasons}")
    for kernel in kernels:
        if kernel.parameters != kernels[0].parameters:
            raise LowlpValueError(f"{name}: all candidates must have the same parameters, as {kernels[0]!r} has")
    integers = [parameter.name for parameter in kernels[0].parameters if parameter.kind == "integer"]
    for one in key:
        if one not in integers:
            raise LowlpValueError(f"key: {one!r} is no integer parameter of {name}; there are {', '.join(integers)}")


def _number(kernel: str, name: str, value: object) -> int:
    """What a number counts as: the next power of two."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise LowlpTypeError(f"{kernel}: {name}: expected an int, got {type(value).__name__}")
    number = int(value.__index__())
    return number if number <= 0 else 1 << (number - 1).bit_length()
