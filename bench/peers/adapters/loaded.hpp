// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <stdlib.h>

#include <string>

#include "bench/peers/adapters/adapter.hpp"

// Helpers of the adapters that pass code to a driver. There is no GPU: the fake driver of the tests checks an image and
// does not run it. The programs link to it, so that every dlopen of libcuda.so.1 returns it.
namespace kiln::peers {

/// Sets up what an application has before it requests its first kernel: a device of this architecture with a current
/// context.
inline bool make_context(const char* arch) {
  setenv("KILN_FAKE_DRIVER_DEVICES", arch, 1);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  const auto call = [driver](const char* name, auto... arguments) {
    const auto function = reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(driver, name));
    return function != nullptr && function(arguments...) == 0;
  };
  int device = 0;
  void* context = nullptr;
  return call("cuInit", 0U) && call("cuDeviceGet", &device, 0) && call("cuDevicePrimaryCtxRetain", &context, device) &&
         call("cuCtxSetCurrent", context);
}

/// Returns the name of the first kernel in a source.
inline std::string first_kernel(const std::string& source) {
  constexpr std::string_view kBefore = "__global__ void ";
  const std::size_t found = source.find(kBefore);
  if (found == std::string::npos) return {};
  const std::size_t begin = found + kBefore.size();
  return source.substr(begin, source.find('(', begin) - begin);
}

}  // namespace kiln::peers
