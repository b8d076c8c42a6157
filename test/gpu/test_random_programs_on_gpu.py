"""The random block programs of the CPU target's tests, on a GPU: the same model must describe both targets."""

import sys
from pathlib import Path

import numpy as np
import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import test_random_products as products  # noqa: E402
import test_random_programs as programs  # noqa: E402


def run_on_gpu(text: str, buffers: list[np.ndarray], integers: list[int]) -> list[np.ndarray]:
    """Runs the kernel on copies of the buffers and returns their bytes afterwards."""
    tensors = [
        torch.from_numpy(np.ascontiguousarray(buffer).view(np.uint8).reshape(-1).copy()).cuda() for buffer in buffers
    ]
    kernel = lowlp.compile(text, lowlp.compiler.current_arch())
    kernel(*(tensor.data_ptr() for tensor in tensors), *integers)
    torch.cuda.synchronize()
    return [tensor.cpu().numpy() for tensor in tensors]


@pytest.mark.parametrize("number", range(300))
def test_load_view_cast_store(number: int) -> None:
    random = np.random.default_rng([5, number])
    program = programs.random_program(random)
    text, integers = programs.to_mlir(program)
    source, target = programs.make_buffer(random, program.source), programs.make_buffer(random, program.target)
    expected, known = programs.run_model(program, source, target)
    _, result = run_on_gpu(text, [source, target], integers)
    found = np.where(known, programs.to_bits(result, 8), 0)
    expected = np.where(known, expected, 0)
    dtype = program.target.dtype
    np.testing.assert_array_equal(programs.canonical(dtype, found), programs.canonical(dtype, expected), err_msg=text)


@pytest.mark.parametrize("number", range(40))
def test_dot(number: int) -> None:
    random = np.random.default_rng([6, number])
    product = products.random_product(random)
    types = product.elements
    m, k = product.layouts["a"].shape
    n = product.layouts["b"].shape[1]
    a = products.random_values(random, types["a"], (m, k))
    b = products.random_values(random, types["b"], (k, n))
    c = (1000 * random.standard_normal((m, n))).astype(product.sums)
    is_exact = product.sums is np.int32
    exact = a.astype(np.int64 if is_exact else np.float64) @ b.astype(np.int64 if is_exact else np.float64) + c
    buffers = [products.as_argument(a, types["a"]), products.as_argument(b, types["b"]), c]
    *_, result = run_on_gpu(products.product_text(product), buffers, [])
    found = result.view(product.sums).reshape(m, n)
    if is_exact:
        np.testing.assert_array_equal(found, exact)
    else:
        # Tensor cores keep fewer bits of a sum than f32 has where its terms are 8-bit floats.
        limit = 2e-3 if types["a"].startswith("f8") else 4e-6 * (k + 4)
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=limit * 10)
