#pragma once

#include <dlfcn.h>
#include <stdlib.h>

#include <string>

#include "bench/peers/adapters/adapter.hpp"

// For the adapters that give the code to a driver. There is no GPU: it is the double of the tests, which checks an
// image and runs none. The programs are linked to it, so that whoever opens libcuda.so.1 has it.
namespace kiln::peers {

/// What an application has done before it asks for its first kernel: a device of this architecture, its context
/// current.
inline bool make_context(const char* arch) {
  setenv("KILN_DOUBLE_DEVICES", arch, 1);
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

/// The name of the first kernel in a source.
inline std::string first_kernel(const std::string& source) {
  constexpr std::string_view kBefore = "__global__ void ";
  const std::size_t found = source.find(kBefore);
  if (found == std::string::npos) return {};
  const std::size_t begin = found + kBefore.size();
  return source.substr(begin, source.find('(', begin) - begin);
}

}  // namespace kiln::peers
