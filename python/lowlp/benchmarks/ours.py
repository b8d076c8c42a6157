"""Our own kernels: from a folder, checked, then timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lowlp_runtime.arguments import bind
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.dependent_launch import no_dependent_launch
from lowlp_runtime.launch import launch
from lowlp_runtime.launcher import launcher_of
from lowlp_runtime.ordered_rows import OrderedRows
from lowlp_runtime.vector_order import padded_columns

from .cases import Shape
from .checking import OUR_TOLERANCE, poison, problem_of, reference, relative_error, sampled_columns, tolerance
from .prepared import KernelEntry, PreparedKernels
from .random_books import random_books
from .random_weights import random_activations, random_weights
from .results import Row, rounded, with_times
from .timing import Effort, time_call


class OurProduct:
    """One kind of weights of one shape on the GPU, with the product in float64 for up to `most_rows` rows.

    checked_columns  of a result, at most, are compared with it; None: all
    """

    def __init__(
        self,
        prepared: PreparedKernels,
        kind: str,
        shape: Shape,
        most_rows: int,
        device: Any,
        checked_columns: int | None = None,
    ) -> None:
        self._prepared, self._kind, self.shape = prepared, kind, shape
        saved, sample = prepared.weights_in(kind, shape)
        draw = random_books if saved.vectors else random_weights
        weights = draw(saved, sample, shape, device)
        self.operands = weights.operands
        """What kernels of `linear` take of the weights, by name, some of them not all of it."""
        self.x = random_activations(most_rows, shape.k, device, saved.activation)
        self._columns = sampled_columns(shape.n, checked_columns, device)
        self._wanted = reference(self.x, weights.dequantized(saved, self._columns))
        self._tolerance = tolerance(OUR_TOLERANCE, saved.activation)

    def measure(self, m: int, stream: int, effort: Effort) -> Row:
        """Checks and times M rows. Raises what loading and launching raise."""
        return self.measure_entry(self._prepared.entry(self._kind, self.shape, m), m, stream, effort)

    def measure_entry(self, entry: KernelEntry, m: int, stream: int, effort: Effort) -> Row:
        """As `measure`, by a kernel that is named, or with slabs that it decodes.

        A call does not overlap what is in front of it: otherwise weights could be fetched before the time begins. Of
        two launches the second begins early, as `linear` has it.
        """
        kernel = self._prepared.load(entry)
        if entry.slabs:
            return self._measure_call("lowlp", lambda y: self._by_slabs(kernel, entry, y, stream), m, stream, effort)
        product = kernel.description.require_product()
        x, ordered = self.x[:m], None
        if product.vector_order:
            x, ordered = self._in_order(kernel, m)
        numbers = product.launch_numbers(m, x.shape[1], None, self._prepared.multiprocessors)

        def arguments(y: Any) -> dict[str, Any]:
            taken = {operand.name: self.operands[operand.name] for operand in product.of_source("weights")}
            return {**product.by_name({"x": x, "y": y, **numbers}), **taken}

        return self.measure_kernel("lowlp", kernel, arguments, m, stream, effort, ordered)

    def _in_order(self, kernel: KernelBinary, m: int) -> tuple[Any, OrderedRows]:
        """Rows in which the kernel before a product puts x in the order of vectors, and what launches it."""
        import torch

        assert kernel.before is not None
        k, device = self.shape.k, self.x.device
        made = torch.empty((m, padded_columns(k)), dtype=self.x.dtype, device=device)
        launcher, count = launcher_of(kernel.before), self._prepared.multiprocessors
        return made, OrderedRows(launcher, None, made.shape[1], m, k, count, lambda: made)

    def measure_kernel(
        self,
        who: str,
        kernel: KernelBinary,
        arguments_with: Callable[[Any], dict[str, Any]],
        m: int,
        stream: int,
        effort: Effort,
        ordered: OrderedRows | None = None,
    ) -> Row:
        """Checks and times a kernel for M rows, which takes `arguments_with` its result y, by name; with the kernel
        before it that makes its x, if there is one."""

        def call_with(y: Any) -> Callable[[], None]:
            named = arguments_with(y)
            arguments = bind(kernel.description, named)
            device, launcher = self.x.get_device(), launcher_of(kernel)

            @no_dependent_launch()
            def alone() -> None:
                launch(kernel, arguments, stream=stream)

            if ordered is None:
                return alone
            values = {
                name: value if isinstance(value, int | float) else launcher.read(name, value)
                for name, value in named.items()
            }
            after = launcher.bind(values, (), device)

            def run() -> None:
                with no_dependent_launch():
                    ordered.make(self.x.data_ptr(), device, stream)
                after.run((), device, stream)

            return run

        return self._measure_call(who, call_with, m, stream, effort)

    def _by_slabs(self, kernel: KernelBinary, entry: KernelEntry, y: Any, stream: int) -> Callable[[], None]:
        """What decodes slab after slab and multiplies each by PyTorch's library, on its current stream."""
        import torch

        x, k = self.x[: len(y)], self.shape.k
        names = [parameter.name for parameter in kernel.description.parameters]
        weights = {name: self.operands[name] for name in names if name in self.operands}
        launcher = launcher_of(kernel)
        kept = {name: launcher.read(name, operand) for name, operand in weights.items()}
        calls = [
            (slice(first, first + rows), launcher.bind({**kept, "first": first, "rows": rows, "blocks": blocks}))
            for first, rows, blocks in entry.slabs
        ]

        @no_dependent_launch()
        def run() -> None:
            for part, call in calls:
                slab = torch.empty((part.stop - part.start, k), dtype=x.dtype, device=x.device)
                call.run((slab.data_ptr(),), x.get_device(), stream)
                torch.mm(x, slab.t(), out=y[:, part])

        return run

    def _measure_call(
        self, who: str, call_with: Callable[[Any], Callable[[], None]], m: int, stream: int, effort: Effort
    ) -> Row:
        """Checks and times what `call_with` makes of a result y to be written."""
        import torch

        y = torch.empty((m, self.shape.n), dtype=self.x.dtype, device=self.x.device)
        run = call_with(y)
        poison(y)
        run()
        torch.cuda.synchronize()
        error = relative_error(y, self._wanted[:m], self._columns)
        found = Row(
            who, self._kind, self.shape.n, self.shape.k, m, None, error=rounded(error, 3), tolerance=self._tolerance,
            problem=problem_of(error, self._tolerance),
        )  # fmt: skip
        if found.problem:
            return found
        timing = time_call(run, stream, effort)
        return with_times(found, timing)
