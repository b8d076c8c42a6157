"""`lowlp.torch.parallel`: modules with quantised weights on several GPUs, by `torch.distributed`.

    from torch.distributed.tensor.parallel import parallelize_module
    from lowlp.torch.parallel import ColwiseParallel, RowwiseParallel, load

    parallelize_module(model, mesh, {"mlp.gate_up": ColwiseParallel(), "mlp.down": RowwiseParallel()})
    load(model, "TheModel", device="cuda")

docs/several-gpus.md has the whole of it. Nothing else imports this package, which imports `torch.distributed.tensor`.
"""

from .experts import ExpertParallel as ExpertParallel
from .loading import load as load
from .styles import ColwiseParallel as ColwiseParallel
from .styles import RowwiseParallel as RowwiseParallel

__all__ = ["ColwiseParallel", "ExpertParallel", "RowwiseParallel", "load"]
