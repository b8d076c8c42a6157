"""Importing the run time loads no compiler, no array library and no driver, and takes no time."""

import json
import subprocess
import sys

import pytest

from lowlp_runtime import errors

SCRIPT = """
import json, sys, time
start = time.perf_counter()
import lowlp_runtime
print(json.dumps([time.perf_counter() - start, sorted(sys.modules)]))
"""


def test_import_is_light() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    seconds, modules = json.loads(done.stdout)
    roots = {name.split(".")[0] for name in modules}
    assert not roots & {"lowlp", "mlir", "torch", "numpy", "ml_dtypes"}
    assert not {"cuda.bindings", "cuda.core"} & set(modules)
    # 0.2 s on an idle machine; the bound leaves room for a busy one.
    assert seconds < 1.0


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.LowlpValueError, ValueError),
        (errors.LowlpTypeError, TypeError),
        (errors.LowlpRuntimeError, RuntimeError),
        (errors.KernelFileError, ValueError),
        (errors.DeviceError, RuntimeError),
        (errors.AssembleError, RuntimeError),
    ],
)
def test_errors_are_the_fitting_builtin(error: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(error, errors.LowlpError)
    assert issubclass(error, builtin)
