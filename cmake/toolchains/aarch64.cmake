# SPDX-License-Identifier: Apache-2.0
# Debian's cross compiler for 64-bit ARM. tools/build_aarch64 fills a directory with the arm64 archives that kiln links in, from
# Debian packages. Nothing is installed into this system.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(kiln_sysroot ${CMAKE_CURRENT_LIST_DIR}/../../build/aarch64-sysroot ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${kiln_sysroot})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Headers that do not depend on the architecture are found on the host, after these.
set(CMAKE_CXX_FLAGS_INIT "-isystem ${kiln_sysroot}/usr/include -isystem ${kiln_sysroot}/usr/include/aarch64-linux-gnu")
set(CMAKE_C_FLAGS_INIT "${CMAKE_CXX_FLAGS_INIT}")
