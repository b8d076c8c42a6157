"""AutoRound: tensors of GPTQ, AWQ or compressed-tensors, as `packing_format` says, with settings of single layers.

    auto_round:auto_gptq                        GPTQ of version 1
    auto_round, auto_round:gptqmodel            GPTQ of version 2
    auto_round:auto_awq                         AWQ gemm
    auto_round:llm_compressor, :fp8_static      compressed-tensors, FP8

Source: intel/auto-round (export/export_to_autoround/export.py, inference/backend.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lowlp.checkpoints import awq, compressed_tensors, fp8, gptq
from lowlp.checkpoints.layers import Layer
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import TensorFiles
from lowlp.errors import CheckpointError

_VERSIONS: Final = {"auto_round:auto_gptq": "v1", "auto_round:gptqmodel": "v2", "auto_round": "v2"}
_AWQ: Final = ("auto_round:auto_awq", "auto_round:awq")
_OTHERS: Final = ("auto_round:llm_compressor", "auto_round:fp8_static", "auto_round:fp8")


def layers(files: TensorFiles, settings: Settings, exact: bool) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'auto-round'."""
    packing = str(settings.text("packing_format", default="auto_round"))
    kind = next((known for known in (*_VERSIONS, *_AWQ, *_OTHERS) if packing == known), None)
    if kind is None:
        known = ", ".join((*_VERSIONS, *_AWQ, *_OTHERS))
        raise CheckpointError(f"{settings.where}: packing_format must be one of {known}, got {packing!r:.40}")
    if kind == "auto_round:llm_compressor":
        yield from compressed_tensors.layers(files, settings, exact)
        return
    if kind in _OTHERS:
        yield from fp8.layers(files, settings)
        return
    for name in files.ending(".qweight"):
        own = settings.with_fields(settings.part("extra_config").part(name).fields)
        if kind in _AWQ:
            own.integer("bits", allowed=(4,), default=4)
            yield awq.layer_of(files, name, own.integer("group_size"))
            continue
        bits = own.integer("bits", allowed=gptq.BITS)
        if bits is None:
            raise CheckpointError(f"{settings.where}: bits must be given")
        form = gptq.Form(bits, own.integer("group_size"), _VERSIONS[kind], bool(own.flag("sym", default=True)))
        yield gptq.layer_of(files, name, form)
