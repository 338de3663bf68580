# SPDX-License-Identifier: Apache-2.0
# Headers of others are compiled once for all targets of a kind and not once
# for each source. None of the project's own is in them, so no change here
# compiles more than without them, and no module comes to know another one by
# them. A source still includes all that it uses: other builds are without.

# clang saves a third with them. g++ 12 saves little, and warns of the standard
# library's insides where it has them precompiled. An object cache finds nothing.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(precompiled_by_default ON)
else()
  set(precompiled_by_default OFF)
endif()
option(KSYM_PRECOMPILED_HEADERS
  "Compile the headers that most sources include once"
  ${precompiled_by_default})

# precompiled_headers(NAME HEADERS vector ... [DEPENDS target ...]
#                     [OPTIONS option ...])
#
# A target that is nothing but compiled headers, for those that are compiled
# with the same options: a compiler takes them for no others.
function(precompiled_headers name)
  if(NOT KSYM_PRECOMPILED_HEADERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPENDS;OPTIONS" ${ARGN})
  set(source "${PROJECT_BINARY_DIR}/precompiled/${name}.cc")
  if(NOT EXISTS "${source}")
    file(WRITE "${source}" "")
  endif()
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${source}")
  target_link_libraries(${name} PRIVATE ksym_compile_options ${ARG_DEPENDS})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  # Not for C.
  list(TRANSFORM ARG_HEADERS PREPEND "$<$<COMPILE_LANGUAGE:CXX>:<")
  list(TRANSFORM ARG_HEADERS APPEND "$<ANGLE-R>>")
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# use_precompiled_headers(TARGET NAME)
function(use_precompiled_headers target name)
  if(KSYM_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()
