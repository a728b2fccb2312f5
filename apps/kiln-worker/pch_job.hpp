// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "backends/cuda/nvrtc_compiler.hpp"
#include "backends/file_access.hpp"
#include "backends/pch.hpp"
#include "base/files/files.hpp"

namespace kiln {

/// The memory of an NVRTC library for precompiled headers: its heap, at an address that is the same in all workers
/// (`reserve_pch_heap`). Its size does not matter for files: they can be used with any heap that is large enough. Not
/// thread-safe.
class PchHeap {
 public:
  PchHeap() = default;
  /// `memory_limit` is the memory limit of the process in bytes; the heap counts toward it.
  PchHeap(NvrtcCompiler& nvrtc, std::uint64_t memory_limit);

  /// Returns false if the library has no precompiled headers.
  bool exists() const { return size_ != 0; }
  /// Makes the heap large enough for `required` bytes. Returns false if that takes more than half of the memory limit.
  bool fit(std::uint64_t required);
  /// Returns whether the file of an order has the ordered size and checksum. A file that was read once is not read
  /// again as long as its stamp shows that it has not changed.
  bool is_intact(const PchRequest& order);

 private:
  NvrtcCompiler* nvrtc_ = nullptr;
  std::uint64_t memory_limit_ = 0;
  std::uint64_t size_ = 0;
  std::map<std::uint64_t, FileStamp> intact_;  // files that were found intact, by checksum
};

/// The compiles of a job that creates or uses a precompiled header. Not thread-safe.
class PchJob {
 public:
  using Compile = std::function<Result<CompileResult>(const PchRequest& order, PchResult& report)>;
  /// Compiles only the headers of the unit, without a precompiled header, and then a warning. Returns the log up to
  /// that warning; nothing if that is not possible.
  using HeaderLog = std::function<std::optional<std::string>()>;

  /// `is_attempt` means that the unit is compiled again with more headers if one is missing.
  PchJob(const PchRequest& order, PchHeap& heap, FileAccessRecorder& recorder, bool is_attempt)
      : order_(order), heap_(heap), recorder_(recorder), is_attempt_(is_attempt) {}

  /// Compiles as ordered. If the precompiled header cannot be created or used, it is compiled without. `report` has the
  /// reason.
  Result<CompileResult> run(const Compile& compile, const HeaderLog& header_log, PchResult& report);

 private:
  void create_or_use(const Compile& compile, Result<CompileResult>& compiled, PchResult& report);
  void complete(PchResult& report) const;
  void check_log(const CompileResult& compiled, const HeaderLog& header_log, PchResult& report) const;

  const PchRequest& order_;
  PchHeap& heap_;
  FileAccessRecorder& recorder_;
  const bool is_attempt_;
};

}  // namespace kiln
