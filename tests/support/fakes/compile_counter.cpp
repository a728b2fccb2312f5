// SPDX-License-Identifier: Apache-2.0
// An audit library (LD_AUDIT): writes a line for every compile and every link of NVIDIA's libraries that a process
// runs, however it found the function, with its process and thread, to the file that KILN_TEST_COMPILES names. The
// calls themselves go on unchanged.
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace {

void count(const char* function) {
  const char* const path = std::getenv("KILN_TEST_COMPILES");
  if (path == nullptr) return;
  char line[64];
  const int size =
      std::snprintf(line, sizeof line, "%s %d %d\n", function, static_cast<int>(getpid()), static_cast<int>(gettid()));
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) std::abort();  // a compile that is not counted would be a lie
  if (write(file, line, static_cast<std::size_t>(size)) != size) std::abort();
  close(file);
}

// Both functions have at most three arguments and return an int.
using Function = int (*)(void*, std::intptr_t, void*);
struct Counted {
  std::atomic<std::uintptr_t> original{0};
  const char* name = nullptr;
};
constexpr std::size_t kSlots = 16;  // a process can have several of these libraries, and each exports aliases
std::array<Counted, kSlots> slots;

template <std::size_t I>
int counted_call(void* first, std::intptr_t second, void* third) {
  count(slots[I].name);
  return reinterpret_cast<Function>(slots[I].original.load())(first, second, third);
}
template <std::size_t... I>
std::uintptr_t wrapper_of(std::size_t slot, std::index_sequence<I...>) {
  static constexpr Function kWrappers[] = {&counted_call<I>...};
  return reinterpret_cast<std::uintptr_t>(kWrappers[slot]);
}

std::uintptr_t counted(std::uintptr_t original, const char* name) {
  for (std::size_t i = 0; i < kSlots; ++i) {
    std::uintptr_t found = 0;
    if (slots[i].original.compare_exchange_strong(found, original)) slots[i].name = name;
    if (found == 0 || found == original) return wrapper_of(i, std::make_index_sequence<kSlots>());
  }
  std::abort();
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) unsigned la_version(unsigned version) { return version; }

__attribute__((visibility("default"))) unsigned la_objopen(link_map* /*map*/, Lmid_t /*space*/,
                                                           std::uintptr_t* /*cookie*/) {
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

__attribute__((visibility("default"))) std::uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned /*index*/,
                                                                   std::uintptr_t* /*from*/, std::uintptr_t* /*to*/,
                                                                   unsigned* /*flags*/, const char* name) {
  if (std::strcmp(name, "nvrtcCompileProgram") == 0) return counted(symbol->st_value, "nvrtcCompileProgram");
  if (std::strstr(name, "nvJitLinkComplete") != nullptr) return counted(symbol->st_value, "nvJitLinkComplete");
  return symbol->st_value;
}
}
