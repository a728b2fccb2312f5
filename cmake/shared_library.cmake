# SPDX-License-Identifier: Apache-2.0
# libkiln.so: every module in one library, of which cmake/kiln.map exports the public names. The programs, the tests and
# the benchmarks link the modules themselves; this is for users.
get_property(objects GLOBAL PROPERTY KILN_MODULE_OBJECTS)
get_property(links GLOBAL PROPERTY KILN_MODULE_LINK_LIBRARIES)
list(REMOVE_DUPLICATES links)

add_library(kiln_shared SHARED ${objects})
add_library(kiln::kiln ALIAS kiln_shared)
set_target_properties(kiln_shared PROPERTIES
  OUTPUT_NAME kiln
  EXPORT_NAME kiln
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/kiln.map)
target_include_directories(kiln_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(kiln_shared INTERFACE cxx_std_17)
target_link_libraries(kiln_shared PRIVATE ${links})
target_link_options(kiln_shared PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/kiln.map)

# Reports undefined symbols here instead of in a user's program. Sanitizer symbols are defined by the program.
if(NOT KILN_SANITIZE)
  target_link_options(kiln_shared PRIVATE LINKER:-z,defs)
endif()

# libkiln-runtime.so: runtime/ on top of libkiln.so, of which it uses the public symbols only. It contains a hidden copy of the
# parts of src/base and src/backends that it uses.
add_library(kiln_runtime_shared SHARED $<TARGET_OBJECTS:kiln_runtime>)
add_library(kiln::runtime ALIAS kiln_runtime_shared)
set_target_properties(kiln_runtime_shared PROPERTIES
  OUTPUT_NAME kiln-runtime
  EXPORT_NAME runtime
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/kiln_runtime.map)
target_include_directories(kiln_runtime_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include>)
target_link_libraries(kiln_runtime_shared PUBLIC kiln_shared PRIVATE $<BUILD_INTERFACE:kiln_backends_cuda>)
target_link_options(kiln_runtime_shared PRIVATE
  LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/kiln_runtime.map)
