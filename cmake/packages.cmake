# SPDX-License-Identifier: Apache-2.0
# Debian packages of the installed files. `cpack` in the build directory creates them. docs/how-to/install.md
#   libkiln0      libkiln.so.0, libkiln-runtime.so.0, and the worker that they start
#   libkiln-dev   headers, and the files for CMake and pkg-config
#   kiln-tools    the program kiln and its completions
find_program(KILN_DPKG_QUERY dpkg-query)
find_program(KILN_PYTHON python3)
if(NOT KILN_DPKG_QUERY OR NOT KILN_PYTHON OR KILN_SANITIZE OR KILN_STATIC_LIBRARY OR CMAKE_CROSSCOMPILING)
  return()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kiln)
set(CPACK_PACKAGE_VENDOR "The kiln authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "background compilation and caching of GPU code")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# The project has no e-mail address, and this one is reserved as invalid.
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The kiln authors <kiln@packages.invalid>")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

set(KILN_DEB_VERSION ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_NAME libkiln0)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)
set(CPACK_DEBIAN_LIBRARIES_DESCRIPTION "Library that compiles, caches and loads GPU kernels before a program
needs them. It loads compilers and drivers at run time if they are installed.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libkiln-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# kiln_add_bundle() runs the program.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libkiln0 (= ${KILN_DEB_VERSION}), kiln-tools (= ${KILN_DEB_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "Headers, and files for CMake and pkg-config.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME kiln-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION devel)
# The worker is installed with the library.
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libkiln0 (= ${KILN_DEB_VERSION})")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "Command-line program kiln, which fills caches, creates bundles and
diagnoses the installation, with completions for bash, zsh and fish.")

# The documents of each package: copyright, changelog and SBOM.
set(folder ${CMAKE_BINARY_DIR}/debian)
configure_file(cmake/debian/changelog.in ${folder}/changelog @ONLY)
add_custom_command(
  OUTPUT ${folder}/kiln.spdx.json ${folder}/copyright ${folder}/changelog.Debian.gz
  COMMAND ${PROJECT_SOURCE_DIR}/cmake/debian/make_documents ${CMAKE_BINARY_DIR} ${folder}
  DEPENDS tools/make_sbom docs/internals/dependencies.md cmake/debian/make_documents cmake/debian/copyright ${folder}/changelog
  VERBATIM)
add_custom_target(kiln_package_documents ALL DEPENDS ${folder}/kiln.spdx.json ${folder}/copyright)
foreach(package libraries:libkiln0 development:libkiln-dev tools:kiln-tools)
  string(REPLACE ":" ";" package ${package})
  list(GET package 0 component)
  list(GET package 1 name)
  # Only installed if this component is requested: a plain installation does not need the documents of a package.
  install(FILES ${folder}/copyright ${folder}/changelog.Debian.gz ${folder}/kiln.spdx.json
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()

set(CPACK_COMPONENTS_ALL libraries runtime development runtime_development tools)  # without the component of the wheel
include(CPack)
cpack_add_component_group(libraries)
cpack_add_component_group(development)
cpack_add_component_group(tools)
cpack_add_component(libraries GROUP libraries)
cpack_add_component(runtime GROUP libraries)
cpack_add_component(development GROUP development)
cpack_add_component(runtime_development GROUP development)
cpack_add_component(tools GROUP tools)
