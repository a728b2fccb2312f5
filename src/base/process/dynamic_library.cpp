// SPDX-License-Identifier: Apache-2.0
#include "base/process/dynamic_library.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.hpp"
#include "base/process/process_lifecycle.hpp"

namespace kiln {

Result<DynamicLibrary> DynamicLibrary::open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return make_error(Code::Unavailable,
                      "cannot open " + path + ": " + (reason != nullptr ? reason : "unknown reason"));
  }
  reregister_exit_handler();
  return DynamicLibrary(handle);
}

void* DynamicLibrary::find(const char* symbol) const { return dlsym(handle_, symbol); }

std::vector<std::string> mapped_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/') {
          static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        }
        return 0;
      },
      &paths);
  return paths;
}

std::string path_of_address(const void* address) {
  Dl_info info{};
  link_map* object = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  // The program itself has no name in the loader's list. `dli_fname` is then its first argument, which the caller of
  // the program chooses.
  const bool is_program = object == nullptr || object->l_name == nullptr || object->l_name[0] == '\0';
  if (!is_program && info.dli_fname[0] == '/') return info.dli_fname;
  char program[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program);
  if (size > 0) return {program, static_cast<std::size_t>(size)};
  // Without /proc. A program that runs with more privileges than its caller does not trust the argument.
  if (getauxval(AT_SECURE) != 0 || info.dli_fname[0] != '/') return {};
  return realpath(info.dli_fname, program) != nullptr ? std::string(program) : std::string();
}

}  // namespace kiln
