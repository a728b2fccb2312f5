#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// A shared library opened at run time. It is never closed: vendor libraries start threads and register exit handlers
/// that do not survive it.
class DynamicLibrary {
 public:
  /// Opens exactly this path (or, without a slash, what the loader finds under this name).
  static Result<DynamicLibrary> open(const std::string& path);

  /// The address of a symbol, or null.
  void* find(const char* symbol) const;

  /// Sets a function pointer; false where the library has no such function.
  template <class F>
  bool bind(F*& function, const char* symbol) const {
    function = reinterpret_cast<F*>(find(symbol));
    return function != nullptr;
  }

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

/// The paths of the shared libraries that are mapped in this process, in load order.
std::vector<std::string> mapped_libraries();

/// The path of the program or library that contains this address; empty where that cannot be told.
std::string path_of_code(const void* address);

}  // namespace kiln
