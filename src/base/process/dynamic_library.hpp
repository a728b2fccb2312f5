// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// A shared library opened at run time. It is never closed: vendor libraries start threads and register exit handlers
/// that would not survive unloading.
class DynamicLibrary {
 public:
  /// Opens exactly this path or, without a slash, the library that the loader finds under this name.
  static Result<DynamicLibrary> open(const std::string& path);

  /// Returns the address of a symbol, or null.
  void* find(const char* symbol) const;

  /// Sets a function pointer. Returns false if the library does not have the function.
  template <class F>
  bool bind(F*& function, const char* symbol) const {
    function = reinterpret_cast<F*>(find(symbol));
    return function != nullptr;
  }

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

/// Returns the paths of the shared libraries that are mapped in this process, in load order.
std::vector<std::string> mapped_libraries();

/// Returns the path of the program or library that contains this address; empty if unknown.
std::string path_of_address(const void* address);

}  // namespace kiln
