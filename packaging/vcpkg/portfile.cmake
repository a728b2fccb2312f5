# SPDX-License-Identifier: Apache-2.0
# vcpkg port of kiln. Not tested: vcpkg is not available where kiln is developed.
# It builds the tree that this file is a part of: vcpkg install kiln --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DKILN_BUILD_TESTS=OFF
    -DKILN_BUILD_BENCH=OFF
    -DKILN_BUILD_EXAMPLES=OFF
    -DKILN_BUILD_PYTHON=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/kiln)
vcpkg_copy_tools(TOOL_NAMES kiln AUTO_CLEAN)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
