# SPDX-License-Identifier: Apache-2.0
# libkiln.a, for programs that link kiln statically: every module, runtime/ too, and the used parts of the archives that kiln
# links. It is one object in which only the names of cmake/kiln.map are global, so that a program can link its own libcrypto, zstd
# or hiredis as well.
get_property(objects GLOBAL PROPERTY KILN_MODULE_OBJECTS)
get_property(links GLOBAL PROPERTY KILN_MODULE_LINK_LIBRARIES)
list(FILTER links INCLUDE REGEX "\\.a$")
list(REMOVE_DUPLICATES links)
set(KILN_ARCHIVE ${CMAKE_BINARY_DIR}/lib/libkiln.a)
set(whole ${CMAKE_BINARY_DIR}/kiln_whole.o)
set(names ${PROJECT_SOURCE_DIR}/cmake/static_names.txt)

list(APPEND objects $<TARGET_OBJECTS:kiln_runtime>)
# Without --force-group-allocation, the linker would discard section groups in favor of the program's copies, together with
# their local names.
add_custom_command(
  OUTPUT ${KILN_ARCHIVE}
  COMMAND ${CMAKE_LINKER} -r -d --force-group-allocation -o ${whole} ${objects} ${links}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden --wildcard --keep-global-symbols=${names} ${whole}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${KILN_ARCHIVE}
  COMMAND ${CMAKE_AR} rcsD ${KILN_ARCHIVE} ${whole}
  DEPENDS ${objects} ${links} ${names}
  COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(kiln_archive_file ALL DEPENDS ${KILN_ARCHIVE})

add_library(kiln_archive INTERFACE)
add_dependencies(kiln_archive kiln_archive_file)
set_target_properties(kiln_archive PROPERTIES EXPORT_NAME kiln)
target_compile_features(kiln_archive INTERFACE cxx_std_17)
target_include_directories(kiln_archive INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(kiln_archive INTERFACE
  $<BUILD_INTERFACE:${KILN_ARCHIVE}>
  $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/libkiln.a>
  stdc++ m ${CMAKE_DL_LIBS} -pthread)
add_library(kiln_runtime_archive INTERFACE)
set_target_properties(kiln_runtime_archive PROPERTIES EXPORT_NAME runtime)
target_include_directories(kiln_runtime_archive INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include>)
target_link_libraries(kiln_runtime_archive INTERFACE kiln_archive)
set_target_properties(kiln_shared kiln_runtime_shared PROPERTIES EXCLUDE_FROM_ALL ON)

# docs/internals/long-tests.md: installs the archive, links programs with it and runs them.
add_custom_target(campaign_static
  COMMAND ${PROJECT_SOURCE_DIR}/tests/packages/static_test.sh ${PROJECT_SOURCE_DIR} ${CMAKE_BINARY_DIR} USES_TERMINAL)
add_dependencies(campaign_static kiln_archive_file kiln_program kiln-worker kiln_completions)
