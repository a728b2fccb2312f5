# SPDX-License-Identifier: Apache-2.0
set(KILN_NO_UNITY_MODULES "" CACHE STRING "Modules whose sources are compiled separately even with KILN_UNITY, for tools/mutate")
# Builds that must be fast parse the standard headers of the modules once. The plain optimized build does not, and so detects a
# missing #include.
if(KILN_SANITIZE OR KILN_UNITY OR KILN_NO_UNITY_MODULES)
  set(KILN_MODULE_PCH ON)
endif()
# A hit in a new process pays for every page of code that it touches (measured: 3 µs a fault), so small code is fast
# code here: with -Os instead of -O3 the text of a program with a session has 406 KB instead of 1,044 KB, and a hit takes
# 89 µs instead of 116 µs. base/hash.cpp has -O3, and the files that a hit in a running process runs through have -O2.
set(KILN_MODULE_OPTIONS $<$<CONFIG:Release>:-Os>)
if(KILN_MODULE_PCH)
  add_library(kiln_module_pch STATIC ${CMAKE_CURRENT_LIST_DIR}/module_pch.cpp)
  target_compile_options(kiln_module_pch PRIVATE ${KILN_MODULE_OPTIONS})
  target_precompile_headers(kiln_module_pch PRIVATE
    <algorithm> <atomic> <chrono> <functional> <map> <memory> <optional> <span> <string> <string_view> <thread>
    <unordered_map> <utility> <vector>)
endif()

# Adds coverage instrumentation for the fuzzers to a target. The instrumentation takes a third of the compile time, so tests do
# not use it.
function(kiln_fuzzed target)
  if(KILN_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE
      -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table)
  endif()
endfunction()

# One module: a static library kiln_<name> of its sources, on top of the modules that it DEPENDS on. A name may have a slash
# (backends/cuda), which is an underscore in the name of the target. tools/check_layers compares the includes with DEPENDS.
# A module that is NOT_IN_LIBKILN is not part of libkiln.so.
function(kiln_module name)
  cmake_parse_arguments(module "NOT_IN_LIBKILN" "" "SOURCES;DEPENDS;LINK_LIBRARIES;NO_UNITY;OPTIMIZE_SPEED" ${ARGN})
  string(REPLACE / _ target kiln_${name})
  add_library(${target} STATIC ${module_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  if(module_NOT_IN_LIBKILN)
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})  # "runtime/…" and "analysis/…"
  endif()
  list(TRANSFORM module_DEPENDS REPLACE / _)
  list(TRANSFORM module_DEPENDS PREPEND kiln_)
  target_link_libraries(${target} PUBLIC ${module_DEPENDS} PRIVATE ${module_LINK_LIBRARIES})
  target_compile_options(${target} PRIVATE ${KILN_MODULE_OPTIONS})
  if(KILN_MODULE_PCH)
    target_precompile_headers(${target} REUSE_FROM kiln_module_pch)
  endif()
  kiln_fuzzed(${target})
  # With KILN_UNITY a module is compiled in a few pieces. Sources with NO_UNITY are compiled separately, because they define
  # names that other sources of the module define, too.
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${KILN_UNITY} UNITY_BUILD_BATCH_SIZE 14)
  if(name IN_LIST KILN_NO_UNITY_MODULES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  if(module_NO_UNITY)
    set_source_files_properties(${module_NO_UNITY} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  # Sources on the path of calls that take nanoseconds or a few microseconds. They cannot use the headers that were
  # precompiled for size.
  if(module_OPTIMIZE_SPEED)
    set_source_files_properties(${module_OPTIMIZE_SPEED} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O2>
                                SKIP_UNITY_BUILD_INCLUSION ON)
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
      set_source_files_properties(${module_OPTIMIZE_SPEED} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endif()
  if(NOT module_NOT_IN_LIBKILN)
    set_property(GLOBAL APPEND PROPERTY KILN_MODULE_OBJECTS $<TARGET_OBJECTS:${target}>)
    set_property(GLOBAL APPEND PROPERTY KILN_MODULE_LINK_LIBRARIES ${module_LINK_LIBRARIES})
  endif()
endfunction()

# Finds the static archive of a library that is linked in with hidden symbols, so that users of kiln do not need its package.
function(kiln_find_static variable name)
  find_library(${variable} NAMES lib${name}.a REQUIRED)
  set(${variable} ${${variable}} PARENT_SCOPE)
endfunction()
