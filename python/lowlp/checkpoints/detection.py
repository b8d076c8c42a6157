"""Which format a checkpoint has: by the method that its config names, or by its tensors where it names none.

Configs are looked for in this order: `quantization_config` or `quantization` in config.json, hf_quant_config.json of
modelopt, quantize_config.json and quant_config.json. Without any, names and shapes of tensors say it, and where two
readings fit, the error names both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lowlp.checkpoints import (
    aqlm,
    autoround,
    awq,
    bitnet,
    bitsandbytes,
    compressed_tensors,
    fp8,
    gemma,
    gptq,
    hqq,
    microscaling,
    mlx,
    modelopt,
    quip,
    torchao,
)
from lowlp.checkpoints.layers import Layer
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import TensorFiles
from lowlp.errors import CheckpointError
from lowlp_runtime.errors import os_error

Find = Callable[[TensorFiles, Settings, bool], Iterator[Layer]]


def _plain(find: Callable[[TensorFiles, Settings], Iterator[Layer]]) -> Find:
    return lambda files, settings, exact: find(files, settings)


FORMATS: Final[dict[str, Find]] = {
    "gptq": _plain(gptq.layers),
    "awq": _plain(awq.layers),
    "auto-round": autoround.layers,
    "compressed-tensors": compressed_tensors.layers,
    "bitsandbytes": _plain(bitsandbytes.layers),
    "fp8": _plain(fp8.layers),
    "mxfp4": _plain(microscaling.layers),
    "modelopt": modelopt.layers,
    "hqq": _plain(hqq.layers),
    "aqlm": _plain(aqlm.layers),
    "mlx": _plain(mlx.layers),
    "gemma": _plain(gemma.layers),
    "bitnet": _plain(bitnet.layers),
    "torchao": _plain(torchao.layers),
    "quip#": _plain(quip.layers),
}
"""Method -> what finds its layers."""

_OTHER_NAMES: Final = {
    "gptq_v2": "gptq",
    "auto_round": "auto-round",
    "intel/auto-round": "auto-round",
    "compressed_tensors": "compressed-tensors",
    "bnb": "bitsandbytes",
    "fbgemm_fp8": "fp8",
    "mxfp8": "fp8",
    "metal": "mlx",
    "quip": "quip#",
    "modelopt_fp4": "modelopt",
}

REFUSED: Final = {
    "vptq": "its vectors run down the output features",
    "exl3": "its weights are the states of a trellis",
    "exl2": "it packs by a table of its own for each group of rows",
    "higgs": "its packing depends on the GPU that it was made for",
    "spqr": "it keeps outliers as a sparse matrix",
    "quark": "its layouts are not described",
    "quanto": "its tensors are pickled subclasses",
    "eetq": "its packing is that of one kernel",
    "fp_quant": "its weights are rotated in blocks at run time",
    "sinq": "it has scales along both axes",
    "marlin": "its words are in the order of one kernel; convert the checkpoint that it was made of",
    "gptq_marlin": "its words are in the order of one kernel; convert the checkpoint that it was made of",
    "awq_marlin": "its words are in the order of one kernel; convert the checkpoint that it was made of",
    "deepspeedfp": "it has no stored form of its own",
    "experts_int8": "it has no stored form of its own",
}
"""Method -> why it is not read."""


def settings_of(folder: Path) -> tuple[str | None, Settings]:
    """The method that the configs in a folder name, None without one, and its fields. Raises `CheckpointError`."""
    found: tuple[str | None, Settings] = (None, Settings({}))
    config = read_json(folder / "config.json")
    modelopt_config = read_json(folder / "hf_quant_config.json")
    fields = config.get("quantization_config", config.get("compression_config"))
    if isinstance(modelopt_config.get("quantization"), Mapping) and not isinstance(fields, Mapping):
        return "modelopt", Settings(modelopt_config["quantization"], "hf_quant_config.json")
    if fields is None and isinstance(config.get("quantization"), Mapping):
        return "mlx", Settings(config["quantization"], "config.json: quantization")
    if fields is None and isinstance(config.get("quip_params"), Mapping):
        return "quip#", Settings(config["quip_params"], "config.json: quip_params")
    if isinstance(fields, Mapping):
        where = "config.json: quantization_config"
        method = fields.get("quant_method", fields.get("method"))
        if method is None and (fields.get("load_in_4bit") or fields.get("load_in_8bit")):
            method = "bitsandbytes"
        if method is not None and not isinstance(method, str):
            raise CheckpointError(f"{where}: quant_method must be a text, got {method!r:.40}")
        found = (None if method is None else known_method(method, where), Settings(fields, where))
    for name in ("quantize_config.json", "quant_config.json"):
        other = read_json(folder / name)
        if other and found[0] is None:
            method = other.get("quant_method", other.get("method"))
            if method is None and "w_bit" in other:
                method = "awq"
            elif method is None and "desc_act" in other:
                method = "gptq"
            found = (None if method is None else known_method(str(method), name), Settings(other, name))
    return found


def known_method(method: str, where: str) -> str:
    """The name of a method in `FORMATS`, or 'lowlp'. Raises `CheckpointError` for others, with the reason where one is
    known."""
    name = method.lower()
    name = _OTHER_NAMES.get(name, name)
    if name in REFUSED:
        raise CheckpointError(f"{where}: quant_method {method!r:.40} is not read: {REFUSED[name]}")
    if name not in FORMATS and name != "lowlp":
        raise CheckpointError(
            f"{where}: quant_method {method!r:.40} is not known; read are {', '.join(FORMATS)}, lowlp"
        )
    return name


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file of JSON; {} where there is no such file. Raises `CheckpointError` and `LowlpOSError`."""
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise os_error(error, path) from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: no JSON: {error}") from None
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: expected an object, got {found!r:.40}")
    return found


