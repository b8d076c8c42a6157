"""The one tree of errors that lowlp raises.

Every error is a `LowlpError` and also the built-in that fits, so that both `except lowlp.LowlpError` and
`except ValueError` do what the caller expects. A message names the argument, the value, and what is allowed.
"""


class LowlpError(Exception):
    """Base of every error raised by lowlp."""


class LowlpValueError(LowlpError, ValueError):
    """An argument has the right type and a value that is not allowed."""


class LowlpTypeError(LowlpError, TypeError):
    """An argument has a type (or an element type) that is not allowed."""


class LowlpRuntimeError(LowlpError, RuntimeError):
    """The arguments are fine and the operation failed all the same."""


class DeviceError(LowlpRuntimeError):
    """The CUDA driver is missing, has no device, or reports an error."""


class KernelFileError(LowlpValueError):
    """A saved kernel is damaged, of another version, or no saved kernel at all."""


class AssembleError(LowlpRuntimeError):
    """ptxas is missing or refused the PTX; the message carries its text."""
