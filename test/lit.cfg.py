# The lit tests: IR in, IR out, checked with FileCheck. lit provides `config` and `lit_config`.
# ruff: noqa: F821
from pathlib import Path

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "lowlp"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = f"{config.lowlp_binary_root}/test"

llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
# Types in full, where they are used: that is what tests look for.
lowlp_opt = ToolSubst("lowlp-opt", extra_args=["--mlir-print-local-scope"])
llvm_config.add_tool_substitutions([lowlp_opt], [f"{config.lowlp_binary_root}/bin"])
llvm_config.add_tool_substitutions(["FileCheck", "not", "split-file"], [config.llvm_tools_dir])

# What only a build with Python has: the command line (%lowlp), and the assembler of the pinned CUDA package (%ptxas).
# A test that uses one says so: `// REQUIRES: python` or `// REQUIRES: ptxas`.
if config.python_executable:
    environment = Path(config.python_executable).parent.parent
    command = environment / "bin" / "lowlp"
    if command.exists():
        config.available_features.add("python")
        config.substitutions.append(("%lowlp", str(command)))
    assemblers = sorted(environment.glob("lib/python3*/site-packages/nvidia/cu*/bin/ptxas"))
    if assemblers:
        config.available_features.add("ptxas")
        config.substitutions.append(("%ptxas", str(assemblers[-1])))
