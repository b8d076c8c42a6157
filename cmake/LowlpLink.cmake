# Which libraries stand for MLIR and LLVM, and how every lowlp library and tool is built, in one place.
#
# dylib   libMLIR.so and libLLVM.so: quick to link, for development.
# static  their archives: what is built needs no library of Debian's LLVM at run time, for the wheel.
set(LOWLP_LINK "dylib" CACHE STRING "dylib: link libMLIR.so and libLLVM.so; static: link their archives")
set_property(CACHE LOWLP_LINK PROPERTY STRINGS dylib static)

add_library(lowlp_mlir_base INTERFACE)
if(LOWLP_LINK STREQUAL "dylib")
  target_link_libraries(lowlp_mlir_base INTERFACE MLIR LLVM)
  # libMLIR.so is not on the loader's path.
  set(LOWLP_MLIR_RPATH ${LLVM_LIBRARY_DIR})
elseif(LOWLP_LINK STREQUAL "static")
  include(LowlpStaticMLIR)
  target_link_libraries(lowlp_mlir_base INTERFACE lowlp_static_mlir)
else()
  message(FATAL_ERROR "LOWLP_LINK is '${LOWLP_LINK}'; allowed: dylib, static")
endif()

if(LOWLP_PCH)
  file(WRITE ${PROJECT_BINARY_DIR}/pch_anchor.cpp "")
  add_library(lowlp_pch OBJECT ${PROJECT_BINARY_DIR}/pch_anchor.cpp)
  target_precompile_headers(lowlp_pch PRIVATE
    <mlir/IR/BuiltinOps.h> <mlir/IR/Builders.h> <mlir/IR/OpImplementation.h> <mlir/IR/DialectImplementation.h>
    <mlir/Pass/Pass.h> <mlir/Transforms/DialectConversion.h> <mlir/Interfaces/SideEffectInterfaces.h>
    <mlir/Interfaces/InferTypeOpInterface.h> <mlir/Interfaces/FunctionInterfaces.h>
    <mlir/Bytecode/BytecodeOpInterface.h> <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Vector/IR/VectorOps.h>
    <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/GPU/IR/GPUDialect.h>)
endif()

function(_lowlp_common name)
  cmake_parse_arguments(A "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  if(A_DEPENDS)
    add_dependencies(${name} ${A_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${A_LINK_LIBS} lowlp_mlir_base)
  get_target_property(_type ${name} TYPE)
  # Executables compile with -fPIE, for which the precompiled header does not match.
  if(LOWLP_PCH AND NOT _type STREQUAL "EXECUTABLE")
    target_precompile_headers(${name} REUSE_FROM lowlp_pch)
  endif()
endfunction()

# add_lowlp_library(name SOURCE... [DEPENDS target...] [LINK_LIBS library...]): a static library over MLIR.
function(add_lowlp_library name)
  cmake_parse_arguments(A "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${A_UNPARSED_ARGUMENTS})
  _lowlp_common(${name} DEPENDS ${A_DEPENDS} LINK_LIBS ${A_LINK_LIBS})
endfunction()

# add_lowlp_executable(name SOURCE... [DEPENDS target...] [LINK_LIBS library...]): a tool over MLIR.
function(add_lowlp_executable name)
  cmake_parse_arguments(A "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_executable(${name} ${A_UNPARSED_ARGUMENTS})
  _lowlp_common(${name} DEPENDS ${A_DEPENDS} LINK_LIBS ${A_LINK_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin
    BUILD_RPATH "${LOWLP_MLIR_RPATH}" INSTALL_RPATH "${LOWLP_MLIR_RPATH}")
endfunction()

# add_lowlp_plain_library(name SOURCE... [LINK_LIBS library...]): a static library that sees no MLIR header.
function(add_lowlp_plain_library name)
  cmake_parse_arguments(A "" "" "LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${A_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${A_LINK_LIBS})
endfunction()
