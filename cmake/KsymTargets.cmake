# SPDX-License-Identifier: Apache-2.0
# The functions every CMakeLists.txt of the project makes its targets with.
# They apply one set of compile options, so no target can miss a warning or a
# sanitizer, and none changes CMAKE_CXX_FLAGS.

add_library(ksym_compile_options INTERFACE)
target_compile_options(ksym_compile_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wformat=2
  -Wnon-virtual-dtor -Woverloaded-virtual -fno-omit-frame-pointer
  $<$<BOOL:${KSYM_WERROR}>:-Werror>)
# What a program does not call of the libraries it does not have: a tenth of it.
if(NOT KSYM_SANITIZE)
  set(is_library $<STREQUAL:$<TARGET_PROPERTY:TYPE>,STATIC_LIBRARY>)
  target_compile_options(ksym_compile_options INTERFACE
    $<${is_library}:-ffunction-sections> $<${is_library}:-fdata-sections>)
  target_link_options(ksym_compile_options INTERFACE -Wl,--gc-sections)
endif()
if(CMAKE_UNITY_BUILD)
  # GCC takes a source file that another one includes for a header, of which a
  # class with members of an unnamed namespace would be two.
  target_compile_options(ksym_compile_options INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
target_compile_definitions(ksym_compile_options INTERFACE
  KSYM_VERSION="${PROJECT_VERSION}" _FILE_OFFSET_BITS=64)
if(KSYM_SANITIZE)
  target_compile_options(ksym_compile_options INTERFACE
    -fsanitize=${KSYM_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(ksym_compile_options INTERFACE
    -fsanitize=${KSYM_SANITIZE})
endif()
if(KSYM_LIBFUZZER)
  # Coverage counters in the libraries as well, or the fuzzer is blind in them.
  target_compile_options(ksym_compile_options INTERFACE
    -fsanitize=fuzzer-no-link)
endif()

# What most sources include: of libraries, of libraries that format text, and of
# unit tests.
find_package(fmt REQUIRED)
set(standard_headers
  algorithm array bit charconv chrono cstdint cstdlib cstring deque expected
  functional iterator limits map memory mutex numeric optional set span string
  string_view system_error tuple unordered_map utility variant vector)
precompiled_headers(standard_precompiled HEADERS ${standard_headers})
precompiled_headers(fmt_precompiled
  HEADERS ${standard_headers} fmt/format.h DEPENDS fmt::fmt)
if(KSYM_COLD_OPTIONS)
  precompiled_headers(cold_precompiled
    HEADERS ${standard_headers} fmt/format.h DEPENDS fmt::fmt
    OPTIONS ${KSYM_COLD_OPTIONS})
endif()
if(KSYM_BUILD_TESTS)
  find_package(GTest REQUIRED)
  precompiled_headers(test_precompiled
    HEADERS ${standard_headers} gtest/gtest.h gmock/gmock.h
    DEPENDS GTest::gmock GTest::gtest
    OPTIONS ${CMAKE_CXX_COMPILE_OPTIONS_PIE} ${KSYM_TEST_OPTIONS})
endif()

# ksym_library(NAME [COLD] SOURCES a.cc ... [ALONE b.cc ...] [DEPENDS target ...]
#              [PRIVATE_DEPENDS ...])
# A static library; includes are written from the project's root. ALONE: those of
# SOURCES whose own names another one has as well, so that CMAKE_UNITY_BUILD, by
# which scripts/profile is quick, does not compile them together. COLD: tests
# spend little time in it, and it is compiled with KSYM_COLD_OPTIONS.
function(ksym_library name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;ALONE;DEPENDS;PRIVATE_DEPENDS"
                        ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  set_source_files_properties(${ARG_ALONE} PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON)
  set_property(GLOBAL APPEND PROPERTY KSYM_LIBRARIES ${name})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name}
    PUBLIC ${ARG_DEPENDS}
    PRIVATE ksym_compile_options ${ARG_PRIVATE_DEPENDS})
  if(ARG_COLD AND KSYM_COLD_OPTIONS)
    target_compile_options(${name} PRIVATE ${KSYM_COLD_OPTIONS})
    use_precompiled_headers(${name} cold_precompiled)
  elseif("fmt::fmt" IN_LIST ARG_PRIVATE_DEPENDS)
    use_precompiled_headers(${name} fmt_precompiled)
  else()
    use_precompiled_headers(${name} standard_precompiled)
  endif()
endfunction()

# ksym_executable(NAME SOURCES a.cc ... [DEPENDS target ...])
function(ksym_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ksym_compile_options ${ARG_DEPENDS})
endfunction()

# Seconds; sanitizers are up to 20 times as slow.
set(unit_timeout 300)
if(KSYM_SANITIZE)
  set(unit_timeout 1200)
endif()

# ksym_test(NAME SOURCES a_test.cc ... [ALONE b_test.cc ...]
#           [DEPENDS target ...] [LABELS l ...])
# A GoogleTest program, one ctest entry per program. A test that calls
# GTEST_SKIP prints why; ctest counts the program as passed. ALONE: as for
# ksym_library.
function(ksym_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;DEPENDS;LABELS" ${ARGN})
  ksym_executable(${name} SOURCES ${ARG_SOURCES}
    DEPENDS ${ARG_DEPENDS} GTest::gmock GTest::gtest GTest::gtest_main)
  set_source_files_properties(${ARG_ALONE} PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON)
  set(together ${ARG_SOURCES})
  list(REMOVE_ITEM together ${ARG_ALONE})
  list(LENGTH together count)
  if(KSYM_TEST_UNITY_BUILD AND count GREATER 1)
    # As few batches as a library of so many sources has, none much smaller
    # than another.
    set(most 8)
    if(CMAKE_UNITY_BUILD_BATCH_SIZE)
      set(most ${CMAKE_UNITY_BUILD_BATCH_SIZE})
    endif()
    math(EXPR batches "(${count} + ${most} - 1) / ${most}")
    math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
    set_target_properties(${name} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  endif()
  target_compile_options(${name} PRIVATE ${KSYM_TEST_OPTIONS})
  use_precompiled_headers(${name} test_precompiled)
  target_compile_definitions(${name} PRIVATE
    KSYM_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/data")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES
    LABELS "unit;${ARG_LABELS}" TIMEOUT ${unit_timeout})
endfunction()

# ksym_fuzz(NAME SOURCES a_fuzz.cc [DEPENDS target ...])
# The source defines LLVMFuzzerTestOneInput. With KSYM_LIBFUZZER it becomes a
# fuzzer, else a driver that replays inputs. Either way ctest replays
# tests/fuzz/corpus/NAME.
function(ksym_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  set(corpus "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
  if(KSYM_LIBFUZZER)
    ksym_executable(${name} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name} COMMAND ${name} -runs=0 -rss_limit_mb=4096 "${corpus}")
  else()
    ksym_executable(${name}
      SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} fuzz_replay)
    add_test(NAME ${name} COMMAND ${name} "${corpus}")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "fuzz" TIMEOUT 300)
endfunction()

# ksym_benchmark(NAME SOURCES a_bench.cc [DEPENDS target ...])
# A Google Benchmark program. ctest runs each benchmark once, briefly, so that
# none can rot; figures come from running the program itself.
function(ksym_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  find_package(benchmark REQUIRED)
  ksym_executable(${name} SOURCES ${ARG_SOURCES}
    DEPENDS ${ARG_DEPENDS} benchmark::benchmark)
  target_compile_definitions(${name} PRIVATE
    KSYM_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/data")
  add_test(NAME ${name} COMMAND ${name} --benchmark_min_time=0.001)
  set_tests_properties(${name} PROPERTIES LABELS "bench" TIMEOUT 300)
endfunction()
