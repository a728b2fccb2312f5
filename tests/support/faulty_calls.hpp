#pragma once

#include <functional>
#include <string>

namespace kiln::test {

/// Makes system calls fail in this program, which must be linked with the options that tests/store/CMakeLists.txt
/// gives. One at a time.
struct Fault {
  std::string call;   ///< openat, read, write, fstat, close, mkdirat, renameat
  int error = 0;      ///< the errno to fail with
  int skip = 0;       ///< how many calls go well first
  int times = 1;      ///< how many fail then; -1 for all
  bool done = false;  ///< renameat only: it happens all the same, as when a network lost the answer
};

/// While it lives, `fault` is in force.
class FaultInjection {
 public:
  explicit FaultInjection(Fault fault);
  ~FaultInjection();
  FaultInjection(const FaultInjection&) = delete;
  FaultInjection& operator=(const FaultInjection&) = delete;

  /// Whether the fault was met at all.
  int met() const;
};

/// While it lives, every folder is on a network file system, and calls that write are counted.
class OnNetwork {
 public:
  OnNetwork();
  ~OnNetwork();
  OnNetwork(const OnNetwork&) = delete;
  OnNetwork& operator=(const OnNetwork&) = delete;

  int writes() const;  ///< of times, names and contents
};

}  // namespace kiln::test
