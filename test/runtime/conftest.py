"""Fixtures of the run time's tests, none of which needs a GPU."""

from fake_driver import fake_driver
from fake_torch import fake_torch
from saved_kernel import kernel

__all__ = ["fake_driver", "fake_torch", "kernel"]
