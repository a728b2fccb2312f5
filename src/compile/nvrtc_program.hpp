#pragma once

#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/unit.hpp>

#include "compile/nvrtc_library.hpp"
#include "compile/pch.hpp"

namespace kiln {

/// A program of NVRTC's, from its source to its output. One thread.
class CudaProgram {
 public:
  explicit CudaProgram(const NvrtcLibrary& nvrtc) : nvrtc_(nvrtc) {}
  ~CudaProgram();
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;

  Status create(const Unit& unit);
  /// Code::CompileFailed with NVRTC's log where it refuses.
  Status compile(const Unit& unit, const std::vector<std::string>& options);
  Result<std::vector<Entry>> entries(const Unit& unit);
  Result<Bytes> output(Form form);
  std::string log();

 private:
  Error refused(const std::string& what, int result);
  Result<Bytes> fetch(int (*size_of)(NvrtcProgram*, std::size_t*), int (*get)(NvrtcProgram*, char*));

  const NvrtcLibrary& nvrtc_;
  NvrtcProgram* program_ = nullptr;
};

/// NVRTC says what it did with a precompiled header in its log and nowhere else. What it says is taken out of the log,
/// which must not tell a unit that was compiled with one from a unit that was compiled without.
PchReport take_pch_report(std::string& log, const PchOrder& order);

}  // namespace kiln
