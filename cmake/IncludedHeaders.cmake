# SPDX-License-Identifier: Apache-2.0
# included_headers(RESULT header.h ...)
#
# The headers, written from the project's root, and all of the project's that
# they include, directly or not. Known when CMake runs.
function(included_headers result)
  set(found "")
  set(wanted ${ARGN})
  while(wanted)
    list(POP_FRONT wanted header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found "${header}")
    file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" lines
         REGEX "^#include \"")
    list(TRANSFORM lines REPLACE "^#include \"([^\"]+)\".*" "\\1")
    list(APPEND wanted ${lines})
  endwhile()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()
