"""The thread dialect: one class for each op and enum, generated from its definition."""

from ._simt_enum_gen import *  # noqa: F403
from ._simt_ops_gen import *  # noqa: F403
