# SPDX-License-Identifier: Apache-2.0
# Compiler and linker options that mitigate exploits of memory errors. tools/check_hardening reads the binaries and fails if one
# of these mitigations is missing. Sanitizer builds do not use them: sanitizers check more, and fortified calls would hide
# errors from them.
if(KILN_SANITIZE)
  return()
endif()
# The size checks of _FORTIFY_SOURCE need an optimizing compiler, so debug builds do not have them.
set(fortified $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
add_compile_options(-fstack-protector-strong "$<${fortified}:-U_FORTIFY_SOURCE>" "$<${fortified}:-D_FORTIFY_SOURCE=3>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # With fortified headers, GCC warns about results that are discarded with (void). clang, which the sanitizer builds and
  # clang-tidy use, warns about results that are discarded without it.
  add_compile_options(-Wno-unused-result)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  add_compile_options(-mbranch-protection=standard)
endif()
add_compile_definitions(_GLIBCXX_ASSERTIONS)
add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
include(CheckPIESupported)
check_pie_supported()
