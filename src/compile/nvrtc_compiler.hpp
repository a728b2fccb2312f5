#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/file_digests.hpp"
#include "base/mutex.hpp"
#include "compile/compiler.hpp"
#include "compile/nvrtc_library.hpp"
#include "compile/opened_library.hpp"
#include "compile/pch.hpp"

namespace kiln {

/// CUDA C++ by NVIDIA's run-time compiler, in this process. Needs no driver and no device. Any thread.
///
/// In a process that is not kiln's own nobody sees which headers NVRTC reads: an artifact of a unit that is not closed
/// comes back as not cacheable. WorkerCompiler puts this compiler into a process where somebody does.
class NvrtcCompiler final : public Compiler {
 public:
  /// `path` is that of libnvrtc, empty to search. Nothing is searched or opened before the first question.
  NvrtcCompiler(std::string path, FileDigests& digests, Watched watched = Watched::No);

  std::string kind() const override { return "cuda"; }
  Result<CompilerIdentity> identity() override;
  Status supports(const Target& target) override;
  bool closed(const Recipe& recipe) const override;
  Result<Compiled> compile(const Recipe& recipe) override;
  /// Likewise, and makes or uses a precompiled header on the way. Only for a process that may die: NVRTC believes such
  /// a file whatever is in it. Nor does it check that the headers are still the same; that is the caller's part.
  Result<Compiled> compile(const Recipe& recipe, const PchOrder& order, PchReport& report);
  /// How much memory the library sets aside, in one piece, for the headers that it precompiles; zero where it does not.
  std::size_t pch_heap_size();

 private:
  Result<std::shared_ptr<const NvrtcLibrary>> library();
  Result<NvrtcCandidate> candidate();
  std::optional<Digest> digest_of(const NvrtcCandidate& candidate);

  const std::string path_;
  FileDigests& digests_;
  Mutex mutex_;
  std::optional<NvrtcCandidate> candidate_ KILN_GUARDED_BY(mutex_);
  OpenedLibrary<NvrtcLibrary> opened_;
};

}  // namespace kiln
