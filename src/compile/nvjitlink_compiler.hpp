#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/file_digests.hpp"
#include "base/mutex.hpp"
#include "compile/compiler.hpp"
#include "compile/nvjitlink_library.hpp"
#include "compile/opened_library.hpp"

namespace kiln {

/// Links compiled code by NVIDIA's run-time linker, in this process, to a cubin or to PTX. Needs no driver and no
/// device. Takes links whose parts are all bytes; PartsCompiler compiles those that are units before. Any thread.
///
/// The linker reads no file, so that every link is closed, with one exception: where a part has line information it
/// looks at the files that are named there and puts their times into the cubin. Such a result is not cacheable.
/// Damaged LTO-IR may crash it, and the process with it: what comes from elsewhere is for a worker.
class NvJitLinkCompiler final : public Compiler {
 public:
  /// `path` is that of libnvJitLink, empty to search; `nvrtc` that of the NVRTC beside which to search first, empty to
  /// search that too. Nothing is searched or opened before the first question.
  NvJitLinkCompiler(std::string path, std::string nvrtc, FileDigests& digests, Watched watched = Watched::No);

  std::string kind() const override { return "link"; }
  Result<CompilerIdentity> identity() override;
  Status supports(const Target& target) override;
  bool closed(const Recipe& recipe) const override;
  Result<Compiled> compile(const Recipe& recipe) override;

 private:
  Result<NvJitLinkCandidate> candidate();
  Result<std::shared_ptr<const NvJitLinkLibrary>> library();
  std::string why_not_kept(const Recipe& recipe) const;

  const std::string path_;
  const std::string nvrtc_;
  FileDigests& digests_;
  Mutex mutex_;
  std::optional<NvJitLinkCandidate> candidate_ KILN_GUARDED_BY(mutex_);
  OpenedLibrary<NvJitLinkLibrary> opened_;
};

}  // namespace kiln
