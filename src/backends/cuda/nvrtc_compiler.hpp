// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "backends/compiler.hpp"
#include "backends/cuda/nvrtc_library.hpp"
#include "backends/lazy_library.hpp"
#include "backends/pch.hpp"
#include "base/files/file_digest_cache.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// A compiler of CUDA C++ that runs NVRTC in this process. Needs neither a driver nor a device.
///
/// Outside a worker, the headers that NVRTC reads are not recorded, so that the artifact of a unit that is not
/// self-contained is not cacheable. `WorkerCompiler` runs this compiler in a process that records them.
/// Thread-safe.
class NvrtcCompiler final : public Compiler {
 public:
  /// `path` is the path of libnvrtc; empty means search. The search starts with the first call.
  NvrtcCompiler(std::string path, FileDigestCache& digests, InputTracking watched = InputTracking::Off);

  std::string kind() const override { return "cuda"; }
  Result<CompilerIdentity> identity(const RequestContext& context) override;
  std::optional<CompilerIdentity> undigested_identity() override;
  std::optional<Digest> files_state() override;
  Status supports(const Target& target) override;
  bool is_self_contained(const Recipe& recipe) const override;
  Result<CompileResult> compile(const Recipe& recipe, const RequestContext& context) override;
  /// Compiles, and creates or uses a precompiled header. Call it only in a process that is allowed to crash: NVRTC does
  /// not validate the file. NVRTC also does not check that the headers are unchanged; the caller must do that.
  Result<CompileResult> compile(const Recipe& recipe, const PchRequest& order, PchResult& report);
  /// Returns the size in bytes of the contiguous memory that the library reserves for precompiled headers; 0 if none.
  std::size_t pch_heap_size();
  /// Frees that memory and sets its size. Returns the new size, which the library rounds up; 0 if it has none.
  std::size_t set_pch_heap_size(std::size_t size);

 private:
  Result<std::shared_ptr<const NvrtcLibrary>> library();
  Result<NvrtcCandidate> candidate();
  std::optional<Digest> digest_of(const NvrtcCandidate& candidate, const RequestContext& context);

  const std::string path_;
  FileDigestCache& digests_;
  std::atomic<bool> is_identified_{false};  // `identity` has digested the library or found its digest
  Mutex mutex_;
  std::optional<NvrtcCandidate> candidate_ KILN_GUARDED_BY(mutex_);
  LazyLibrary<NvrtcLibrary> opened_;
};

}  // namespace kiln
