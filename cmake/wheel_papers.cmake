# What a wheel has besides: what is inside, nanobind too, and the notices that their licences ask for. pyproject.toml's build
# puts them where Python's packages have them. Versions come from dpkg; a build elsewhere has no list rather than a false one.
find_program(KILN_DPKG_QUERY dpkg-query)
if(NOT KILN_DPKG_QUERY OR KILN_SANITIZE OR CMAKE_CROSSCOMPILING)
  return()
endif()
set(papers ${CMAKE_BINARY_DIR}/python_papers)
file(MAKE_DIRECTORY ${papers})
add_custom_command(
  OUTPUT ${papers}/kiln.spdx.json ${papers}/notices
  COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/make_sbom ${CMAKE_BINARY_DIR} -o ${papers}/kiln.spdx.json
          --notices ${papers}/notices --with nanobind=${nanobind_VERSION}
  DEPENDS ${PROJECT_SOURCE_DIR}/tools/make_sbom ${PROJECT_SOURCE_DIR}/docs/dependencies.md VERBATIM)
add_custom_target(kiln_python_papers DEPENDS ${papers}/kiln.spdx.json ${papers}/notices)
add_dependencies(kiln_python kiln_python_papers)
if(SKBUILD)
  install(FILES ${papers}/kiln.spdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES ${papers}/notices DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python EXCLUDE_FROM_ALL)
endif()
