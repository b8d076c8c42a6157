//===- SimtControlOps.td - promises, early end -------------*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTCONTROLOPS_TD
#define LOWLP_IR_SIMTCONTROLOPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_AssertOp : Simt_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "a promise that the CPU target checks";
  let description = [{
    On the CPU target a false condition ends the launch with the message and the location. On a GPU it costs nothing:
    no instruction is made of it.

    ```mlir
    simt.assert %inside, "element lies outside of the view"
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict";
}

def Simt_LeaveBarriersOp : Simt_Op<"leave_barriers", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "take no part in the barriers of the block any more";
  let description = [{
    From here on this thread meets no other thread at a barrier. The next one of the others, a `simt.barrier` of all
    `threads`, waits until it is here, and shows them what it has done before; it waits for nobody (PTX ISA,
    `barrier.arrive`). All lanes of a warp come here together.

    ```mlir
    simt.leave_barriers threads 288
    ```
  }];
  let arguments = (ins I64Attr:$threads);
  let assemblyFormat = "`threads` $threads attr-dict";
}

def Simt_SetRegistersOp : Simt_Op<"set_registers", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "change how many registers the threads of a warpgroup have";
  let description = [{
    All warps of the warpgroup come here together. Registers that one gives back another `takes`, which waits until there
    are enough (PTX ISA, `setmaxnreg`). The function's attribute `lowlp.launch_registers` says how many a thread begins with.
    On the CPU target it does nothing.

    ```mlir
    simt.set_registers 56
    simt.set_registers 224 takes
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<24>, IntMaxValue<256>]>:$count, UnitAttr:$takes);
  let assemblyFormat = "$count (`takes` $takes^)? attr-dict";
}

def Simt_BarrierOp : Simt_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a barrier of those threads that have not left";
  let description = [{
    `threads` of the block, the first ones, whole warps, or all of them where some leave (PTX ISA, `barrier.sync` with a number of threads).

    ```mlir
    simt.barrier threads 256
    ```
  }];
  let arguments = (ins I64Attr:$threads);
  let assemblyFormat = "`threads` $threads attr-dict";
}

def Simt_WarpgroupBarrierOp : Simt_Op<"warpgroup_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a barrier of the 128 threads of each warpgroup";
  let description = [{
    Warpgroups do not wait for each other (PTX ISA, `barrier.sync`, with a number of its own for each of up to eight).
    As a barrier of the block it shows each of the 128 threads what the others did before.

    ```mlir
    simt.warpgroup_barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Simt_ClusterBarrierOp : Simt_Op<"cluster_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until all blocks of the cluster are here";
  let description = [{
    All threads of theirs that have not ended (PTX ISA, `barrier.cluster`). It orders no memory, but that mbarriers after a
    `simt.fence_mbarrier_init` are there for all. As `simt.map_shared` it has no lowering to the CPU.

    ```mlir
    simt.cluster_barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Simt_WaitForDependenciesOp : Simt_Op<"wait_for_dependencies", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for the launch before this one";
  let description = [{
    Until all blocks of the launches that this one depends on have ended and what they wrote can be seen (PTX ISA,
    `griddepcontrol.wait`). Without programmatic dependent launch it does not wait.

    ```mlir
    simt.wait_for_dependencies
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Simt_LaunchDependentsOp : Simt_Op<"launch_dependents", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "let the launch after this one begin";
  let description = [{
    Its blocks may start when all blocks of this launch have come here or ended (PTX ISA,
    `griddepcontrol.launch_dependents`).

    ```mlir
    simt.launch_dependents
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Simt_ExitOp : Simt_Op<"exit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "leave the kernel";
  let description = [{
    The thread ends; what follows in the same block does not run (PTX ISA, `ret`). It is no terminator, so that it may
    stand in the regions of `scf`; where these become blocks, it becomes `gpu.return`.

    ```mlir
    simt.exit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // LOWLP_IR_SIMTCONTROLOPS_TD
