"""Measuring schedules of `linear`: what `lowlp tune` does.

For every kind of weights, shape and class of M, `preparing` compiles candidates into a folder (`prepared`), and
`measuring` times each on the GPU as the bench times it, without the compiler. The fastest goes into a file (`measured`)
that `kernels.linear.measured` reads: shipped ones, and what `lowlp.use_tuned` and LOWLP_TUNED name.
"""
