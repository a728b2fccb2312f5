// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace kiln::test {

/// A system call failure in this program, which must be linked with the options in tests/cache/CMakeLists.txt. One at a
/// time.
struct Fault {
  std::string call;   ///< openat (openat2 too), openat2, read, write, fstat, close, mkdirat, renameat
  int error = 0;      ///< the errno to fail with
  int skip = 0;       ///< number of calls that succeed first
  int times = 1;      ///< number of calls that fail then; -1 means all
  bool done = false;  ///< renameat only: the rename happens anyway, as if the response was lost
};

/// Applies `fault` during its lifetime.
class FaultInjection {
 public:
  explicit FaultInjection(Fault fault);
  ~FaultInjection();
  FaultInjection(const FaultInjection&) = delete;
  FaultInjection& operator=(const FaultInjection&) = delete;

  /// Returns how often the fault occurred.
  int met() const;
};

/// During its lifetime, every directory is on a network file system, and calls that write are counted.
class OnNetwork {
 public:
  OnNetwork();
  ~OnNetwork();
  OnNetwork(const OnNetwork&) = delete;
  OnNetwork& operator=(const OnNetwork&) = delete;

  int writes() const;  ///< writes of times, names and contents
};

}  // namespace kiln::test
