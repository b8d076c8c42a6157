"""W4A8: weights of 4 bits times activations of 8, by products of bytes, and how accurate the pair is.

Weights [N, K] are quantised once and packed for bytes; each row of x is quantised by itself, to integers with one
scale. Sums of their products are exact; one scale a row of weights and one a row of x are then multiplied. Floats of 8
bits take the same steps, with sums in f32.

    python examples/w4a8.py [-m M] [-n N] [-k K]    compile, run on the CPU target, compare with numpy and float64
"""

import argparse

import numpy as np

import lowlp


def relative_error(found: np.ndarray, exact: np.ndarray) -> float:
    """In the norm of Frobenius."""
    return float(np.linalg.norm(found.astype(np.float64) - exact) / np.linalg.norm(exact))


def main() -> None:
    """Compares W4A8 with W4A16 and W8A8."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    for name, extent in (("m", 16), ("n", 256), ("k", 512)):
        parser.add_argument(f"-{name}", type=int, default=extent)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((args.m, args.k)).astype(np.float16)
    w = (rng.standard_normal((args.n, args.k)) / np.sqrt(args.k)).astype(np.float32)
    exact = x.astype(np.float64) @ w.astype(np.float64).T

    qw = lowlp.quantize(w, "int4", group_size=-1, activation="int8")
    xq = lowlp.quantize_activations(x, "int8")
    sums = lowlp.linear(xq, qw, out_dtype="s32")
    numbers = qw.codec.values().astype(np.int64)[qw.codes]
    assert (sums == xq.codes.astype(np.int64) @ numbers.T).all()
    y = lowlp.linear(xq, qw, out_dtype="f32")
    scaled = (sums.astype(np.float32) * np.asarray(qw.scales, np.float32).reshape(1, -1)) * xq.scales
    assert (y == scaled).all()
    print("int4 x int8: the sums are numpy's, and so is every bit of their products with scales")

    print(f"{'weights':8} {'activations':12} relative error")
    for weight, activation in (("int4", None), ("int4", "int8"), ("int8", "int8"), ("f4e2m1", "f8e4m3")):
        placed = "f16" if activation is None else activation
        packed = lowlp.quantize(w, weight, group_size=-1, activation=placed)
        y = lowlp.linear(x, packed, activation=activation, out_dtype="f32")
        print(f"{weight:8} {activation or 'f16':12} {relative_error(y, exact):.4f}")


if __name__ == "__main__":
    main()
