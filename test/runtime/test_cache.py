"""The cache on disk: keys, damage, many processes, its bound."""

import multiprocessing
import os
from pathlib import Path

import pytest
from saved_kernel import describe

from lowlp_runtime import KernelBinary, KernelCache, LowlpTypeError, LowlpValueError, cache_key

PARTS = {"compiler": "0.1.0", "pipeline": "lowlp-to-ptx", "target": "sm_90a", "options": {"stages": 3}, "source": "x"}


def test_every_part_changes_the_key() -> None:
    keys = {cache_key(PARTS)} | {cache_key({**PARTS, name: "other"}) for name in PARTS} | {cache_key({})}
    assert len(keys) == len(PARTS) + 2
    assert cache_key(dict(reversed(PARTS.items()))) == cache_key(PARTS)
    with pytest.raises(LowlpTypeError, match="parts: expected JSON values by name"):
        cache_key({"x": object()})


def test_get_and_put(kernel: KernelBinary, tmp_path: Path) -> None:
    cache, key = KernelCache(tmp_path / "new"), cache_key(PARTS)
    assert cache.get(key) is None
    cache.put(key, kernel)
    assert cache.get(key) == kernel
    cache.clear()
    assert cache.get(key) is None


def test_damage_counts_as_absent(kernel: KernelBinary, tmp_path: Path) -> None:
    cache, key = KernelCache(tmp_path), cache_key(PARTS)
    cache.put(key, kernel)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    assert cache.get(key) is None
    cache.put(key, kernel)
    assert cache.get(key) == kernel


def test_the_longest_unused_go_first(kernel: KernelBinary, tmp_path: Path) -> None:
    size = len(kernel.to_bytes())
    cache = KernelCache(tmp_path, max_bytes=2 * size + size // 2)
    keys = [cache_key({"source": number}) for number in range(3)]
    for age, key in zip((100, 200), keys, strict=False):
        cache.put(key, kernel)
        os.utime(tmp_path / f"{key}.lowlp", (age, age))
    assert cache.get(keys[0]) == kernel
    cache.put(keys[2], kernel)
    assert [cache.get(key) is not None for key in keys] == [True, False, True]
    KernelCache(tmp_path, max_bytes=1).put(keys[1], kernel)
    assert [cache.get(key) is not None for key in keys] == [False, True, False]


@pytest.mark.parametrize("key", ["", "../x", "g" * 64, "A" * 64])
def test_malformed_keys(key: str, tmp_path: Path) -> None:
    with pytest.raises(LowlpValueError, match="key: expected 64 hexadecimal digits"):
        KernelCache(tmp_path).get(key)
    with pytest.raises(LowlpValueError, match="max_bytes: must be at least 1, got 0"):
        KernelCache(tmp_path, max_bytes=0)


def work(folder: str, number: int) -> bool:
    kernel = KernelBinary(describe(), ptx={"sm_80": "x" * 100_000})
    cache, key = KernelCache(folder), cache_key(PARTS)
    for _ in range(20):
        cache.put(key, kernel)
        if cache.get(key) != kernel:
            return False
    return True


def test_many_processes(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert all(pool.starmap(work, [(str(tmp_path), number) for number in range(3)]))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_under_another_key_counts_as_absent(kernel: KernelBinary, tmp_path: Path) -> None:
    cache, keys = KernelCache(tmp_path), [cache_key({"source": number}) for number in range(2)]
    for key in keys:
        cache.put(key, kernel)
    first, second = (tmp_path / f"{key}.lowlp" for key in keys)
    os.replace(first, second)
    assert [cache.get(key) for key in keys] == [None, None]
    os.mkfifo(first)
    assert cache.get(keys[0]) is None


def test_a_folder_that_others_can_write_to_is_not_used(kernel: KernelBinary, tmp_path: Path) -> None:
    cache, key = KernelCache(tmp_path), cache_key(PARTS)
    cache.put(key, kernel)
    tmp_path.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="compiled kernels are not kept there: others can write to it"):
        assert cache.get(key) is None
    cache.put(cache_key({}), kernel)
    assert len(list(tmp_path.iterdir())) == 1
    tmp_path.chmod(0o770)
    assert cache.get(key) == kernel


def test_a_folder_of_another_user_is_not_used(
    kernel: KernelBinary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, key = KernelCache(tmp_path / "others"), cache_key(PARTS)
    cache.put(key, kernel)
    owner = (tmp_path / "others").stat().st_uid
    if owner == 0:
        os.chown(tmp_path / "others", 4321, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.warns(RuntimeWarning, match="others can write to it"):
        assert cache.get(key) is None
