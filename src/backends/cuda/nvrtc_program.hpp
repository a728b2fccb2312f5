// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/unit.hpp>

#include "backends/cuda/nvrtc_library.hpp"
#include "backends/pch.hpp"

namespace kiln {

/// An NVRTC program, from its source to its output. Not thread-safe.
class NvrtcCompilation {
 public:
  explicit NvrtcCompilation(const NvrtcLibrary& nvrtc) : nvrtc_(nvrtc) {}
  ~NvrtcCompilation();
  NvrtcCompilation(const NvrtcCompilation&) = delete;
  NvrtcCompilation& operator=(const NvrtcCompilation&) = delete;

  Status create(const Unit& unit);
  /// Compiles the program. Returns Code::CompileFailed with NVRTC's log if NVRTC rejects it.
  Status compile(const Unit& unit, const std::vector<std::string>& options);
  Result<std::vector<EntryPoint>> entries(const Unit& unit);
  Result<Bytes> output(Form form);
  std::string log();
  /// Like `take_pch_report` below, but the result of a creation is what NVRTC's interface reports.
  PchResult take_pch_report(std::string& log, const PchRequest& order);

 private:
  Error rejected(const std::string& what, int result);
  Result<Bytes> fetch(int (*size_of)(NvrtcProgram*, std::size_t*), int (*get)(NvrtcProgram*, char*));

  const NvrtcLibrary& nvrtc_;
  NvrtcProgram* program_ = nullptr;
};

/// Extracts the result for a precompiled header from the log, where NVRTC reports it, and removes it there. Puts the
/// log of the headers in front of the log of a unit that uses one. The log must not depend on whether a unit was
/// compiled with one.
PchResult take_pch_report(std::string& log, const PchRequest& order);

}  // namespace kiln
