# SPDX-License-Identifier: Apache-2.0
# Installs the contents of a wheel from the build directory KILN_PREBUILT, in which they were built. pyproject.toml packs them.
get_filename_component(built ${KILN_PREBUILT} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
file(GLOB extension ${built}/python/kiln/_kiln.*.so)
list(LENGTH extension found)
if(NOT found EQUAL 1)
  message(FATAL_ERROR "${built} has ${found} Python extensions, expected 1; build kiln_python there for one Python version")
endif()
install(FILES ${extension} DESTINATION kiln COMPONENT python)
install(PROGRAMS ${built}/bin/kiln ${built}/bin/kiln-worker DESTINATION kiln/bin COMPONENT python)
if(EXISTS ${built}/python_metadata/kiln.spdx.json)
  install(FILES ${built}/python_metadata/kiln.spdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms COMPONENT python)
  install(FILES ${built}/python_metadata/notices DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python)
endif()
# scikit-build-core requests the targets of an ordinary build.
add_custom_target(kiln_python)
add_custom_target(kiln_program)
add_custom_target(kiln-worker)
