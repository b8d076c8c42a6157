"""`lowlp bench --set models`: random problems out of those that the layers of ten models are.

`shapes` has N and K of their products, whole and cut for several GPUs; `drawing` draws problems by a seed: shape, kind
of weights and number of rows. `preparing` compiles them into a folder (`folder`), `session` times them beside other
libraries, `judging` judges the times, and `report` shows them. `ranking` holds the choice of schedules against random
ones. Since every run draws others, nothing can be fitted to them.
"""
