"""Prints the tables of docs/which-codec.md: errors on the matrix of `lowlp demo`, bits a weight, and measured speed.

python tools/dev/which_codec.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import lowlp
from lowlp.cli import demo_weights

PERFORMANCE = Path(__file__).resolve().parents[2] / "docs" / "measurements" / "weights.md"
TOKENS = 512
LAYER = "encoder.layer.0.attention.output.LayerNorm"
EMBEDDINGS = "embeddings.word_embeddings.weight"
# The name in docs/measurements/weights.md, which is that of the codec but for these.
MEASURED_AS = {"uint4, zero points": "uint4 with zero points", "NF4": "NF4 table"}
CODECS: dict[str, dict[str, Any]] = {
    **{name: {"dtype": name} for name in (*(f"int{bits}" for bits in range(8, 0, -1)), "f6e3m2", "f5e2m2", "f3e1m1")},
    **{f"int{bits}, groups of 32": {"dtype": f"int{bits}", "group_size": 32} for bits in (4, 3, 2)},
    **{f"uint{bits}, zero points": {"dtype": f"uint{bits}", "zero_point": True} for bits in (4, 3, 2)},
    **{f"NF{bits}": {"lut": lowlp.nf(bits)} for bits in (4, 3, 2)},
    **{f"bipolar{bits}": {"dtype": f"bipolar{bits}"} for bits in (3, 2, 1)},
    "NVFP4": {"dtype": "f4e2m1", "group_size": 16, "scale_dtype": "e4m3"},
    "MXFP4": {"dtype": "f4e2m1", "group_size": 32, "scale_dtype": "e8m0"},
}
BOOKS: dict[str, dict[str, Any]] = {
    "`vq(8, 8)`, AQLM 1x8": {"dtype": "aqlm-1x8"},
    "`vq(4, 8)`": {"vq": lowlp.vq(4, 8)},
    "`vq(4, 8)` in blocks of 256 x 256, GPTVQ-2": {"dtype": "gptvq-2"},
    "`vq(8, 8, 2)`, AQLM 2x8": {"dtype": "aqlm-2x8"},
    '`vq(8, 8, 2, "int8")`': {"vq": lowlp.vq(8, 8, 2, "int8")},
    "`vq(8, 8, 3)`": {"vq": lowlp.vq(8, 8, 3)},
    "`vq(8, 12, 2)`, AQLM-3": {"dtype": "aqlm-3"},
    "`vq(2, 8)`": {"vq": lowlp.vq(2, 8)},
    "`vq(8, 8, 4)`": {"vq": lowlp.vq(8, 8, 4)},
}


def activations() -> Any:
    """Float64 [512, K], about what the matrix gets: embeddings of every 59th token through the layer norm before it.
    Gaussian where the model is not installed."""
    file = demo_weights.model_file()
    if file is None:
        return np.random.default_rng(1).normal(size=(TOKENS, demo_weights.SHAPE[1]))
    from safetensors import safe_open

    with safe_open(file, framework="numpy") as tensors:
        x = tensors.get_tensor(EMBEDDINGS).astype(np.float64)
        x = x[:: len(x) // TOKENS][:TOKENS]
        x = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
        return x * tensors.get_tensor(f"{LAYER}.weight") + tensors.get_tensor(f"{LAYER}.bias")


def speeds() -> dict[str, list[str]]:
    """Of each codec the times of torch in f16 over ours, for 1, 16 and 256 rows of x, by the page of measurements."""
    page = PERFORMANCE.read_text(encoding="utf-8")
    section = page[page.index("## Speed over torch f16") :].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]
    columns = [rows[0].index(f"M = {m}") for m in (1, 16, 256)]
    return {row[0]: [row[column] for column in columns] for row in rows[2:]}


def table() -> list[str]:
    """The lines of the table, by bits."""
    w, _ = demo_weights.load_demo_weight()
    x, measured = activations(), speeds()
    y = x @ w.T.astype(np.float64)
    head = [
        "| codec | bits a weight | error of w | with `search=True` | error of y | M = 1 | M = 16 | M = 256 |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    lines = []
    for name, arguments in CODECS.items():
        qw = lowlp.quantize(w, **arguments)
        values = [qw.dequantize(), lowlp.quantize(w, **arguments, search=True).dequantize()]
        errors = [np.linalg.norm(found - w) / np.linalg.norm(w) for found in values]
        errors.append(np.linalg.norm(x @ values[0].T.astype(np.float64) - y) / np.linalg.norm(y))
        numbers = [f"{8 * qw.nbytes / w.size:.2f}", *(f"{error:.3f}" for error in errors)]
        numbers += measured.get(MEASURED_AS.get(name, name), ["", "", ""])
        line = f"| {name} | {' | '.join(numbers)} |".replace("  ", " ").replace("  ", " ")
        lines.append((-qw.nbytes, line))
    return head + [line for _, line in sorted(lines)]


def table_of_books() -> list[str]:
    """The lines of the table of codebooks, in the order of `BOOKS`."""
    w, _ = demo_weights.load_demo_weight()
    x = activations()
    y = x @ w.T.astype(np.float64)
    lines = [
        "| codebooks | bits of codes | bits a weight | error of w | error of y | with `importance`: of w | of y |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, arguments in BOOKS.items():
        numbers = []
        for importance in (None, (x**2).mean(0)):
            qw = lowlp.quantize(w, **arguments, importance=importance)
            values = qw.dequantize().astype(np.float64)
            numbers.append(np.linalg.norm(values - w) / np.linalg.norm(w))
            numbers.append(np.linalg.norm(x @ values.T - y) / np.linalg.norm(y))
        vectors = qw.codec.vectors
        assert vectors is not None
        bits = [f"{vectors.bits_per_weight:.2f}", f"{8 * qw.nbytes / w.size:.2f}"]
        lines.append(f"| {name} | {' | '.join([*bits, *(f'{number:.3f}' for number in numbers)])} |")
    return lines


if __name__ == "__main__":
    print("\n".join([*table(), "", *table_of_books()]))
