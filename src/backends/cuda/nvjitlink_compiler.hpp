// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backends/compiler.hpp"
#include "backends/cuda/nvjitlink_library.hpp"
#include "backends/lazy_library.hpp"
#include "base/files/file_digest_cache.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// A compiler that links compiled code with NVIDIA's run-time linker, in this process, to a cubin or to PTX. Needs
/// neither a driver nor a device. It accepts links whose parts are all bytes; `LinkCompiler` compiles parts that are
/// units before.
///
/// The linker reads no file, so that every link is self-contained, with one exception. If a part has line information,
/// the linker reads the times of the files named there and writes them into the cubin. Such a result is not cacheable.
/// Corrupt LTO-IR can crash the linker and its process; code from untrusted sources must be linked in a worker.
/// Thread-safe.
class NvJitLinkCompiler final : public Compiler {
 public:
  /// `path` is the path of libnvJitLink; empty means search. `nvrtc` is the path of the NVRTC next to which to search
  /// first; empty means search for NVRTC too. The search starts with the first call.
  NvJitLinkCompiler(std::string path, std::string nvrtc, FileDigestCache& digests,
                    InputTracking watched = InputTracking::Off);

  std::string kind() const override { return "link"; }
  Result<CompilerIdentity> identity(const RequestContext& context) override;
  Status supports(const Target& target) override;
  bool is_self_contained(const Recipe& recipe) const override;
  Result<CompileResult> compile(const Recipe& recipe, const RequestContext& context) override;

 private:
  Result<NvJitLinkCandidate> candidate();
  Result<std::shared_ptr<const NvJitLinkLibrary>> library();
  std::string uncacheable_reason(const Recipe& recipe) const;

  const std::string path_;
  const std::string nvrtc_;
  FileDigestCache& digests_;
  Mutex mutex_;
  std::optional<NvJitLinkCandidate> candidate_ KILN_GUARDED_BY(mutex_);
  LazyLibrary<NvJitLinkLibrary> opened_;
};

}  // namespace kiln
