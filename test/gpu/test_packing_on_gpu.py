"""`lowlp.packing` of CUDA tensors: the bits that the CPU gives, and how long a large matrix takes."""

import time

import numpy as np
import pytest
from lowlp._layout import Placement

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.packing import pack, unpack

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

# 8192 x 57344 codes of 6 bits, on the device.
MAX_SECONDS = 1.0


@pytest.mark.parametrize("name", Placement.names())
def test_same_bits_as_the_cpu(name: str) -> None:
    code, activation = name.split(".")
    bits = Placement.find(name).bits
    code = f"f{bits}{code}" if code.startswith("e") else code
    for n, k, group_size in ((75, 80, 16), (130, 96, 32), (17, 96, 48), (33, 256, 256)):
        codes = np.random.default_rng(k).integers(0, 1 << bits, (n, k), dtype=np.uint8)
        packed = pack(torch.from_numpy(codes).cuda(), group_size, code, activation)
        assert packed.is_cuda and packed.dtype == torch.uint32
        np.testing.assert_array_equal(packed.cpu().numpy(), pack(codes, group_size, code, activation))
        found = unpack(packed, n, k, group_size, code, activation)
        assert found.is_cuda
        np.testing.assert_array_equal(found.cpu().numpy(), codes)


def test_refusals() -> None:
    codes = torch.zeros(4, 64, dtype=torch.uint8, device="cuda")
    with pytest.raises(LowlpTypeError, match=r"^codes: expected elements of uint8, got torch\.int8$"):
        pack(codes.to(torch.int8), 64, "int6", "f16")
    with pytest.raises(LowlpValueError, match=r"^codes: expected shape \[N, K\]"):
        pack(codes[0], 64, "int6", "f16")
    with pytest.raises(LowlpValueError, match=r"^codes: must be in 0\.\.63 for int6\.f16, got 64 "):
        pack(codes + 64, 64, "int6", "f16")
    with pytest.raises(LowlpValueError, match=r"^group_size: must divide K = 64, got 48$"):
        pack(codes, 48, "int6", "f16")


def test_time_of_a_large_matrix() -> None:
    codes = torch.randint(0, 64, (8192, 57344), dtype=torch.uint8, device="cuda")
    pack(codes[:64], 128, "int6", "f16")
    torch.cuda.synchronize()
    start = time.perf_counter()
    packed = pack(codes, 128, "int6", "f16")
    torch.cuda.synchronize()
    middle = time.perf_counter()
    found = unpack(packed, 8192, 57344, 128, "int6", "f16")
    torch.cuda.synchronize()
    end = time.perf_counter()
    assert torch.equal(found, codes)
    rates = [codes.numel() / seconds / 1e9 for seconds in (middle - start, end - middle)]
    print(f"packs {rates[0]:.1f}, unpacks {rates[1]:.1f} G weights/s on the device")
    assert middle - start < MAX_SECONDS
