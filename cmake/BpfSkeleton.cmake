# SPDX-License-Identifier: Apache-2.0
# bpf_skeleton(TARGET SOURCE x.bpf.c [HEADERS a.h ...])
#
# Compiles x.bpf.c with clang for the BPF target and generates x.skel.h with
# bpftool. TARGET becomes an interface library that carries the include path
# and the dependency. Included headers are tracked through a depfile. The build
# host's BTF is never read: the sources declare the kernel types they use and
# CO-RE relocates them when the object is loaded.

find_program(BPF_CLANG NAMES clang clang-19 clang-16 clang-15 clang-14 REQUIRED
             DOC "clang with the BPF target")
find_program(BPF_BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin REQUIRED
             DOC "bpftool, to generate skeletons")
find_program(BPF_STRIP NAMES llvm-strip llvm-strip-14 llvm-strip-19
             DOC "llvm-strip, optional: makes the object smaller")

# A program of the build: the object keeps no lines of source code.
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBELF REQUIRED IMPORTED_TARGET libelf)
add_executable(drop_line_info "${CMAKE_CURRENT_LIST_DIR}/drop_line_info.cc")
target_link_libraries(drop_line_info PRIVATE PkgConfig::LIBELF)

function(bpf_skeleton target)
  cmake_parse_arguments(ARG "" "SOURCE" "" ${ARGN})
  cmake_path(GET ARG_SOURCE STEM stem)
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE}")
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${stem}.bpf.o")
  set(skeleton "${CMAKE_CURRENT_BINARY_DIR}/${stem}.skel.h")

  # -g is needed for BTF. The DWARF that comes with it is dropped again, and so
  # are relocations of BTF, which libbpf leaves alone, and the names of branches'
  # targets: the object is read whole whenever it is loaded.
  set(strip_command "")
  if(BPF_STRIP)
    set(strip_command COMMAND ${BPF_STRIP} -g -R .rel.BTF -R .rel.BTF.ext
                              -w -N "LBB*" ${object})
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(bpf_arch arm64)
  else()
    set(bpf_arch x86)
  endif()
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${BPF_CLANG} -target bpf -D__TARGET_ARCH_${bpf_arch} -mcpu=v3
            -O2 -g -Wall -Wextra -Werror
            -I${PROJECT_SOURCE_DIR}
            -idirafter /usr/include/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu
            -MD -MF ${object}.d -MT ${object}
            -c ${source} -o ${object}
    ${strip_command}
    COMMAND drop_line_info ${object}
    DEPENDS ${source} drop_line_info
    DEPFILE ${object}.d
    COMMENT "BPF object ${stem}.bpf.o"
    VERBATIM)
  add_custom_command(
    OUTPUT ${skeleton}
    COMMAND ${BPF_BPFTOOL} gen skeleton ${object} name ${stem}_bpf
            > ${skeleton}.tmp
    COMMAND ${CMAKE_COMMAND} -E rename ${skeleton}.tmp ${skeleton}
    DEPENDS ${object}
    COMMENT "BPF skeleton ${stem}.skel.h"
    VERBATIM)
  add_custom_target(${target}_generate DEPENDS ${skeleton})
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_generate)
  target_include_directories(${target} SYSTEM INTERFACE
    "${CMAKE_CURRENT_BINARY_DIR}")
endfunction()
