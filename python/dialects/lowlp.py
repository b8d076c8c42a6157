"""The block dialect: one class for each op, generated from its definition."""

from ._lowlp_ops_gen import *
