# SPDX-License-Identifier: Apache-2.0
# The metadata of a wheel: an SBOM, which includes nanobind, and the notices that the licenses require. The build of
# pyproject.toml installs them to the standard locations of Python packages. Versions come from dpkg; a build without dpkg omits
# the SBOM.
find_program(KILN_DPKG_QUERY dpkg-query)
if(NOT KILN_DPKG_QUERY OR KILN_SANITIZE)
  return()
endif()
set(metadata ${CMAKE_BINARY_DIR}/python_metadata)
file(MAKE_DIRECTORY ${metadata})
add_custom_command(
  OUTPUT ${metadata}/kiln.spdx.json ${metadata}/notices
  COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/make_sbom ${CMAKE_BINARY_DIR} -o ${metadata}/kiln.spdx.json
          --notices ${metadata}/notices --with nanobind=${nanobind_VERSION}
  DEPENDS ${PROJECT_SOURCE_DIR}/tools/make_sbom ${PROJECT_SOURCE_DIR}/docs/internals/dependencies.md VERBATIM)
add_custom_target(kiln_python_metadata DEPENDS ${metadata}/kiln.spdx.json ${metadata}/notices)
add_dependencies(kiln_python kiln_python_metadata)
if(SKBUILD)
  install(FILES ${metadata}/kiln.spdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES ${metadata}/notices DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python EXCLUDE_FROM_ALL)
endif()