def method_by_tensors(files: TensorFiles) -> str | None:
    """The one method that names and shapes of tensors fit; None where nothing is quantised. Raises `CheckpointError`
    where several fit, or one that is not read."""
    fits = dict(_readings(files))
    if not fits:
        return None
    if len(fits) > 1:
        listed = " and ".join(f"{method} ({reason})" for method, reason in fits.items())
        raise CheckpointError(
            f"{files.paths[0]}: several readings fit: {listed}; put the quant_method into config.json beside it"
        )
    (method,) = fits
    if method in REFUSED:
        raise CheckpointError(f"{files.paths[0]}: {fits[method]} are those of {method}, not read: {REFUSED[method]}")
    return method


_MARKS: Final = (
    (".weight_packed", "compressed-tensors"),
    (".W_q", "hqq"),
    (".Qidxs", "quip#"),
    (".trellis", "exl3"),
    ("_scale_inv", "fp8"),
    (".weight_scale_2", "modelopt"),
    (".SCB", "bitsandbytes"),
    (".codebooks", "aqlm"),
    (".centroids.weight", "vptq"),
    ("_blocks", "mxfp4"),
)


def _readings(files: TensorFiles) -> Iterator[tuple[str, str]]:
    """Methods that fit, and the tensors by which they do."""
    for suffix, method in _MARKS:
        if files.ending(suffix):
            yield method, f"tensors *{suffix}"
    if any(".quant_state.bitsandbytes__" in name for name in files.names):
        yield "bitsandbytes", "tensors *.quant_state.bitsandbytes__*"
    if any(name.endswith("_qdata") for name in files.names) or "tensor_names" in files.metadata:
        yield "torchao", "tensors *_qdata"
    for name in files.ending(".qweight")[:1]:
        yield from _of_words(files, name)
    if any(f"{name}.biases" in files or f"{name}.qbiases" in files for name in files.ending(".scales")):
        yield "mlx", "tensors *.biases"


def _of_words(files: TensorFiles, name: str) -> Iterator[tuple[str, str]]:
    """GPTQ has qweight [K b / 32, N], AWQ [K, N / 8], and both scales [groups, N]."""
    words, scales = files.shape(f"{name}.qweight"), files.shape(f"{name}.scales")
    if len(words) != 2 or len(scales) != 2:
        raise CheckpointError(f"{name}.qweight: expected a matrix, got shape {list(words)}")
    if words[1] == scales[1]:
        yield "gptq", f"{name}.qweight {list(words)}"
    if 8 * words[1] == scales[1]:
        yield "awq", f"{name}.qweight {list(words)}"
    if words[1] != scales[1] and 8 * words[1] != scales[1]:
        raise CheckpointError(
            f"{name}.qweight: shape {list(words)} with scales {list(scales)} fits neither GPTQ, [K b / 32, N], nor "
            "AWQ, [K, N / 8]"
        )
