# SPDX-License-Identifier: Apache-2.0
# Adapters of C and C++ peers. CI does not build them; the target `kiln-bench-peers` does.

# NVIDIA's library of algorithms alone, and kiln with the same library.
add_executable(kiln-bench-peer-cccl EXCLUDE_FROM_ALL adapters/cccl.cpp)
target_link_libraries(kiln-bench-peer-cccl PRIVATE kiln_bench_parts ${KILN_LIBCRYPTO})
add_executable(kiln-bench-peer-kiln-cccl EXCLUDE_FROM_ALL adapters/kiln_cccl.cpp)
target_link_libraries(kiln-bench-peer-kiln-cccl PRIVATE kiln::kiln ${KILN_LIBCRYPTO})
add_custom_target(kiln-bench-native-peers DEPENDS kiln-bench-peer-cccl kiln-bench-peer-kiln-cccl kiln-worker)

# jitify2 is a header that is not part of this project; its adapter is built if KILN_JITIFY2 is set. The build compiles it like
# every other adapter, so that a missing or changed header is detected at build time and not during a run.
set(KILN_JITIFY2 "$ENV{KILN_JITIFY2}" CACHE PATH "Directory with jitify2.hpp, to compare kiln with it; empty means no comparison")
if(NOT TARGET kiln_fake_driver)
  return()
endif()
# kiln with loaded code, for comparison with jitify2.
add_executable(kiln-bench-peer-kiln-loaded EXCLUDE_FROM_ALL adapters/kiln_loaded.cpp)
target_link_libraries(kiln-bench-peer-kiln-loaded PRIVATE kiln::kiln ${KILN_LIBCRYPTO} ${CMAKE_DL_LIBS}
                                                          -Wl,--no-as-needed kiln_fake_driver)
add_dependencies(kiln-bench-native-peers kiln-bench-peer-kiln-loaded)
# compute.py opens it by its path.
add_dependencies(kiln-bench-native-peers kiln_fake_driver)
if(NOT KILN_JITIFY2)
  return()
endif()
find_path(KILN_CUDA_INCLUDE cuda.h HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
if(NOT EXISTS ${KILN_JITIFY2}/jitify2.hpp OR NOT KILN_CUDA_INCLUDE)
  message(WARNING "KILN_JITIFY2 is set, but jitify2.hpp or cuda.h is missing: jitify2 is not compared")
  return()
endif()
add_executable(kiln-bench-peer-jitify2 EXCLUDE_FROM_ALL adapters/jitify2.cpp)
target_include_directories(kiln-bench-peer-jitify2 SYSTEM PRIVATE ${KILN_JITIFY2} ${KILN_CUDA_INCLUDE})
# "Static" means linking instead of dlopen: the driver is the fake driver linked below.
target_compile_definitions(kiln-bench-peer-jitify2 PRIVATE JITIFY_LINK_CUDA_STATIC=1)
target_link_libraries(kiln-bench-peer-jitify2 PRIVATE kiln_fake_driver kiln_device_images ${KILN_LIBCRYPTO}
                                                      Threads::Threads ${CMAKE_DL_LIBS})
add_dependencies(kiln-bench-native-peers kiln-bench-peer-jitify2)
