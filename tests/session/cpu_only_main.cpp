// A program that is linked with kiln and says what it needs, on a machine that has no GPU runtime. What it has become
// at the end goes to standard output; the marks on standard error tell a tracer where the program itself begins and
// ends.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <kiln/kiln.hpp>

namespace {

constinit const kiln::Needs needs{
    "cpu_only", [] {
      return kiln::Units{kiln::Unit::cuda("k.cu", "").entry("k"), kiln::Unit::opencl("k.cl", "").entry("k")};
    }};

bool mark(const char* text, std::size_t size) { return write(2, text, size) == static_cast<ssize_t>(size); }

void print_libraries() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    for (const char* name : {"libcuda", "libOpenCL", "libpocl", "libnvrtc", "libnvJitLink", "libcccl"}) {
      if (line.find(name) != std::string::npos) std::printf("mapped %s\n", line.c_str());
    }
  }
}

}  // namespace

int main() {
  if (!mark("MAIN\n", 5)) return 2;
  {
    auto session = kiln::Session::open();
    if (!session) return 2;
    session->request(needs);
    session->request(needs);
    if (!mark("END\n", 4)) return 2;
    std::printf("submitted %zu\n", session->status().submitted);
    std::printf("threads %td\n", std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
    print_libraries();
    if (!mark("MAIN\n", 5)) return 2;
  }
  return mark("END\n", 4) ? 0 : 2;
}
