// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <kiln/export.hpp>

namespace kiln {

/// The location of the rows that an operation works on.
enum class Residency : unsigned char { Unknown, Host, Device };
KILN_API const char* to_string(Residency residency);

/// The purpose of a copy or a wait, as stated by the code that makes it. An audit accepts the purpose only if the
/// following events are consistent with it: docs/how-to/audit-a-trace.md.
enum class Purpose : unsigned char {
  Unspecified,
  Input,           ///< rows that the program passes in are copied to the device
  AllocationSize,  ///< one scalar is read that determines the size of an allocation
  Materialize,     ///< results are copied to the host because the caller requested them there
  Trace,           ///< made only to measure; absent without a trace
};
KILN_API const char* to_string(Purpose purpose);

/// The operation that a thread is running, named by the program. Every event that the thread emits carries it.
struct OperationContext {
  std::string operation;       ///< "spatial.sjoin"
  std::string stage;           ///< "refine"
  std::uint64_t dispatch = 0;  ///< id of the run of the operation, unique in this process; 0 means none
  std::uint64_t workflow = 0;  ///< id of the decision that the run follows, unique in this process; 0 means none
  std::uint64_t rows = 0;
  Residency residency = Residency::Unknown;
  Purpose purpose = Purpose::Unspecified;

  /// Returns the context of a new run: with a new id, following the calling thread's decision if there is one.
  KILN_API static OperationContext new_run(std::string operation, std::uint64_t rows = 0,
                                           Residency residency = Residency::Unknown);
  /// Returns the calling thread's context with another stage.
  KILN_API static OperationContext in_stage(std::string stage);
  /// Returns the calling thread's context with another purpose.
  KILN_API static OperationContext with_purpose(Purpose purpose);
  /// Returns a new id of a run or a decision. Both share one sequence, so that ids are unique in the process.
  KILN_API static std::uint64_t next_id() noexcept;
};

/// Sets the calling thread's current work for the lifetime of the object and restores the previous one afterwards.
/// Destroy it on the thread that created it. Scopes should nest; one that ends before an inner scope is taken out of
/// the chain, and the inner one stays in effect. Not thread-safe.
class KILN_API OperationScope {
 public:
  explicit OperationScope(OperationContext work);
  ~OperationScope();
  OperationScope(const OperationScope&) = delete;
  OperationScope& operator=(const OperationScope&) = delete;

  /// Returns the calling thread's current work, or null if there is none.
  static const OperationContext* current() noexcept;
  /// Returns true if the calling thread created the scope.
  bool is_of_this_thread() const noexcept;

  /// Records that the calling thread launched a kernel. kiln calls it for its own launches. A program that launches a
  /// native handle must call it too; otherwise its operation does not count as run on a device.
  static void count_launch() noexcept;
  /// Returns the number of launches during the lifetime of the scope, including nested scopes.
  std::uint64_t launches() const noexcept { return launches_; }

 private:
  const OperationContext work_;
  OperationScope* outer_;
  std::uint64_t launches_ = 0;
};

}  // namespace kiln
