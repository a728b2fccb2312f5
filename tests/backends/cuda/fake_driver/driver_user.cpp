// SPDX-License-Identifier: Apache-2.0
// A program that is not aware of the double: it opens the driver by its name, loads the given cubin, launches its
// kernel `nothing`, and does not release its stream and its context.
#include <dlfcn.h>

#include <fstream>
#include <iterator>

#include "backends/cuda/cuda_driver_abi.hpp"

using namespace kiln;
using R = cuda::DriverResult;

int main(int, char** arguments) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return 10;
  const auto find = reinterpret_cast<cuda::GetProcAddress>(dlsym(library, cuda::kGetProcAddressSymbol));
  cuda::DriverFunctions cu;
  for_each_function(cu, [&](auto& function, const char* name, int version) {
    find(name, reinterpret_cast<void**>(&function), version, 0, nullptr);
  });
  std::ifstream in(arguments[1], std::ios::binary);
  const std::string image(std::istreambuf_iterator<char>(in), {});
  cuda::Context context = nullptr;
  if (cu.Init(0) != R::Success || cu.DevicePrimaryCtxRetain(&context, 1) != R::Success) return 11;
  cuda::Library code = nullptr;
  cuda::Kernel kernel = nullptr;
  cuda::DriverLaunchConfig config;
  if (cu.CtxSetCurrent(context) != R::Success || cu.StreamCreate(&config.stream, 1) != R::Success) return 12;
  if (cu.LibraryLoadData(&code, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) != R::Success) return 13;
  if (cu.LibraryGetKernel(&kernel, code, "nothing") != R::Success) return 14;
  if (cu.LaunchKernelEx(&config, as_function(kernel), nullptr, nullptr) != R::Success) return 15;
  return cu.StreamSynchronize(config.stream) == R::Success ? 0 : 16;
}
