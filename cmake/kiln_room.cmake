set(KILN_PLAIN_ROOMS "" CACHE STRING "Rooms of which each source is compiled by itself even with KILN_UNITY, for tools/mutate")
# Where speed of building is all that counts, what rooms include of the standard library is parsed once. The plain optimised
# build goes without, and so finds a header that somebody forgot to include.
if(KILN_SANITIZE OR KILN_UNITY OR KILN_PLAIN_ROOMS)
  set(KILN_ROOM_HEADERS ON)
endif()
# A hit in a new process pays for every page of code that it touches (measured: 3 µs a fault), so small code is fast
# code here. docs/decisions/0003-small-code.md
set(KILN_ROOM_OPTIONS $<$<CONFIG:Release>:-Os>)
if(KILN_ROOM_HEADERS)
  add_library(kiln_room_headers STATIC ${CMAKE_CURRENT_LIST_DIR}/room_headers.cpp)
  target_compile_options(kiln_room_headers PRIVATE ${KILN_ROOM_OPTIONS})
  target_precompile_headers(kiln_room_headers PRIVATE
    <algorithm> <atomic> <chrono> <functional> <map> <memory> <optional> <span> <string> <string_view> <thread>
    <unordered_map> <utility> <vector>)
endif()

# A target that fuzzers look into: with what they steer by, which is a third of the time to compile, so that tests go without.
function(kiln_fuzzed target)
  if(KILN_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE
      -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table)
  endif()
endfunction()

# One room of the house: a static library kiln_<name> of its sources, on top of the rooms that it may use.
# tools/check_layers checks that the includes agree with what is declared here. One that is APART is not in libkiln.so.
function(kiln_room name)
  cmake_parse_arguments(room "APART" "" "SOURCES;USES;LINKS;ALONE;FAST" ${ARGN})
  add_library(kiln_${name} STATIC ${room_SOURCES})
  target_include_directories(kiln_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM room_USES PREPEND kiln_)
  target_link_libraries(kiln_${name} PUBLIC ${room_USES} PRIVATE ${room_LINKS})
  target_compile_options(kiln_${name} PRIVATE ${KILN_ROOM_OPTIONS})
  if(KILN_ROOM_HEADERS)
    target_precompile_headers(kiln_${name} REUSE_FROM kiln_room_headers)
  endif()
  kiln_fuzzed(kiln_${name})
  # Where nothing is compiled twice a room is compiled in a few pieces, but for those sources that are better left ALONE
  # because they have names of their own for what others call the same.
  set_target_properties(kiln_${name} PROPERTIES UNITY_BUILD ${KILN_UNITY} UNITY_BUILD_BATCH_SIZE 14)
  if(name IN_LIST KILN_PLAIN_ROOMS)
    set_target_properties(kiln_${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  set_source_files_properties(${room_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  # Those that a call of nanoseconds or a few microseconds goes through, of which size saves nothing. Headers that were
  # precompiled for size are not theirs.
  set_source_files_properties(${room_FAST} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O2>
                              SKIP_UNITY_BUILD_INCLUSION ON)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set_source_files_properties(${room_FAST} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
  if(NOT room_APART)
    set_property(GLOBAL APPEND PROPERTY KILN_ROOM_OBJECTS $<TARGET_OBJECTS:kiln_${name}>)
    set_property(GLOBAL APPEND PROPERTY KILN_ROOM_LINKS ${room_LINKS})
  endif()
  if(KILN_CLANG_TIDY)
    set_target_properties(kiln_${name} PROPERTIES CXX_CLANG_TIDY "clang-tidy;--quiet")
  endif()
endfunction()

# The static archive of a library that is linked in and hidden, so that a user of kiln needs no package of it.
function(kiln_find_static variable name)
  find_library(${variable} NAMES lib${name}.a REQUIRED)
  set(${variable} ${${variable}} PARENT_SCOPE)
endfunction()
