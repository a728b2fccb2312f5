# libkiln.so: every room in one library, of which cmake/kiln.map exports the public names. The programs, the tests and
# the benchmarks link the rooms themselves; this is for users.
get_property(objects GLOBAL PROPERTY KILN_ROOM_OBJECTS)
get_property(links GLOBAL PROPERTY KILN_ROOM_LINKS)
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
# Symbols are bound when the library is loaded, not one by one in the middle of the first hit.
target_link_options(kiln_shared PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/kiln.map LINKER:-z,now)

# A name that nobody defines is an error here and not in a user's program. What a sanitizer needs is in the program.
if(NOT KILN_SANITIZE)
  target_link_options(kiln_shared PRIVATE LINKER:-z,defs)
endif()

# libkiln-runtime.so: the room runtime/ on top of libkiln.so, of which it sees what users see. What it takes of base/ and
# device/ it has for itself, hidden.
add_library(kiln_runtime_shared SHARED $<TARGET_OBJECTS:kiln_runtime>)
add_library(kiln::runtime ALIAS kiln_runtime_shared)
set_target_properties(kiln_runtime_shared PROPERTIES
  OUTPUT_NAME kiln-runtime
  EXPORT_NAME runtime
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/kiln_runtime.map)
target_link_libraries(kiln_runtime_shared PUBLIC kiln_shared PRIVATE $<BUILD_INTERFACE:kiln_device>)
target_link_options(kiln_runtime_shared PRIVATE
  LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/kiln_runtime.map LINKER:-z,now)
