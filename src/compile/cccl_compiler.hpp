#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_digests.hpp"
#include "base/mutex.hpp"
#include "compile/compiler.hpp"
#include "compile/nvjitlink_compiler.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "compile/pch.hpp"
#include "vendor/cccl_library.hpp"

namespace kiln {

/// CCCL's algorithms by NVIDIA's own C library: a unit of kind "cccl" is a spec, its artifact the library's serialised
/// build result in kiln's envelope. Needs no device and no driver: a stub of libcuda serves.
///
/// It compiles in workers only: the library prints to stdout, and what it reads must be seen. Elsewhere it says who it
/// is, and refuses to compile. Any thread for that; one for compiling.
class CcclCompiler final : public Compiler {
 public:
  /// For a program: `library` and `nvrtc` are what the settings of these names say. Nothing is looked for before the
  /// first question.
  CcclCompiler(std::string library, const std::string& nvrtc, FileDigests& digests);
  /// For a worker: with exactly what the program found.
  CcclCompiler(const CompilerIdentity& found, FileDigests& digests);

  /// Which NVRTC the library is to use; Code::Corrupt where the identity does not say.
  static Result<std::string> nvrtc_of(const CompilerIdentity& found);

  std::string kind() const override { return "cccl"; }
  Result<CompilerIdentity> identity() override;
  Status supports(const Target& target) override;
  Result<Compiled> compile(const Recipe& recipe) override;
  /// Opens the library, and reads what tells which it is: before anybody watches which files a compile reads.
  Status open(const Recipe& recipe);
  /// Compiles likewise, with precompiled headers. Where it is to make them it makes nothing else: they come before all
  /// of the algorithm, whose compile may take three times as long, and others wait for them.
  Result<Compiled> compile(const Recipe& recipe, const PchOrder& order, PchReport& report);

 private:
  struct Found {
    CcclCandidate library;
    std::string driver;   ///< libcuda, or the toolkit's stub of it
    std::string toolkit;  ///< the toolkit's headers
  };
  Result<Found> find(const CompilerIdentity& nvrtc);
  Result<Compiled> precompile(const Recipe& recipe, cccl::Algorithm algorithm, const PchOrder& order,
                              PchReport& report) const;
  Result<Compiled> envelop(const Recipe& recipe, const CcclBuild& build, double ms, std::string log);
  /// LTO-IR of the operators that targets share, for the lowest of them.
  Result<std::vector<std::string>> shared_operators(const Recipe& recipe, const cccl::Spec& spec) const;

  const std::string path_;
  const bool in_worker_;
  FileDigests& digests_;
  NvrtcCompiler nvrtc_;
  NvJitLinkCompiler linker_;
  Mutex mutex_;
  std::optional<Found> found_ KILN_GUARDED_BY(mutex_);
  // In a worker, by its one thread.
  std::shared_ptr<const CcclLibrary> library_;
  std::shared_ptr<const NvrtcLibrary> opened_nvrtc_;
};

}  // namespace kiln
