"""What runs in the worker's process: our kernels of a path, and peers, checked and then timed."""

from __future__ import annotations

import gc
from functools import cached_property
from typing import Any, Final

from lowlp.benchmarks.checking import OUR_TOLERANCE, poison, problem_of, relative_error, sampled_columns
from lowlp.benchmarks.measuring import Product, serve_on_gpu
from lowlp.benchmarks.prepared import PreparedKernels
from lowlp.benchmarks.results import Row, rounded, with_times
from lowlp.benchmarks.timing import Effort, time_call
from lowlp.benchmarks.worker import Settings, Unit
from lowlp.numeric.array_ops import TorchOps
from lowlp_runtime.arguments import bind
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.dependent_launch import no_dependent_launch
from lowlp_runtime.launch import launch

from .cases import KINDS, OURS, ActivationKind
from .drawing import Drawn, draw
from .rivals import RivalProduct

_FLOAT_TOLERANCE: Final = 5e-3
"""Of products of 8-bit floats: tensor cores of Hopper cut their sums off."""
_CHECKED_COLUMNS: Final = 512


def run_worker(connection: Any, settings: Settings) -> None:
    """Serves the parent until it hangs up."""
    serve_on_gpu(connection, settings, _Opener())


class _Opener:
    """Makes what a unit measures; keeps the numbers that were drawn last, which paths of a kind share."""

    def __init__(self) -> None:
        self._drawn: Drawn | None = None
        self._rows = 0

    def __call__(self, prepared: PreparedKernels | None, unit: Unit, settings: Settings, device: Any) -> Product:
        import torch

        columns = settings.checked_columns or _CHECKED_COLUMNS
        if not unit.who.startswith(OURS):
            self._drawn = None
            gc.collect()
            torch.cuda.empty_cache()
            return RivalProduct(unit.who, unit.kind, unit.shape, unit.rows, device, columns)
        assert prepared is not None, "units of ours come with a folder of kernels"
        kind, path = KINDS[unit.kind], unit.who.split()[1]
        drawn = self._drawn
        if drawn is None or drawn.kind != kind or drawn.shape != unit.shape or self._rows < max(unit.rows):
            self._drawn = drawn = None
            gc.collect()
            torch.cuda.empty_cache()
            values = prepared.weights[kind.weights.kind_for(path).name].values
            self._drawn = drawn = draw(kind, unit.shape, max(unit.rows), values, device)
            self._rows = max(unit.rows)
        return PathProduct(prepared, kind, path, drawn, columns)


class PathProduct:
    """A path of ours, with numbers that were drawn."""

    def __init__(
        self, prepared: PreparedKernels, kind: ActivationKind, path: str, drawn: Drawn, checked_columns: int
    ) -> None:
        import torch

        self._prepared, self._kind, self._path, self._drawn = prepared, kind, path, drawn
        shape, device = drawn.shape, drawn.codes.device
        columns = sampled_columns(shape.n, checked_columns, device)
        self._columns = torch.arange(shape.n, device=device) if columns is None else columns
        self._wanted = drawn.wanted(self._columns, path == "f16")
        self._is_exact = path != "f16" and drawn.is_one_sum
        self._tolerance = _FLOAT_TOLERANCE if path == "fp8" else OUR_TOLERANCE
        name = kind.weights.kind_for(path).name
        saved, ops = prepared.weights[name], TorchOps(device)
        saved.check_sample(ops, prepared.sample(name))
        self._of_weights = saved.make_operands(ops, drawn.codes, drawn.scales, None, super_scales=drawn.super_scales)

    @no_dependent_launch()
    def measure(self, m: int, stream: int, effort: Effort) -> Row:
        """Checks and times M rows. Raises what loading and launching raise."""
        import torch

        shape, kind = self._drawn.shape, self._kind
        kernel = self._prepared.load(self._prepared.entry(kind.kernel_kind(self._path), shape, m))
        y = torch.empty((m, shape.n), dtype=torch.float16, device=self._drawn.codes.device)
        poison(y)
        arguments = bind(kernel.description, self.arguments(kernel, m, y))
        launch(kernel, arguments, stream=stream)
        torch.cuda.synchronize()
        error = relative_error(y, self._wanted[:m], self._columns)
        tolerance = 0.0 if self._is_exact else self._tolerance
        found = Row(
            f"{OURS} {self._path}", kind.name, shape.n, shape.k, m, None, error=rounded(error, 3), tolerance=tolerance,
            problem=problem_of(error, tolerance),
        )  # fmt: skip
        if found.problem:
            return found

        def run() -> None:
            launch(kernel, arguments, stream=stream)

        return with_times(found, time_call(run, stream, effort))

    @cached_property
    def _sums_of_weights(self) -> Any:
        return self._drawn.sums_of_weights(as_stored=self._path == "planes")

    def arguments(self, kernel: KernelBinary, m: int, y: Any) -> dict[str, Any]:
        """What the kernel takes for M rows, by name."""
        import torch

        drawn = self._drawn
        if self._path == "planes":
            given = {
                "planes": drawn.planes(m).reshape(-1),
                "w_sums": self._sums_of_weights,
                "x_scales": drawn.x_scales[:m],
                "x_sums": drawn.sums_of_x[:m],
                "y": y,
                "m": m,
                **self._of_weights,
            }
            return {name: given[name] for name in (parameter.name for parameter in kernel.description.parameters)}
        product = kernel.description.require_product()
        x = (drawn.x_halves if self._path == "f16" else drawn.x_codes)[:m]
        if self._path == "fp8":
            # Kernels read their bits.
            x = x.view(torch.uint8)
        numbers = product.launch_numbers(m, x.shape[1], None, self._prepared.multiprocessors)
        of_call: dict[str, Any] = {"x": x, "y": y, **numbers}
        if product.operand("x_scales"):
            of_call["x_scales"] = drawn.x_scales[:m]
        if product.operand("x_sums"):
            of_call["x_sums"] = drawn.sums_of_x[:m]
        if product.operand("weight_sums"):
            of_call["weight_sums"] = self._sums_of_weights
        taken = {operand.name: self._of_weights[operand.name] for operand in product.of_source("weights")}
        return {**product.by_name(of_call), **taken}
