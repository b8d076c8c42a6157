"""The kernels that lowlp ships: block programs in the DSL, each a function of what it is specialised for."""
