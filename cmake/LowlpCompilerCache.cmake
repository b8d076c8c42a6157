# Compiles through ccache where it is installed. The settings travel with the command, so that no environment variable
# is needed: a precompiled header is cached only with this sloppiness, and paths are taken relative to the source tree,
# so that checkouts share what was compiled without that header (its path is part of every other command).
find_program(LOWLP_CCACHE ccache)
if(LOWLP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    ${LOWLP_CCACHE})
  # A precompiled header that holds no time stamp is the same file each time.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
