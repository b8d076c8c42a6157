"""`lowlp.tune_linear`: measures schedules before they are needed, for shapes or for the layers of a model."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lowlp.compiler.architectures import arch_of
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.choosing import reason_for
from lowlp.kernels.linear.measured import use_tuned
from lowlp.kernels.linear.planes.choosing import choose_planes
from lowlp.numeric.codec import Codec
from lowlp.schedules.device import Device, device_of
from lowlp_runtime.cache import KernelCache
from lowlp_runtime.device import current_device, device_name, multiprocessors, why_no_device
from lowlp_runtime.errors import DeviceError, check_path

from .measured import MeasuredFile
from .measuring import measure, until
from .preparing import open_folder, prepare
from .problems import AnyProblem, PlanesProblem
from .wanted import ROWS, Weights, problems_of

_CANDIDATES: Final = 16
_GROUP_OF_HALVES: Final = 128


@dataclass(frozen=True)
class Tuning:
    """What `tune_linear` found.

    path      the file, which is in use
    measured  what was measured for each problem that has an entry: kind, N, K, M -> the entry
    left      problems without one: the budget was spent, or no candidate compiled
    """

    path: Path
    measured: dict[tuple[str, int, int, int], dict[str, Any]]
    left: tuple[AnyProblem, ...]
    _gpu: str
    _device: Device

    def report(self) -> str:
        """A line for each problem: what its fastest schedule took and the best one by estimate, or what is taken for it
        now, and why."""
        lines = [f"{self._gpu}: {len(self.measured)} problems measured, {len(self.left)} left; {self.path}"]
        for (kind, n, k, m), entry in self.measured.items():
            us = entry["us"][str(m)]
            first = entry.get("us_of_estimate", {}).get(str(m), us)
            schedule = " ".join(f"{name}={value}" for name, value in entry["schedule"].items())
            lines.append(f"  {kind} {n}x{k} M={m}: {us:.1f} us (by estimate {first:.1f}): {schedule}")
        for problem in self.left:
            kind, n, k, m = problem.key
            lines.append(f"  {kind} {n}x{k} M={m}: {_reason(problem, self._device, self._gpu)}")
        return "\n".join(lines)


def tune_linear(
    what: Any,
    *,
    weights: Sequence[str | Codec] = ("int4",),
    activations: Sequence[str] | None = None,
    m: Sequence[int] | None = None,
    path: str | None = None,
    budget_s: float | None = None,
    candidates: int = _CANDIDATES,
    jobs: int = 0,
    out: str | os.PathLike[str] | None = None,
) -> Tuning:
    """Measures schedules of `linear` on the GPU at hand, and takes the fastest from now on.

    what         shapes [N, K] of weights, [(4096, 4096), ...]; or a module of PyTorch, whose `lowlp.torch.Linear` say
                 shapes, codecs and activations themselves
    weights      of shapes: types of codes, 'int1' to 'int8' and the like, or codecs, 'int4 g128 f16'; a type alone has
                 groups of 128 with halves, and one scale a row with quantised activations
    activations  'f16', 'bf16', 'int1' to 'int8', 'uint1' to 'uint8', 'bipolar1' to 'bipolar8', 'ternary', 'f8e4m3';
                 None: of modules their own, of shapes 'f16'
    m            rows of x that entries are for, of 1, 4, 16, 32, 64, 128, 256, 1024 and 4096; None: all that a path has
    path         'planes', 's8' or 'fp8': by which products alone; None: each that takes weights and activations exactly
    budget_s     seconds after which no further problem is begun; None: all are measured
    candidates   of a problem, by estimate; what was measured for the shape comes on top
    jobs         processes that compile; 0: one for each processor
    out          the file; what it has of other problems stays, and what it has of these is not measured again. None:
                 `tuned/<name of the GPU>.json` in the folder of the kernel cache

    Other processes read the file by `lowlp.use_tuned(path)`, or LOWLP_TUNED. What was measured serves near shapes,
    numbers of rows and widths too (docs/tuning.md). Kernels with the same type of results give the same results, but
    for roundings of sums of floats.
    Raises `DeviceError` without a GPU, `LowlpTypeError` and `LowlpValueError` for other arguments.
    """
    problems = problems_of(*_wanted(what, weights, activations), rows=_rows(m), path=path)
    if budget_s is not None and (isinstance(budget_s, bool) or not isinstance(budget_s, int | float) or budget_s <= 0):
        raise LowlpValueError(f"budget_s: must be None or a positive number of seconds, got {budget_s!r:.40}")
    for name, value, least in (("candidates", candidates, 1), ("jobs", jobs, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise LowlpValueError(f"{name}: must be a whole number of at least {least}, got {value!r:.40}")
    _check_gpu()
    gpu = current_device()
    name = device_name(gpu)
    file = MeasuredFile(_file(out, name), name, "out")
    missing = [problem for problem in problems if not file.find(problem.key)]
    is_over = until(budget_s)
    with tempfile.TemporaryDirectory() as folder:
        prepared = open_folder(Path(folder), arch_of(gpu), multiprocessors(gpu))
        with closing(prepare(prepared, missing, candidates, jobs)) as compiled:
            for _ in measure(prepared, compiled, file, is_over=is_over):
                pass
    entries = {problem.key: entry for problem in problems if (entry := file.find(problem.key))}
    if entries:
        use_tuned(file.path)
    left = tuple(problem for problem in problems if problem.key not in entries)
    return Tuning(file.path, entries, left, name, device_of(gpu))


def _check_gpu() -> None:
    """Raises `DeviceError` where nothing can be measured."""
    missing = why_no_device()
    if not missing and importlib.util.find_spec("torch") is None:
        missing = "PyTorch, which holds arrays on the GPU, is not installed: pip install torch"
    if missing:
        raise DeviceError(f"tune_linear needs a GPU: {missing}")


def _reason(problem: AnyProblem, device: Device, gpu: str) -> str:
    """Why the schedule that is taken for a problem is."""
    if isinstance(problem, PlanesProblem):
        return choose_planes(problem.spec, problem.m, device, gpu).reason
    return reason_for(problem.spec, problem.m, device, gpu)


def _rows(m: Sequence[int] | None) -> tuple[int, ...] | None:
    if m is None:
        return None
    found = tuple(m) if isinstance(m, Iterable) else (m,)
    for rows in found:
        if rows not in ROWS or isinstance(rows, bool):
            raise LowlpValueError(f"m: must be among {', '.join(map(str, ROWS))}, got {rows!r:.40}")
    return found


def _file(out: str | os.PathLike[str] | None, gpu: str) -> Path:
    if out is not None:
        check_path(out)
        return Path(out)
    cache = KernelCache.from_environment()
    if cache is None:
        raise LowlpValueError("out: must name a file, since kernels are not kept on disk (LOWLP_CACHE_DIR is empty)")
    return cache.folder / "tuned" / (re.sub(r"\W+", "-", gpu) + ".json")


def _wanted(
    what: Any, weights: Sequence[str | Codec], activations: Sequence[str] | None
) -> tuple[list[Weights], list[str]]:
    """The matrices and the activations by which they are multiplied."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(what, torch.nn.Module):
        return _of_module(what, activations)
    names = list(activations) if activations is not None else ["f16"]
    shapes = [_shape(shape) for shape in what] if isinstance(what, Iterable) and not isinstance(what, str) else []
    if not shapes:
        raise LowlpTypeError(f"what: expected shapes [(N, K), ...] or a module of PyTorch, got {what!r:.60}")
    has_halves = any(name in ("f16", "bf16") for name in names)
    return [Weights(n, k, _codec(text, has_halves)) for text in weights for n, k in shapes], names


def _shape(shape: Any) -> tuple[int, int]:
    if isinstance(shape, tuple | list) and len(shape) == 2 and all(type(extent) is int for extent in shape):
        return shape[0], shape[1]
    raise LowlpTypeError(f"what: expected shapes (N, K), got {shape!r:.60}")


def _codec(text: str | Codec, has_halves: bool) -> Codec:
    if isinstance(text, Codec):
        return text
    if " " not in text:
        text = f"{text} g{_GROUP_OF_HALVES} f16" if has_halves else f"{text} channel f16"
    return Codec.parse(text)


def _of_module(module: Any, activations: Sequence[str] | None) -> tuple[list[Weights], list[str]]:
    from lowlp.torch.linear import Linear

    layers = [layer for layer in module.modules() if isinstance(layer, Linear)]
    if not layers:
        raise LowlpValueError("what: has no quantised layer; lowlp.torch.quantize_ makes them")
    found = [Weights(layer.out_features, layer.in_features, layer.codec) for layer in layers]
    halves = {"torch.float16": "f16", "torch.bfloat16": "bf16"}
    own = [layer.activation or halves.get(str(layer.dtype), "f16") for layer in layers]
    return list(dict.fromkeys(found)), list(activations or dict.fromkeys(own))
