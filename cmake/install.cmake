# SPDX-License-Identifier: Apache-2.0
# The files that `cmake --install` installs: the public headers, libkiln.so, the programs, and the files for find_package
# and pkg-config. All paths are relative, so that an installed tree can be moved.
# Components: `libraries` contains what a program linked with kiln needs at run time, `tools` contains the program kiln, and
# `development` everything that names no other component (cmake/packages.cmake creates Debian packages from them).
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)

install(DIRECTORY include/kiln TYPE INCLUDE FILES_MATCHING PATTERN *.hpp PATTERN *.h)
if(KILN_STATIC_LIBRARY)
  install(FILES ${KILN_ARCHIVE} DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS kiln_archive EXPORT kilnTargets)
else()
  install(TARGETS kiln_shared EXPORT kilnTargets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries NAMELINK_COMPONENT development)
endif()
# kiln-runtime has separate components: `find_package(kiln COMPONENTS runtime)`, `cmake --install … --component runtime` for its
# library, and `runtime_development` for the files that programs are compiled with.
install(FILES runtime/include/kiln/runtime.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kiln COMPONENT runtime_development)
install(DIRECTORY runtime/include/kiln/runtime DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kiln COMPONENT runtime_development)
if(KILN_STATIC_LIBRARY)
  install(TARGETS kiln_runtime_archive EXPORT kilnRuntimeTargets COMPONENT runtime_development)
else()
  install(TARGETS kiln_runtime_shared EXPORT kilnRuntimeTargets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT runtime_development)
endif()
install(EXPORT kilnRuntimeTargets NAMESPACE kiln:: DESTINATION ${package_dir} COMPONENT runtime_development)
# libkiln.so and kiln look for kiln-worker at ../libexec/kiln (find_worker in src/worker/worker_pool.cpp).
install(TARGETS kiln-worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/kiln COMPONENT libraries)
install(TARGETS kiln_program EXPORT kilnTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)

# The schemas of the JSON that the program prints.
install(DIRECTORY apps/kiln/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/kiln COMPONENT tools FILES_MATCHING PATTERN *.json)

# The program generates its own completions and its manual page, so they always match its version.
if(NOT KILN_SANITIZE AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
  foreach(completion bash:bash-completion/completions/kiln zsh:zsh/site-functions/_kiln
                     fish:fish/vendor_completions.d/kiln.fish)
    string(REPLACE ":" ";" completion ${completion})
    list(GET completion 0 shell)
    list(GET completion 1 place)
    set(file ${CMAKE_BINARY_DIR}/share/${place})
    cmake_path(GET file PARENT_PATH folder)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${file} COMMAND kiln_program completions ${shell} > ${file} DEPENDS kiln_program VERBATIM)
    list(APPEND completion_files ${file})
  endforeach()
  set(file ${CMAKE_BINARY_DIR}/share/man/man1/kiln.1)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/man/man1)
  add_custom_command(OUTPUT ${file}.gz COMMAND kiln_program man > ${file} COMMAND gzip -9nf ${file}
                     DEPENDS kiln_program VERBATIM)
  list(APPEND completion_files ${file}.gz)
  add_custom_target(kiln_completions ALL DEPENDS ${completion_files})
  install(DIRECTORY ${CMAKE_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT tools)
endif()

install(EXPORT kilnTargets NAMESPACE kiln:: DESTINATION ${package_dir})
configure_package_config_file(cmake/kilnConfig.cmake.in ${CMAKE_BINARY_DIR}/kilnConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version can change the interface.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/kilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/kilnConfig.cmake ${CMAKE_BINARY_DIR}/kilnConfigVersion.cmake
              cmake/kiln_add_bundle.cmake
        DESTINATION ${package_dir})

file(RELATIVE_PATH KILN_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
# `pkg-config --static` lists the libraries that a program linked with libkiln.a needs; libkiln.so names them itself.
configure_file(cmake/kiln.pc.in ${CMAKE_BINARY_DIR}/kiln.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

include(cmake/packages.cmake)
