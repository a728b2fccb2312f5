# Adapters of peers that are C++ or C. CI does not build them: `kiln-bench-peers` does.

# NVIDIA's library of algorithms alone, and kiln with the same.
add_executable(kiln-bench-peer-cccl EXCLUDE_FROM_ALL adapters/cccl.cpp)
target_link_libraries(kiln-bench-peer-cccl PRIVATE kiln_bench_parts ${KILN_LIBCRYPTO})
add_executable(kiln-bench-peer-kiln-cccl EXCLUDE_FROM_ALL adapters/kiln_cccl.cpp)
target_link_libraries(kiln-bench-peer-kiln-cccl PRIVATE kiln::kiln ${KILN_LIBCRYPTO})
add_custom_target(kiln-bench-native-peers DEPENDS kiln-bench-peer-cccl kiln-bench-peer-kiln-cccl kiln-worker)

# jitify2 is a header that is no part of this project: built where somebody says where it is. It is compiled by the build
# like every other adapter, so that a missing or changed header is seen when it is built and not in the middle of a run.
set(KILN_JITIFY2 "$ENV{KILN_JITIFY2}" CACHE PATH "The folder with jitify2.hpp, to compare kiln with it; empty: not compared")
if(NOT TARGET kiln_driver_double)
  return()
endif()
# kiln with code that is loaded, to stand beside jitify2.
add_executable(kiln-bench-peer-kiln-loaded EXCLUDE_FROM_ALL adapters/kiln_loaded.cpp)
target_link_libraries(kiln-bench-peer-kiln-loaded PRIVATE kiln::kiln ${KILN_LIBCRYPTO} ${CMAKE_DL_LIBS}
                                                          -Wl,--no-as-needed kiln_driver_double)
add_dependencies(kiln-bench-native-peers kiln-bench-peer-kiln-loaded)
# compute.py opens it by its path.
add_dependencies(kiln-bench-native-peers kiln_driver_double)
if(NOT KILN_JITIFY2)
  return()
endif()
find_path(KILN_CUDA_INCLUDE cuda.h HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
if(NOT EXISTS ${KILN_JITIFY2}/jitify2.hpp OR NOT KILN_CUDA_INCLUDE)
  message(WARNING "KILN_JITIFY2 is given, but there is no jitify2.hpp in it or no cuda.h: jitify2 is not compared with")
  return()
endif()
add_executable(kiln-bench-peer-jitify2 EXCLUDE_FROM_ALL adapters/jitify2.cpp)
target_include_directories(kiln-bench-peer-jitify2 SYSTEM PRIVATE ${KILN_JITIFY2} ${KILN_CUDA_INCLUDE})
# "Static" is by the linker instead of by dlopen: the driver is the one that stands here.
target_compile_definitions(kiln-bench-peer-jitify2 PRIVATE JITIFY_LINK_CUDA_STATIC=1)
target_link_libraries(kiln-bench-peer-jitify2 PRIVATE kiln_driver_double kiln_device_images ${KILN_LIBCRYPTO}
                                                      Threads::Threads ${CMAKE_DL_LIBS})
add_dependencies(kiln-bench-native-peers kiln-bench-peer-jitify2)
