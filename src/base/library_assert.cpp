// SPDX-License-Identifier: Apache-2.0
// The handler of failed C++ library assertions (_GLIBCXX_ASSERTIONS). The library's own function is newer than the
// oldest system that the wheel supports, so kiln defines one. It prints the same line and aborts the process.
#include <cstdio>
#include <cstdlib>

#ifdef _GLIBCXX_ASSERTIONS
namespace std {

// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,cert-dcl58-cpp): the library calls this name
void __glibcxx_assert_fail(const char* file, int line, const char* function, const char* condition) noexcept {
  std::fprintf(stderr, "%s:%d: %s: Assertion '%s' failed.\n", file, line, function, condition);
  std::abort();
}

}  // namespace std
#endif
