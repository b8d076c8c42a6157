# The target lowlp_static_mlir: MLIR and LLVM as archives. Linking takes from an archive only what is used, so all of
# MLIR's are named, and a new dependency of lowlp needs no change here.
#
# Debian's MLIR was built against libLLVM.so, so its archives name that library (`LLVM`) among what they need. Here the
# archives of LLVM's components take its place.
llvm_map_components_to_libnames(_components
  core support irreader bitreader bitwriter asmparser analysis passes target targetparser mc remarks ipo transformutils
  frontendopenmp supportlsp orcjit jitlink native nvptxcodegen nvptxdesc nvptxinfo)
add_library(lowlp_static_llvm INTERFACE)
target_link_libraries(lowlp_static_llvm INTERFACE ${_components})

get_property(_mlir GLOBAL PROPERTY MLIR_ALL_LIBS)
list(FILTER _mlir EXCLUDE REGEX "^MLIR$")
foreach(_library IN LISTS _mlir)
  get_target_property(_needed ${_library} INTERFACE_LINK_LIBRARIES)
  if(_needed)
    list(TRANSFORM _needed REPLACE "^(LLVM|\\$<LINK_ONLY:LLVM>)$" "lowlp_static_llvm")
    set_target_properties(${_library} PROPERTIES INTERFACE_LINK_LIBRARIES "${_needed}")
  endif()
endforeach()

# LLVMSupport names shared libraries: libz3, of which nothing is used here, and libz and libzstd, whose archives are
# taken, so that the machine that runs lowlp need not have them.
find_library(LOWLP_ZLIB_ARCHIVE libz.a REQUIRED)
get_target_property(_needed LLVMSupport INTERFACE_LINK_LIBRARIES)
list(FILTER _needed EXCLUDE REGEX "libz3")
list(TRANSFORM _needed REPLACE "^ZLIB::ZLIB$" "${LOWLP_ZLIB_ARCHIVE}")
list(TRANSFORM _needed REPLACE "^zstd::libzstd_shared$" "zstd::libzstd_static")
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES "${_needed}")

# Test libraries of MLIR, those that want a run time of their own, and mlir-opt's main have nothing for us.
list(FILTER _mlir EXCLUDE REGEX "Test|CAPI|Shared$|^mlir_|Runtime|ExecutionEngine|JitRunner|RegisterAll|OptMain")
add_library(lowlp_static_mlir INTERFACE)
target_link_libraries(lowlp_static_mlir INTERFACE ${_mlir} lowlp_static_llvm)
target_link_options(lowlp_static_mlir INTERFACE LINKER:--gc-sections $<$<CONFIG:Release>:LINKER:-s>)
