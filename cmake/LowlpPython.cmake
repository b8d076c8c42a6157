# The Python package: how MLIR's bindings are embedded in it, and how its parts are put together.

# add_lowlp_capi_library(name OUTPUT_DIRECTORY dir CAPI archive... OWN archive...)
# One shared library with every piece of C++ that touches MLIR. It exports only C functions, so the Python extensions
# never see an MLIR C++ symbol, and type ids and registries exist exactly once in a process.
function(add_lowlp_capi_library name)
  cmake_parse_arguments(A "" "OUTPUT_DIRECTORY" "CAPI;OWN" ${ARGN})
  set(_anchor ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  set(_exports ${CMAKE_CURRENT_BINARY_DIR}/${name}.map)
  file(CONFIGURE OUTPUT ${_anchor} CONTENT "")
  file(CONFIGURE OUTPUT ${_exports} CONTENT
    "{ global: mlir[A-Z]*; mlirGetDialectHandle__*; lowlp[A-Z]*; local: *; };\n")
  add_library(${name} SHARED ${_anchor})
  # Upstream's archives by file name, not by target: the link interface of the targets names the static MLIR
  # libraries, which must not come in next to libMLIR.so.
  set(_files)
  foreach(_archive IN LISTS A_CAPI A_OWN)
    list(APPEND _files $<TARGET_FILE:${_archive}>)
  endforeach()
  target_link_libraries(${name} PRIVATE
    -Wl,--whole-archive ${_files} -Wl,--no-whole-archive ${A_OWN} lowlp_mlir_base)
  target_link_options(${name} PRIVATE
    LINKER:--version-script=${_exports} LINKER:-z,defs LINKER:--gc-sections)
  set_target_properties(${name} PROPERTIES
    LINK_DEPENDS ${_exports}
    LIBRARY_OUTPUT_DIRECTORY ${A_OUTPUT_DIRECTORY}
    BUILD_RPATH "$ORIGIN;${LOWLP_MLIR_RPATH}" INSTALL_RPATH "$ORIGIN;${LOWLP_MLIR_RPATH}")
endfunction()

# lowlp_bind_dialect(name wrapper.td [ENUMS | ENUM_TD file.td] [UPSTREAM file.py | OWN file.py])
# Generates the op (and enum) bindings of one dialect from a one-line wrapper in python/dialects, and adds the Python
# module over them: upstream's, or one of ours from python/dialects.
function(lowlp_bind_dialect name wrapper)
  cmake_parse_arguments(A "ENUMS" "ENUM_TD;UPSTREAM;OWN" "" ${ARGN})
  set(_enums)
  if(A_ENUM_TD)
    set(_enums GEN_ENUM_BINDINGS_TD_FILE dialects/${A_ENUM_TD})
  elseif(A_ENUMS)
    set(_enums GEN_ENUM_BINDINGS)
  endif()
  declare_mlir_dialect_python_bindings(ADD_TO_PARENT LowlpPython ROOT_DIR ${CMAKE_CURRENT_SOURCE_DIR}
    TD_FILE dialects/${wrapper} DIALECT_NAME ${name} ${_enums})
  if(A_UPSTREAM)
    declare_mlir_python_sources(LowlpPython.${name}.module ADD_TO_PARENT LowlpPython
      ROOT_DIR ${LOWLP_MLIR_PYTHON_SRC}/MLIRPythonSources.Dialects.${name} SOURCES dialects/${A_UPSTREAM})
  elseif(A_OWN)
    declare_mlir_python_sources(LowlpPython.${name}.module ADD_TO_PARENT LowlpPython
      ROOT_DIR ${CMAKE_CURRENT_SOURCE_DIR} SOURCES dialects/${A_OWN})
  endif()
endfunction()

# lowlp_python_extension(name SOURCE...): an extension module of ours over the C API, from python/bindings.
function(lowlp_python_extension name)
  declare_mlir_python_extension(LowlpPython.${name} MODULE_NAME ${name} ADD_TO_PARENT LowlpPython
    ROOT_DIR ${CMAKE_CURRENT_SOURCE_DIR}/bindings SOURCES ${ARGN}
    PRIVATE_LINK_LIBS LLVMSupport EMBED_CAPI_LINK_LIBS MLIRCAPIIR)
endfunction()

# lowlp_pure_package(name source_dir): the pure Python of one import package. In the build tree it appears as symbolic
# links, one for each entry of source_dir, so that an edit needs no build; it is copied when installed.
function(lowlp_pure_package name source_dir)
  set(_dir ${PROJECT_BINARY_DIR}/python_packages/${name})
  file(MAKE_DIRECTORY ${_dir})
  file(GLOB _entries CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE ${source_dir} ${source_dir}/*)
  list(FILTER _entries EXCLUDE REGEX "^(__pycache__|CMakeLists.txt|\\..*)$")
  file(GLOB _present LIST_DIRECTORIES true RELATIVE ${_dir} ${_dir}/*)
  foreach(_entry IN LISTS _present)
    if(IS_SYMLINK ${_dir}/${_entry} AND NOT _entry IN_LIST _entries)
      file(REMOVE ${_dir}/${_entry})
    endif()
  endforeach()
  foreach(_entry IN LISTS _entries)
    file(CREATE_LINK ${source_dir}/${_entry} ${_dir}/${_entry} SYMBOLIC)
  endforeach()
  install(DIRECTORY ${source_dir}/ DESTINATION ${name} COMPONENT LowlpPythonModules
    PATTERN "__pycache__" EXCLUDE PATTERN "CMakeLists.txt" EXCLUDE)
endfunction()
