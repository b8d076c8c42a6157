"""The thread dialect: one class for each op and enum, generated from its definition."""

from ._simt_enum_gen import *
from ._simt_ops_gen import *
