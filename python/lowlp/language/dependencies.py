"""The launches before and after a kernel on its stream: programmatic dependent launch.

A kernel that waits by itself for the launch before it may begin while that one still runs (PTX ISA, "griddepcontrol";
CUDA programming guide, "Programmatic Dependent Launch"). So it sets itself up and fetches what is constant meanwhile.
"""

from __future__ import annotations

from .tracing import current_trace


def wait_for_dependencies() -> None:
    """Waits until the launches before this one have ended, and sees what they wrote (PTX ISA, `griddepcontrol.wait`).

    A kernel that does so may be launched while the one before it runs. Before this line it may read pointers with
    `constant=True`, and touch no other global memory; the compiler refuses that. Loads of constants in a loop after
    it, `ll.range(..., stages=...)`, are begun before it where tensor copies make them. It stands in the kernel itself,
    in no loop or branch. On architectures before sm_90, and within `lowlp.no_dependent_launch`, kernels are launched
    when the one before has ended, and nothing is left to wait for.
    """
    current_trace("ll.wait_for_dependencies").emit("lowlp.wait_for_dependencies")


def launch_dependents() -> None:
    """Lets the launch after this one begin, once every block has come here or ended (PTX ISA,
    `griddepcontrol.launch_dependents`).

    Only launches of kernels that wait for dependencies begin early; those still wait for this kernel to end. Without
    it they begin when it ends.
    """
    current_trace("ll.launch_dependents").emit("lowlp.launch_dependents")
